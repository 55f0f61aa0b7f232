use crate::sql::statements;

statements! {
    SIGNAL_INSERT on signals {
        both: "INSERT INTO signals (tenant_id, signal_id, type, key, received_at, expires_at, payload, source_scope,
               source_name, fingerprint, broadcast, run_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
               ON CONFLICT DO NOTHING"
    }

    /// signals_named: what stands under a name.
    SIGNAL_NAMED on signals {
        both: "SELECT fingerprint FROM signals WHERE tenant_id = $1 AND source_scope = $2 AND source_name = $3"
    }

    /// signals_named: which signal that is.
    SIGNAL_OF_NAME on signals {
        both: "SELECT signal_id FROM signals WHERE tenant_id = $1 AND source_scope = $2 AND source_name = $3"
    }

    /// signals_source: the signal that a server of an earlier release has stored under a name, which was one name for the
    /// whole tenant then.
    SIGNAL_NAMED_BEFORE on signals {
        both: "SELECT type, key, broadcast, run_id FROM signals WHERE tenant_id = $1 AND source_id = $2"
    }

    /// signals_pending.
    SIGNALS_PENDING on signals {
        both: "SELECT signal_id, received_at, payload, broadcast, run_id FROM signals
               WHERE tenant_id = $1 AND type = $2 AND key = $3 AND consumed_by IS NULL AND received_at >= $4
               ORDER BY received_at, signal_id LIMIT $5"
    }

    /// The same for one run: neither those for another run alone, nor broadcasts that it has had.
    SIGNALS_UNHEARD on signals {
        both: "SELECT s.signal_id, s.received_at, s.payload, s.broadcast, s.run_id FROM signals s
               WHERE s.tenant_id = $1 AND s.type = $2 AND s.key = $3 AND s.consumed_by IS NULL AND s.received_at >= $4
               AND (s.run_id IS NULL OR s.run_id = $5) AND (s.broadcast = 0 OR NOT EXISTS (SELECT 1 FROM signals_heard h WHERE h.tenant_id = s.tenant_id
               AND h.run_id = $5 AND h.signal_id = s.signal_id))
               ORDER BY s.received_at, s.signal_id LIMIT $6"
    }

    /// The sweep that matches what two commits at the same instant could have missed.
    UNMATCHED on waits {
        both: "SELECT DISTINCT w.tenant_id, w.type, w.key FROM waits w
               WHERE EXISTS (SELECT 1 FROM signals s WHERE s.tenant_id = w.tenant_id AND s.type = w.type
               AND s.key = w.key AND s.consumed_by IS NULL AND s.received_at >= w.accept_from
               AND (s.run_id IS NULL OR s.run_id = w.run_id) AND (s.broadcast = 0 OR NOT EXISTS
               (SELECT 1 FROM signals_heard h WHERE h.tenant_id = s.tenant_id AND h.run_id = w.run_id
               AND h.signal_id = s.signal_id))) LIMIT $1"
    }

    /// waits_by_key: first come, first served.
    WAITS_OPEN on waits {
        both: "SELECT run_id, position, accept_from, opened_at FROM waits WHERE tenant_id = $1 AND type = $2 AND key = $3
               AND (opened_at, run_id) > ($4, $5) ORDER BY opened_at, run_id LIMIT $6"
    }

    // Open waits: by type and key, by type, or all of a tenant. Pages go on after a wait: $2 type, $3 key, $4
    // opened_at, $5 run id of the last one. The plan's hash, by the key of runs, spares a read for each run.

    WAITS_LIST on waits {
        both: "SELECT run_id, position, type, key, accept_from, opened_at, (SELECT r.plan_hash FROM runs r
               WHERE r.tenant_id = waits.tenant_id AND r.run_id = waits.run_id) AS plan_hash FROM waits
               WHERE tenant_id = $1 AND (type, key, opened_at, run_id) > ($2, $3, $4, $5)
               AND ($6 = '' OR EXISTS (SELECT 1 FROM run_live l WHERE l.tenant_id = waits.tenant_id
               AND l.run_id = waits.run_id AND l.branch = waits.branch AND l.workspace = $6))
               ORDER BY type, key, opened_at, run_id LIMIT $7"
    }

    WAITS_OF_TYPE on waits {
        both: "SELECT run_id, position, type, key, accept_from, opened_at, (SELECT r.plan_hash FROM runs r
               WHERE r.tenant_id = waits.tenant_id AND r.run_id = waits.run_id) AS plan_hash FROM waits
               WHERE tenant_id = $1 AND type = $2 AND (key, opened_at, run_id) > ($3, $4, $5)
               AND ($6 = '' OR EXISTS (SELECT 1 FROM run_live l WHERE l.tenant_id = waits.tenant_id
               AND l.run_id = waits.run_id AND l.branch = waits.branch AND l.workspace = $6))
               ORDER BY key, opened_at, run_id LIMIT $7"
    }

    WAITS_OF_KEY on waits {
        both: "SELECT run_id, position, type, key, accept_from, opened_at, (SELECT r.plan_hash FROM runs r
               WHERE r.tenant_id = waits.tenant_id AND r.run_id = waits.run_id) AS plan_hash FROM waits
               WHERE tenant_id = $1 AND type = $2 AND key = $3 AND (opened_at, run_id) > ($4, $5)
               AND ($6 = '' OR EXISTS (SELECT 1 FROM run_live l WHERE l.tenant_id = waits.tenant_id
               AND l.run_id = waits.run_id AND l.branch = waits.branch AND l.workspace = $6))
               ORDER BY opened_at, run_id LIMIT $7"
    }

    SWEEP_SIGNALS on signals {
        both: "DELETE FROM signals WHERE (tenant_id, signal_id) IN
               (SELECT tenant_id, signal_id FROM signals WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)"
    }
}
