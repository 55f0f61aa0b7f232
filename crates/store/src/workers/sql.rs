use crate::sql::statements;

statements! {
    SESSION_PUT on worker_sessions {
        both: "INSERT INTO worker_sessions (session_id, tenant_id, worker, build_id, queues, slots, state, registered_at,
               lease_expires_at, heartbeat_at, tasks, capabilities, identity_id, terms, fault, lost, maintenance,
               labels)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
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

    SESSION_DRAIN on worker_sessions {
        both: "UPDATE worker_sessions SET state = 'draining'
               WHERE session_id = $1 AND tenant_id = $2 AND state IN ('online', 'errored')"
    }

    /// One that drains or is over stays so; the fault is kept to be shown.
    SESSION_FAULT on worker_sessions {
        both: "UPDATE worker_sessions SET fault = $1, state = CASE WHEN state = 'online' THEN 'errored' ELSE state END
               WHERE session_id = $2 AND state <> 'offline'"
    }

    SESSION_WELL on worker_sessions {
        both: "UPDATE worker_sessions SET fault = NULL, lost = NULL,
               state = CASE WHEN state = 'errored' THEN 'online' ELSE state END
               WHERE session_id = $1 AND state <> 'offline'"
    }

    /// Also of one that is over: the worker's next registration goes on counting.
    SESSION_LOST on worker_sessions {
        both: "UPDATE worker_sessions SET lost = $1 WHERE session_id = $2"
    }

    SESSION_MAINTENANCE on worker_sessions {
        both: "UPDATE worker_sessions SET maintenance = $1
               WHERE session_id = $2 AND tenant_id = $3 AND state <> 'offline'"
    }

    /// One that is over, and holds nothing.
    SESSION_FORGET on worker_sessions {
        both: "DELETE FROM worker_sessions WHERE session_id = $1 AND tenant_id = $2
               AND (state = 'offline' OR lease_expires_at < $3)
               AND NOT EXISTS (SELECT 1 FROM run_live l WHERE l.tenant_id = $2 AND l.session_id = $1)"
    }

    SESSION_CLOSE on worker_sessions {
        both: "UPDATE worker_sessions SET state = 'offline',
               lease_expires_at = CASE WHEN lease_expires_at < $1 THEN lease_expires_at ELSE $1 END
               WHERE session_id = $2"
    }

    SESSIONS_EXPIRE on worker_sessions {
        both: "UPDATE worker_sessions SET state = 'offline' WHERE lease_expires_at < $1 AND state <> 'offline'"
    }

    SESSIONS on worker_sessions {
        both: "SELECT session_id, tenant_id, worker, build_id, queues, slots, state, registered_at, lease_expires_at,
               heartbeat_at, tasks, capabilities, identity_id, terms, unlisted, fault, lost, maintenance, labels
               FROM worker_sessions ORDER BY session_id"
    }

    SESSION_GET on worker_sessions {
        both: "SELECT session_id, tenant_id, worker, build_id, queues, slots, state, registered_at, lease_expires_at,
               heartbeat_at, tasks, capabilities, identity_id, terms, unlisted, fault, lost, maintenance, labels
               FROM worker_sessions WHERE session_id = $1"
    }

    /// The registrations of one worker: by its certificate, or by its name. The table is small.
    SESSIONS_OF_WORKER on worker_sessions {
        both: "SELECT session_id, tenant_id, worker, build_id, queues, slots, state, registered_at, lease_expires_at,
               heartbeat_at, tasks, capabilities, identity_id, terms, unlisted, fault, lost, maintenance, labels
               FROM worker_sessions WHERE tenant_id = $1 AND (worker = $2 OR identity_id = $3)
               ORDER BY registered_at DESC, session_id DESC LIMIT $4"
    }

    /// A session that still holds claims stays until the reaper has taken them.
    SWEEP_SESSIONS on worker_sessions {
        both: "DELETE FROM worker_sessions WHERE session_id IN
               (SELECT s.session_id FROM worker_sessions s WHERE s.state = 'offline' AND s.lease_expires_at < $1
                AND NOT EXISTS (SELECT 1 FROM tenants t JOIN run_live l ON l.tenant_id = t.tenant_id
                AND l.session_id = s.session_id) LIMIT $2)"
    }
}
