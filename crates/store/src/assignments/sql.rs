use crate::sql::statements;

statements! {
    /// A session that is offered the same run again has one row: what became of the offers before stands in the run's events.
    ASSIGNMENT_PUT on assignments {
        both: "INSERT INTO assignments (tenant_id, run_id, attempt, session_id, worker, state, offered_at, acked_at, ended_at,
               failed_check, failure_reason)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
               ON CONFLICT (tenant_id, run_id, session_id) DO UPDATE SET attempt = excluded.attempt,
               state = excluded.state, offered_at = excluded.offered_at, acked_at = excluded.acked_at,
               ended_at = excluded.ended_at, failed_check = excluded.failed_check,
               failure_reason = excluded.failure_reason"
    }

    /// assignments_live: those that live now are few, whatever the number of runs.
    ASSIGNMENTS_OF on assignments {
        both: "SELECT tenant_id, run_id, session_id, state, offered_at, acked_at FROM assignments
               WHERE session_id = $1 AND ended_at IS NULL ORDER BY offered_at, run_id LIMIT $2"
    }

    /// The same of one tenant.
    ASSIGNED_TO on assignments {
        both: "SELECT tenant_id, run_id, session_id, state, offered_at, acked_at FROM assignments
               WHERE session_id = $1 AND ended_at IS NULL AND tenant_id = $2 ORDER BY offered_at, run_id LIMIT $3"
    }

    /// assignments_live.
    LOST_ASSIGNMENTS on assignments {
        both: "SELECT a.tenant_id, a.run_id, a.session_id, a.state, a.offered_at, a.acked_at FROM assignments a
               LEFT JOIN worker_sessions s ON s.session_id = a.session_id
               WHERE a.ended_at IS NULL
               AND (s.session_id IS NULL OR s.state = 'offline' OR s.lease_expires_at < $1) LIMIT $2"
    }
}
