use crate::sql::statements;

statements! {
    PAYLOAD_KEEP on payloads {
        both: "INSERT INTO payloads (tenant_id, owner, sha256, bytes, kept_at, sweeping)
               VALUES ($1, $2, $3, $4, $5, 0)
               ON CONFLICT (tenant_id, owner, sha256) DO UPDATE SET kept_at = excluded.kept_at"
    }

    PAYLOAD_SWEEPING on payloads {
        both: "SELECT 1 FROM payloads WHERE tenant_id = $1 AND sha256 = $2 AND sweeping = 1 LIMIT 1"
    }

    PAYLOAD_BYTES on payloads {
        both: "SELECT bytes FROM payloads WHERE tenant_id = $1 AND owner = $2 AND sha256 = $3"
    }

    /// All of them by object, page by page, each with what its owner is: 1 a run, 2 a signal, 0 not there (any more).
    /// Owners are looked up one by one: an EXISTS may be answered by reading all runs.
    PAYLOADS_AFTER on payloads {
        both: "SELECT p.tenant_id, p.sha256, p.owner, p.bytes, p.sweeping, CASE
               WHEN (SELECT 1 FROM runs r WHERE r.tenant_id = p.tenant_id AND r.run_id = p.owner) = 1 THEN 1
               WHEN (SELECT 1 FROM evidence_bundles e WHERE e.tenant_id = p.tenant_id AND e.run_id = p.owner
               AND e.sha256 = p.sha256 LIMIT 1) = 1 THEN 1
               WHEN (SELECT 1 FROM signals s WHERE s.tenant_id = p.tenant_id AND s.signal_id = p.owner) = 1 THEN 2
               ELSE 0 END FROM payloads p WHERE (p.tenant_id, p.sha256, p.owner) > ($1, $2, $3)
               ORDER BY p.tenant_id, p.sha256, p.owner LIMIT $4"
    }

    /// Reads all of them: only for callers that are about to do so anyway.
    PAYLOADS_TOTAL on payloads {
        both: "SELECT count(*), CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM payloads"
    }

    /// Those whose owner is gone, or never came to be: oldest first, and none that may still be on its way. Evidence
    /// outlives its run.
    PAYLOADS_UNOWNED on payloads {
        both: "SELECT p.tenant_id, p.owner, p.sha256 FROM payloads p WHERE p.kept_at < $1 AND (p.sweeping = 1
               OR (NOT EXISTS (SELECT 1 FROM runs r WHERE r.tenant_id = p.tenant_id AND r.run_id = p.owner)
               AND NOT EXISTS (SELECT 1 FROM signals s WHERE s.tenant_id = p.tenant_id AND s.signal_id = p.owner)
               AND NOT EXISTS (SELECT 1 FROM evidence_bundles e WHERE e.tenant_id = p.tenant_id AND e.run_id = p.owner
               AND e.sha256 = p.sha256)))
               ORDER BY p.kept_at LIMIT $2"
    }

    /// Whether anything of the owner names the payload ($3: `%HASH%`). A reference is recorded before its object is written
    /// and before the row that uses it: where that came to nothing, the owner may be there and know nothing of it.
    PAYLOAD_USED on payloads {
        both: "SELECT 1 WHERE EXISTS (SELECT 1 FROM runs r WHERE r.tenant_id = $1 AND r.run_id = $2
               AND (r.inputs LIKE $3 OR r.output LIKE $3 OR r.error LIKE $3 OR r.notes LIKE $3))
               OR EXISTS (SELECT 1 FROM journal j WHERE j.tenant_id = $1 AND j.run_id = $2
               AND (j.input LIKE $3 OR j.output LIKE $3 OR j.error LIKE $3 OR j.events LIKE $3))
               OR EXISTS (SELECT 1 FROM run_live l WHERE l.tenant_id = $1 AND l.run_id = $2
               AND (l.step_data LIKE $3 OR l.notes LIKE $3))
               OR EXISTS (SELECT 1 FROM steps_added a WHERE a.tenant_id = $1 AND a.run_id = $2 AND a.spec LIKE $3)
               OR EXISTS (SELECT 1 FROM receipts c WHERE c.tenant_id = $1 AND c.run_id = $2
               AND (c.request LIKE $3 OR c.response LIKE $3))
               OR EXISTS (SELECT 1 FROM evidence_bundles e WHERE e.tenant_id = $1 AND e.run_id = $2 AND e.body LIKE $3)
               OR EXISTS (SELECT 1 FROM outbox o WHERE o.tenant_id = $1 AND o.run_id = $2 AND o.payload LIKE $3)
               OR EXISTS (SELECT 1 FROM signals s WHERE s.tenant_id = $1 AND s.signal_id = $2 AND s.payload LIKE $3)"
    }

    PAYLOAD_SHARED on payloads {
        both: "SELECT 1 FROM payloads WHERE tenant_id = $1 AND sha256 = $2 AND owner <> $3 LIMIT 1"
    }

    PAYLOAD_NEEDED on payloads {
        both: "SELECT 1 FROM payloads WHERE tenant_id = $1 AND sha256 = $2 AND sweeping = 0 LIMIT 1"
    }

    PAYLOAD_DROP on payloads {
        both: "DELETE FROM payloads WHERE tenant_id = $1 AND owner = $2 AND sha256 = $3 AND kept_at < $4"
    }

    PAYLOAD_MARK on payloads {
        both: "UPDATE payloads SET sweeping = 1 WHERE tenant_id = $1 AND owner = $2 AND sha256 = $3 AND kept_at < $4"
    }

    PAYLOAD_FORGET on payloads {
        both: "DELETE FROM payloads WHERE tenant_id = $1 AND sha256 = $2 AND sweeping = 1"
    }
}
