//! Writes that belong to no run: tenants, sessions, signals, deliveries, sealing, sweeping.

use super::statements;

statements! {
    TENANT_PUT on tenants {
        both: "INSERT INTO tenants (tenant_id, name, max_concurrency, max_runs_per_min, pending_runs_max, weight, created_at,
               settings, disabled_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
               ON CONFLICT (tenant_id) DO UPDATE SET name = excluded.name, max_concurrency = excluded.max_concurrency,
               max_runs_per_min = excluded.max_runs_per_min, pending_runs_max = excluded.pending_runs_max,
               weight = excluded.weight, settings = excluded.settings, disabled_at = excluded.disabled_at"
    }

    SESSION_PUT on worker_sessions {
        both: "INSERT INTO worker_sessions (session_id, tenant_id, worker, build_id, queues, slots, state, registered_at,
               lease_expires_at, heartbeat_at, tasks, capabilities)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
               ON CONFLICT (session_id) DO UPDATE SET queues = excluded.queues, slots = excluded.slots,
               state = excluded.state, lease_expires_at = excluded.lease_expires_at,
               heartbeat_at = excluded.heartbeat_at, tasks = excluded.tasks, capabilities = excluded.capabilities"
    }

    /// Monotone: a renewal that was overtaken on its way does not shorten the lease.
    SESSION_RENEW on worker_sessions {
        both: "UPDATE worker_sessions SET
               lease_expires_at = CASE WHEN lease_expires_at > $1 THEN lease_expires_at ELSE $1 END,
               unlisted = CASE WHEN heartbeat_at > $2 THEN unlisted ELSE $3 END,
               heartbeat_at = CASE WHEN heartbeat_at > $2 THEN heartbeat_at ELSE $2 END
               WHERE session_id = $4 AND state <> 'offline'"
    }

    SESSION_STATE on worker_sessions {
        both: "UPDATE worker_sessions SET state = $1 WHERE session_id = $2 AND state <> 'offline'"
    }

    SESSION_CLOSE on worker_sessions {
        both: "UPDATE worker_sessions SET state = 'offline',
               lease_expires_at = CASE WHEN lease_expires_at < $1 THEN lease_expires_at ELSE $1 END
               WHERE session_id = $2"
    }

    SESSIONS_EXPIRE on worker_sessions {
        both: "UPDATE worker_sessions SET state = 'offline' WHERE lease_expires_at < $1 AND state <> 'offline'"
    }

    SIGNAL_INSERT on signals {
        both: "INSERT INTO signals (tenant_id, signal_id, type, key, received_at, expires_at, payload, source_id, broadcast)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING"
    }

    /// On PostgreSQL whoever frees the subject waits for this transaction.
    SUBJECT_LOCK on subjects {
        sqlite: "SELECT run_id FROM subjects WHERE tenant_id = ?1 AND subject = ?2",
        postgres: "SELECT run_id FROM subjects WHERE tenant_id = $1 AND subject = $2 FOR UPDATE"
    }

    OUTBOX_DELIVERED on outbox {
        both: "UPDATE outbox SET delivered_at = $1, attempts = attempts + 1 WHERE tenant_id = $2 AND outbox_id = $3
               AND delivered_at IS NULL"
    }

    OUTBOX_FAILED on outbox {
        both: "UPDATE outbox SET attempts = attempts + 1, last_error = $1, next_at = coalesce($2, next_at), dead_at = $3
               WHERE tenant_id = $4 AND outbox_id = $5 AND delivered_at IS NULL"
    }

    /// Guard: a key is free if it is new, if whoever had it went silent, if it failed and may be tried again, or if
    /// its record has expired and no run stands for it.
    IDEMPOTENCY_BEGIN on idempotency {
        both: "INSERT INTO idempotency (tenant_id, client, key, source, request_hash, state, created_at, updated_at,
               expires_at, lock_expires_at) VALUES ($1, $2, $3, $4, $5, 'processing', $6, $6, $7, $8)
               ON CONFLICT (tenant_id, client, key) DO UPDATE SET state = 'processing', attempts = CASE
               WHEN idempotency.expires_at <= $6 THEN 1 ELSE idempotency.attempts + 1 END, updated_at = $6,
               source = excluded.source, request_hash = excluded.request_hash, response = NULL, error = NULL,
               expires_at = excluded.expires_at, lock_expires_at = excluded.lock_expires_at
               WHERE idempotency.run_id IS NULL AND (idempotency.expires_at <= $6
               OR (idempotency.request_hash = excluded.request_hash
               AND ((idempotency.state = 'processing' AND idempotency.lock_expires_at <= $6)
               OR (idempotency.state = 'failed' AND idempotency.attempts < $9))))"
    }

    IDEMPOTENCY_RENEW on idempotency {
        both: "UPDATE idempotency SET lock_expires_at = $1 WHERE tenant_id = $2 AND client = $3 AND key = $4
               AND state = 'processing' AND lock_expires_at < $1"
    }

    IDEMPOTENCY_FINISH on idempotency {
        both: "UPDATE idempotency SET state = $1, response = $2, error = $3, updated_at = $4, expires_at = $5,
               lock_expires_at = NULL WHERE tenant_id = $6 AND client = $7 AND key = $8"
    }

    APPROVAL_NOTIFIED on approvals {
        both: "UPDATE approvals SET notified_at = coalesce(notified_at, $1) WHERE tenant_id = $2 AND approval_id = $3"
    }

    /// The first eight digits of a segment's name are its timeline. Everybody may ask for both.
    TIMELINE on meta {
        sqlite: "",
        postgres: "SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline,
                   current_setting('synchronous_standby_names') AS standbys,
                   (SELECT m.value FROM meta m WHERE m.key = 'timeline') AS noted"
    }

    META_GET on meta {
        both: "SELECT value FROM meta WHERE key = $1"
    }

    META_PUT on meta {
        both: "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
    }

    /// One sealer at a time over all servers. SQLite has one writer anyway.
    META_LOCK on meta {
        sqlite: "SELECT value FROM meta WHERE key = ?1",
        postgres: "SELECT value FROM meta WHERE key = $1 FOR UPDATE"
    }

    LANE_INSERT on lanes {
        both: "INSERT INTO lanes (lane_id, server_id, opened_at)
               SELECT coalesce(max(lane_id), 0) + 1, $1, $2 FROM lanes RETURNING lane_id"
    }

    /// Of a lane whose server lives. One that was taken for dead comes back, and what it committed meanwhile is sealed.
    LANE_SEEN on lanes {
        both: "INSERT INTO lanes (lane_id, server_id, opened_at, seen_at) VALUES ($1, $2, $3, $3)
               ON CONFLICT (lane_id) DO UPDATE SET seen_at = excluded.seen_at"
    }

    // Sealing. All lanes' groups are read by one statement: in one snapshot every lane's groups are a prefix, and a
    // group that follows another one (a later version of the same run, committed by another lane) is only seen
    // together with it.
    /// Lane by lane from where the sealer stands, at most $1 of each, so that its cost grows neither with the groups that
    /// are kept nor with those that wait. Of these the $1 oldest by transaction: a later version of a run is decided after
    /// the earlier one was committed, so its group's transaction is the younger one, and a cut between transactions never
    /// shows it first. (After a dump was read back all groups have one age; then their instants decide.) Told by their
    /// instants, which never fall within a lane: what was committed before something was asked for comes before it.
    SEAL_READ on commit_groups {
        sqlite: "SELECT l.lane_id, g.group_no, g.entries FROM lanes l
                 LEFT JOIN feed_positions p ON p.lane_id = l.lane_id
                 CROSS JOIN commit_groups g
                 WHERE g.lane_id = l.lane_id AND g.group_no > coalesce(p.group_no, 0) AND length(g.entries) > 0
                 ORDER BY l.lane_id, g.group_no LIMIT ?1",
        postgres: "SELECT lane_id, group_no, entries FROM
                   (SELECT l.lane_id, g.group_no, g.at, g.entries FROM lanes l
                   LEFT JOIN feed_positions p ON p.lane_id = l.lane_id
                   CROSS JOIN LATERAL (SELECT g.group_no, g.at, g.entries, age(g.xmin) AS age FROM commit_groups g
                   WHERE g.lane_id = l.lane_id AND g.group_no > coalesce(p.group_no, 0) AND length(g.entries) > 0
                   ORDER BY g.group_no LIMIT $1) AS g
                   ORDER BY g.age DESC, g.at, l.lane_id, g.group_no LIMIT $1) AS oldest
                   ORDER BY at, lane_id, group_no"
    }

    SEAL_POSITION on feed_positions {
        both: "INSERT INTO feed_positions (lane_id, group_no) VALUES ($1, $2)
               ON CONFLICT (lane_id) DO UPDATE SET group_no = excluded.group_no"
    }

    SEAL_CURSOR on tenant_feed {
        both: "SELECT cursor_to FROM tenant_feed WHERE tenant_id = $1 ORDER BY cursor_to DESC LIMIT 1"
    }

    FEED_INSERT on tenant_feed {
        both: "INSERT INTO tenant_feed (tenant_id, cursor_to, cursor_from, sealed_at, entries) VALUES ($1, $2, $3, $4, $5)"
    }

    // Sweeping: bounded batches, oldest first.

    /// Ids begin with the instant of the start and a run finishes after it, so only old ids are looked at.
    /// Runs that continue one another go together, once the last of them is due: whoever resumes the last one must find
    /// the receipts of all. runs_by_root.
    SWEEP_RUNS on runs {
        both: "SELECT r.run_id FROM runs r WHERE r.tenant_id = $1 AND r.run_id < $2 AND r.finished_at < $3
               AND NOT EXISTS (SELECT 1 FROM runs y WHERE y.tenant_id = r.tenant_id
               AND y.root_run_id = coalesce(r.root_run_id, r.run_id) AND y.run_id <> r.run_id
               AND (y.finished_at IS NULL OR y.finished_at >= $3))
               ORDER BY r.run_id LIMIT $4"
    }

    SWEEP_RUN on runs { both: "DELETE FROM runs WHERE tenant_id = $1 AND run_id = $2" }
    SWEEP_JOURNAL on journal { both: "DELETE FROM journal WHERE tenant_id = $1 AND run_id = $2" }
    SWEEP_STEPS on steps_added { both: "DELETE FROM steps_added WHERE tenant_id = $1 AND run_id = $2" }
    SWEEP_WAITS on waits { both: "DELETE FROM waits WHERE tenant_id = $1 AND run_id = $2" }
    SWEEP_HEARD on signals_heard { both: "DELETE FROM signals_heard WHERE tenant_id = $1 AND run_id = $2" }

    SWEEP_SUCCESSOR on successors { both: "DELETE FROM successors WHERE tenant_id = $1 AND run_id = $2" }

    SWEEP_VOTES on votes {
        both: "DELETE FROM votes WHERE tenant_id = $1 AND approval_id IN
               (SELECT approval_id FROM approvals WHERE tenant_id = $1 AND run_id = $2)"
    }
    SWEEP_APPROVALS on approvals { both: "DELETE FROM approvals WHERE tenant_id = $1 AND run_id = $2" }
    SWEEP_RECEIPTS on receipts { both: "DELETE FROM receipts WHERE tenant_id = $1 AND run_id = $2" }
    SWEEP_OUTPUT on output { both: "DELETE FROM output WHERE tenant_id = $1 AND run_id = $2" }
    SWEEP_ASSIGNMENTS on assignments { both: "DELETE FROM assignments WHERE tenant_id = $1 AND run_id = $2" }
    SWEEP_RUN_OUTBOX on outbox {
        both: "DELETE FROM outbox WHERE tenant_id = $1 AND run_id = $2
               AND (delivered_at IS NOT NULL OR dead_at IS NOT NULL)"
    }
    SWEEP_LABELS on runs { both: "SELECT labels, state FROM runs WHERE tenant_id = $1 AND run_id = $2" }
    SWEEP_ATTR on run_attrs {
        both: "DELETE FROM run_attrs WHERE tenant_id = $1 AND name = $2 AND value = $3 AND run_id = $4"
    }

    SWEEP_SIGNALS on signals {
        both: "DELETE FROM signals WHERE (tenant_id, signal_id) IN
               (SELECT tenant_id, signal_id FROM signals WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)"
    }

    SWEEP_OUTBOX on outbox {
        both: "DELETE FROM outbox WHERE (tenant_id, outbox_id) IN
               (SELECT tenant_id, outbox_id FROM outbox WHERE tenant_id = $1 AND outbox_id < $2
                AND (delivered_at < $3 OR dead_at < $3) ORDER BY outbox_id LIMIT $4)"
    }

    /// A session that still holds claims stays until the reaper has taken them.
    SWEEP_SESSIONS on worker_sessions {
        both: "DELETE FROM worker_sessions WHERE session_id IN
               (SELECT s.session_id FROM worker_sessions s WHERE s.state = 'offline' AND s.lease_expires_at < $1
                AND NOT EXISTS (SELECT 1 FROM tenants t JOIN run_live l ON l.tenant_id = t.tenant_id
                AND l.session_id = s.session_id) LIMIT $2)"
    }

    /// Long after they expired, and never before its run: as long as that is here its key answers `IDEMPOTENCY_EXPIRED`.
    SWEEP_IDEMPOTENCY on idempotency {
        both: "DELETE FROM idempotency WHERE (tenant_id, client, key) IN
               (SELECT i.tenant_id, i.client, i.key FROM idempotency i WHERE i.expires_at < $1
                AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.tenant_id = i.tenant_id AND r.run_id = i.run_id)
                ORDER BY i.expires_at LIMIT $2)"
    }

    /// Sealed groups are kept a while: they are the proof of commit for a lane whose answer was lost. A lane's last
    /// one stays, because no clock may go below its instant.
    SWEEP_GROUPS on commit_groups {
        both: "DELETE FROM commit_groups WHERE (lane_id, group_no) IN
               (SELECT g.lane_id, g.group_no FROM commit_groups g LEFT JOIN feed_positions p ON p.lane_id = g.lane_id
                WHERE g.at < $1 AND (g.group_no <= p.group_no OR length(g.entries) = 0)
                AND EXISTS (SELECT 1 FROM commit_groups n WHERE n.lane_id = g.lane_id AND n.group_no > g.group_no)
                ORDER BY g.lane_id, g.group_no LIMIT $2)"
    }

    /// The last row of a tenant stays, because the next cursor is counted from it.
    SWEEP_FEED on tenant_feed {
        both: "DELETE FROM tenant_feed WHERE (tenant_id, cursor_to) IN
               (SELECT f.tenant_id, f.cursor_to FROM tenant_feed f WHERE f.sealed_at < $1 AND f.cursor_to <
                (SELECT max(n.cursor_to) FROM tenant_feed n WHERE n.tenant_id = f.tenant_id)
                ORDER BY f.sealed_at LIMIT $2)"
    }

    // Plans that no run uses any more.

    /// plans_by_use.
    PLANS_OLD on plans {
        both: "SELECT tenant_id, plan_hash, workflow, used_at FROM plans WHERE used_at < $1 ORDER BY used_at LIMIT $2"
    }

    /// runs_by_workflow, of which retention has left few below the id.
    PLAN_RUN on runs {
        both: "SELECT 1 FROM runs WHERE workflow = $1 AND tenant_id = $2 AND run_id < $3 AND plan_hash = $4 LIMIT 1"
    }

    /// Some run lives longer than most: look again when the others of its age would be gone.
    PLAN_IN_USE on plans {
        both: "UPDATE plans SET used_at = $1 WHERE tenant_id = $2 AND plan_hash = $3 AND used_at < $1"
    }

    /// A plan that was used since it was looked at has another instant, and stays.
    SWEEP_PLAN on plans {
        both: "DELETE FROM plans WHERE tenant_id = $1 AND plan_hash = $2 AND used_at = $3"
    }

    // Lanes of servers that are gone.

    /// Those that nobody has looked at yet: their time begins now.
    LANES_FIRST_SEEN on lanes {
        both: "UPDATE lanes SET seen_at = $1 WHERE seen_at IS NULL"
    }

    /// All that they committed is sealed. The newest lane stays, because the next one is counted from it; and one with a
    /// newer commit than all lanes after it, because no clock may go below its instant.
    LANES_GONE on lanes {
        both: "SELECT l.lane_id FROM lanes l WHERE l.seen_at < $1
               AND NOT EXISTS (SELECT 1 FROM commit_groups g WHERE g.lane_id = l.lane_id AND length(g.entries) > 0
               AND g.group_no > coalesce((SELECT p.group_no FROM feed_positions p WHERE p.lane_id = l.lane_id), 0))
               AND EXISTS (SELECT 1 FROM lanes n WHERE n.lane_id > l.lane_id
               AND coalesce((SELECT g.at FROM commit_groups g WHERE g.lane_id = n.lane_id
                   ORDER BY g.group_no DESC LIMIT 1), 0)
               >= coalesce((SELECT g.at FROM commit_groups g WHERE g.lane_id = l.lane_id
                   ORDER BY g.group_no DESC LIMIT 1), 0))
               ORDER BY l.lane_id LIMIT $2"
    }

    /// A server that has said meanwhile that it lives keeps its lane.
    SWEEP_LANE on lanes {
        both: "DELETE FROM lanes WHERE lane_id = $1 AND seen_at < $2"
    }

    /// What was not sealed stays, for the case that the server comes back.
    SWEEP_LANE_GROUPS on commit_groups {
        both: "DELETE FROM commit_groups WHERE lane_id = $1 AND (length(entries) = 0
               OR group_no <= coalesce((SELECT p.group_no FROM feed_positions p WHERE p.lane_id = $1), 0))"
    }

    SWEEP_LANE_POSITION on feed_positions {
        both: "DELETE FROM feed_positions WHERE lane_id = $1"
    }
}
