use crate::sql::statements;

statements! {
    // The groups of ready runs by a loose scan of run_live_ready: one probe per (queue, tenant, workspace, priority)
    // instead of one per run. SQLite has no lateral join, and needs none: the loop runs in the process.

    READY_HEADS on run_live {
        sqlite: "",
        postgres: "WITH RECURSIVE head AS (
                       (SELECT queue, tenant_id, workspace, priority, eligible_at FROM run_live
                        WHERE eligible_at IS NOT NULL
                        ORDER BY queue, tenant_id, workspace, priority DESC, eligible_at LIMIT 1)
                     UNION ALL
                       SELECT next.* FROM head CROSS JOIN LATERAL (
                           (SELECT l.queue, l.tenant_id, l.workspace, l.priority, l.eligible_at FROM run_live l
                            WHERE l.eligible_at IS NOT NULL AND l.queue = head.queue AND l.tenant_id = head.tenant_id
                            AND l.workspace = head.workspace AND l.priority < head.priority
                            ORDER BY l.priority DESC, l.eligible_at LIMIT 1)
                         UNION ALL
                           (SELECT l.queue, l.tenant_id, l.workspace, l.priority, l.eligible_at FROM run_live l
                            WHERE l.eligible_at IS NOT NULL
                            AND (l.queue, l.tenant_id, l.workspace) > (head.queue, head.tenant_id, head.workspace)
                            ORDER BY l.queue, l.tenant_id, l.workspace, l.priority DESC, l.eligible_at LIMIT 1)
                         ORDER BY 1, 2, 3, 4 DESC LIMIT 1) next
                   ) SELECT queue, tenant_id, workspace, priority, eligible_at FROM head"
    }

    READY_FIRST on run_live {
        sqlite: "SELECT queue, tenant_id, workspace, priority, eligible_at FROM run_live INDEXED BY run_live_ready
                 WHERE eligible_at IS NOT NULL
                 ORDER BY queue, tenant_id, workspace, priority DESC, eligible_at LIMIT 1",
        postgres: ""
    }

    READY_LOWER on run_live {
        sqlite: "SELECT queue, tenant_id, workspace, priority, eligible_at FROM run_live INDEXED BY run_live_ready
                 WHERE eligible_at IS NOT NULL AND queue = ?1 AND tenant_id = ?2 AND workspace = ?3 AND priority < ?4
                 ORDER BY priority DESC, eligible_at LIMIT 1",
        postgres: ""
    }

    READY_NEXT on run_live {
        sqlite: "SELECT queue, tenant_id, workspace, priority, eligible_at FROM run_live INDEXED BY run_live_ready
                 WHERE eligible_at IS NOT NULL AND (queue, tenant_id, workspace) > (?1, ?2, ?3)
                 ORDER BY queue, tenant_id, workspace, priority DESC, eligible_at LIMIT 1",
        postgres: ""
    }

    /// run_live_ready, after the heads.
    ELIGIBLE_NEXT on run_live {
        both: "SELECT eligible_at FROM run_live WHERE queue = $1 AND tenant_id = $2 AND workspace = $3 AND priority = $4
               AND eligible_at > $5 ORDER BY eligible_at LIMIT 1"
    }

    /// run_live_ready, in its order.
    READY_RUNS on run_live {
        both: "SELECT run_id, priority, eligible_at FROM run_live
               WHERE queue = $1 AND tenant_id = $2 AND workspace = $3 AND eligible_at <= $4
               ORDER BY priority DESC, eligible_at, run_id LIMIT $5"
    }

    /// The same without those of some workflows, a JSON list: what their limits hold back does not delay the others.
    /// The key of runs, once per run that is passed over or read.
    READY_RUNS_OTHER on run_live {
        sqlite: "SELECT l.run_id, l.priority, l.eligible_at FROM run_live l
                 WHERE l.queue = ?1 AND l.tenant_id = ?2 AND l.workspace = ?3 AND l.eligible_at <= ?4
                 AND (SELECT r.workflow FROM runs r WHERE r.tenant_id = l.tenant_id AND r.run_id = l.run_id)
                 NOT IN (SELECT value FROM json_each(?5))
                 ORDER BY l.priority DESC, l.eligible_at, l.run_id LIMIT ?6",
        postgres: "SELECT l.run_id, l.priority, l.eligible_at FROM run_live l
                   WHERE l.queue = $1 AND l.tenant_id = $2 AND l.workspace = $3 AND l.eligible_at <= $4
                   AND (SELECT r.workflow FROM runs r WHERE r.tenant_id = l.tenant_id AND r.run_id = l.run_id)
                   <> ALL (ARRAY(SELECT jsonb_array_elements_text(($5::text)::jsonb)))
                   ORDER BY l.priority DESC, l.eligible_at, l.run_id LIMIT $6"
    }

    /// run_live_claims: the claims that live now are few, whatever the number of runs.
    LOST_CLAIMS on run_live {
        both: "SELECT l.tenant_id, l.run_id, l.position, l.attempt, l.session_id, l.control FROM run_live l
               LEFT JOIN worker_sessions s ON s.session_id = l.session_id
               WHERE l.session_id IS NOT NULL
               AND (s.session_id IS NULL OR s.state = 'offline' OR s.lease_expires_at < $1) LIMIT $2"
    }

    TIMED_OUT on run_live {
        both: "SELECT tenant_id, run_id, position, attempt, session_id, control FROM run_live
               WHERE session_id IS NOT NULL AND step_timeout_at <= $1 LIMIT $2"
    }

    /// run_live_claims, once per tenant.
    CLAIMS_OF on run_live {
        both: "SELECT l.tenant_id, l.run_id, l.position, l.attempt, l.session_id, l.control FROM tenants t
               JOIN run_live l ON l.tenant_id = t.tenant_id AND l.session_id = $1"
    }

    /// When the session that has a run's step was last heard of.
    CLAIM_HEARTBEAT on run_live {
        both: "SELECT s.heartbeat_at FROM run_live l LEFT JOIN worker_sessions s ON s.session_id = l.session_id
               WHERE l.tenant_id = $1 AND l.run_id = $2 AND l.session_id IS NOT NULL"
    }

    // A tenant's live runs, for people who look at them. The key of run_live begins with the tenant.

    /// What waits on the tenant's queues, and what workers have from them.
    QUEUES on run_live {
        both: "SELECT queue, count(CASE WHEN eligible_at <= $1 THEN 1 END) AS ready,
               count(CASE WHEN eligible_at > $1 THEN 1 END) AS delayed, count(session_id) AS running,
               min(CASE WHEN eligible_at <= $1 THEN eligible_at END) AS oldest_ready_at FROM run_live
               WHERE tenant_id = $2 AND ($3 = '' OR workspace = $3)
               AND (eligible_at IS NOT NULL OR session_id IS NOT NULL) GROUP BY queue ORDER BY queue"
    }

    /// run_live_claims.
    CLAIMS_BY_SESSION on run_live {
        both: "SELECT session_id, count(*) AS steps FROM run_live WHERE tenant_id = $1 AND session_id IS NOT NULL
               GROUP BY session_id"
    }

    /// run_live_claims.
    HELD_BY on run_live {
        both: "SELECT run_id, position, attempt, claimed_at FROM run_live WHERE tenant_id = $1 AND session_id = $2
               ORDER BY claimed_at, run_id LIMIT $3"
    }

    ORPHANS_COUNT on run_live {
        both: "SELECT count(*) AS runs FROM run_live l LEFT JOIN worker_sessions s ON s.session_id = l.session_id
               WHERE l.session_id IS NOT NULL AND (s.session_id IS NULL OR s.heartbeat_at < $1)"
    }
}
