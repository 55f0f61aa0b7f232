//! What `check` looks for: rows that contradict each other. Each statement answers with the tenant, the row, and how
//! many there are in all.

use crate::sql::statements;

/// The rows that a condition finds in `from`, and their number.
macro_rules! found {
    ($id:literal, $from:literal) => {
        concat!("SELECT x.tenant_id, x.", $id, ", count(*) OVER () AS total FROM ", $from, " LIMIT 100")
    };
}

/// The rows of a table that belong to a run which does not exist.
macro_rules! without_run {
    ($table:literal) => {
        concat!(
            "SELECT y.tenant_id, y.run_id, count(*) OVER () AS total FROM (SELECT DISTINCT x.tenant_id, x.run_id FROM ",
            $table,
            " x WHERE NOT EXISTS (SELECT 1 FROM runs r WHERE r.tenant_id = x.tenant_id AND r.run_id = x.run_id)) AS y
             LIMIT 100"
        )
    };
}

/// The same for the first rows of a large table: it takes no longer where there are many.
macro_rules! first_without_run {
    ($table:literal) => {
        concat!(
            "SELECT x.tenant_id, x.run_id, count(*) OVER () AS total FROM (SELECT tenant_id, run_id FROM ",
            $table,
            " LIMIT 1000) AS x
             WHERE NOT EXISTS (SELECT 1 FROM runs r WHERE r.tenant_id = x.tenant_id AND r.run_id = x.run_id) LIMIT 100"
        )
    };
}

statements! {
    CHECK_LIVE_WITHOUT_RUN on run_live {
        both: found!("run_id", "run_live x LEFT JOIN runs r ON r.tenant_id = x.tenant_id AND r.run_id = x.run_id
            WHERE r.run_id IS NULL OR r.state IS NOT NULL")
    }

    CHECK_RUN_WITHOUT_LIVE on runs {
        both: found!("run_id", "runs x LEFT JOIN run_live l ON l.tenant_id = x.tenant_id AND l.run_id = x.run_id
            AND l.branch = 0 WHERE x.state IS NULL AND l.run_id IS NULL")
    }

    CHECK_ENDED on runs {
        both: found!("run_id", "runs x WHERE (x.state IS NULL) <> (x.finished_at IS NULL)
            OR (x.state IS NULL) <> (x.duration_ms IS NULL) OR (x.state IS NULL) <> (x.version IS NULL)
            OR (x.state IS NULL) <> (x.position IS NULL) OR x.duration_ms < 0")
    }

    CHECK_VERSION on journal {
        both: found!("run_id", "run_overview x WHERE x.version <> coalesce((SELECT max(j.seq) FROM journal j
            WHERE j.tenant_id = x.tenant_id AND j.run_id = x.run_id), 0)")
    }

    CHECK_JOURNAL_DENSE on journal {
        both: found!("run_id", "(SELECT DISTINCT g.tenant_id, g.run_id FROM (SELECT j.tenant_id, j.run_id, j.seq, j.first_seq,
            coalesce(lag(j.seq) OVER (PARTITION BY j.tenant_id, j.run_id ORDER BY j.seq), 0) AS before FROM journal j) AS g
            WHERE g.first_seq <> g.before + 1 OR g.seq < g.first_seq) AS x")
    }

    CHECK_PLAN on plans {
        both: found!("run_id", "runs x LEFT JOIN plans p ON p.tenant_id = x.tenant_id AND p.plan_hash = x.plan_hash
            WHERE p.plan_hash IS NULL")
    }

    CHECK_TENANT on runs {
        both: found!("run_id", "runs x LEFT JOIN tenants t ON t.tenant_id = x.tenant_id WHERE t.tenant_id IS NULL")
    }

    CHECK_CLAIM on run_live {
        both: found!("run_id", "run_live x WHERE (x.session_id IS NOT NULL) <> (x.step_state = 'running')
            OR (x.step_state = 'running' AND (x.attempt < 1 OR x.claimed_at IS NULL))")
    }

    CHECK_SESSION on worker_sessions {
        both: found!("run_id", "run_live x WHERE x.session_id IS NOT NULL AND NOT EXISTS
            (SELECT 1 FROM worker_sessions s WHERE s.session_id = x.session_id)")
    }

    CHECK_ELIGIBLE on run_live {
        both: found!("run_id", "run_live x
            WHERE (x.eligible_at IS NOT NULL) <> (x.step_state = 'ready' AND x.control = 'active')")
    }

    CHECK_SUBJECT on subjects {
        both: found!("run_id", "subjects x LEFT JOIN run_live l ON l.tenant_id = x.tenant_id AND l.run_id = x.run_id
            WHERE l.run_id IS NULL")
    }

    CHECK_ACTIVE on subjects {
        both: found!("run_id", "run_live x JOIN runs r ON r.tenant_id = x.tenant_id AND r.run_id = x.run_id
            WHERE r.subject IS NOT NULL AND x.step_state <> 'pending' AND NOT EXISTS (SELECT 1 FROM subjects s
            WHERE s.tenant_id = r.tenant_id AND s.subject = r.subject AND s.run_id = r.run_id)")
    }

    CHECK_QUEUE on subject_queue {
        both: found!("run_id", "subject_queue x LEFT JOIN run_live l ON l.tenant_id = x.tenant_id AND l.run_id = x.run_id
            WHERE l.run_id IS NULL OR l.step_state <> 'pending'")
    }

    CHECK_QUEUED on run_live {
        both: found!("run_id", "run_live x WHERE x.step_state = 'pending' AND NOT EXISTS
            (SELECT 1 FROM runs r JOIN subject_queue q ON q.tenant_id = r.tenant_id AND q.subject = r.subject
            AND q.run_id = r.run_id WHERE r.tenant_id = x.tenant_id AND r.run_id = x.run_id)")
    }

    CHECK_WAIT on waits {
        both: found!("run_id", "waits x LEFT JOIN run_live l ON l.tenant_id = x.tenant_id AND l.run_id = x.run_id
            WHERE l.run_id IS NULL OR l.position <> x.position OR l.step_state <> 'waiting_signal'")
    }

    CHECK_WAITING on run_live {
        both: found!("run_id", "run_live x WHERE x.step_state = 'waiting_signal' AND x.wake_at IS NULL AND NOT EXISTS
            (SELECT 1 FROM waits w WHERE w.tenant_id = x.tenant_id AND w.run_id = x.run_id AND w.position = x.position)")
    }

    CHECK_SIGNAL on signals {
        both: found!("signal_id", "signals x WHERE (x.consumed_by IS NULL) <> (x.consumed_at IS NULL)
            OR (x.consumed_by IS NULL) <> (x.consumed_step IS NULL)")
    }

    CHECK_APPROVAL on approvals {
        both: found!("approval_id", "approvals x LEFT JOIN run_live l ON l.tenant_id = x.tenant_id AND l.run_id = x.run_id
            WHERE x.state = 'requested'
            AND (l.run_id IS NULL OR l.position <> x.position OR l.step_state <> 'waiting_approval')")
    }

    CHECK_ASKING on run_live {
        both: found!("run_id", "run_live x WHERE x.state = 'waiting_approval' AND NOT EXISTS
            (SELECT 1 FROM approvals a WHERE a.tenant_id = x.tenant_id AND a.run_id = x.run_id
            AND a.position = x.position AND a.state = 'requested')")
    }

    CHECK_RESOLVED on approvals {
        both: found!("approval_id", "approvals x WHERE (x.state = 'requested') <> (x.resolved_at IS NULL)")
    }

    CHECK_QUORUM on approvals {
        both: found!("approval_id", "approvals x WHERE x.state = 'approved' AND x.quorum > (SELECT count(*) FROM votes v
            WHERE v.tenant_id = x.tenant_id AND v.approval_id = x.approval_id AND v.approve = 1)")
    }

    CHECK_VOTE on votes {
        both: found!("approval_id", "votes x WHERE NOT EXISTS (SELECT 1 FROM approvals a WHERE a.tenant_id = x.tenant_id
            AND a.approval_id = x.approval_id)")
    }

    CHECK_OUTCOME on receipts {
        both: found!("receipt_id", "receipts x WHERE (x.state = 'intent' OR x.state = 'in_doubt') <> (x.outcome_at IS NULL)")
    }

    CHECK_INTENT on receipts {
        both: found!("receipt_id", "receipts x LEFT JOIN run_live l ON l.tenant_id = x.tenant_id AND l.run_id = x.run_id
            WHERE x.state = 'intent' AND x.effect = 'unsafe' AND (l.run_id IS NULL OR l.position <> x.position
            OR (l.step_state <> 'running' AND l.step_state <> 'in_doubt'))")
    }

    CHECK_OPEN_EFFECT on receipts {
        both: found!("receipt_id", "receipts x JOIN runs r ON r.tenant_id = x.tenant_id AND r.run_id = x.run_id
            WHERE r.state = 'succeeded' AND x.effect = 'unsafe' AND (x.state = 'intent' OR x.state = 'in_doubt')")
    }

    CHECK_MESSAGE on outbox {
        both: found!("run_id", "outbox x WHERE x.delivered_at IS NOT NULL AND x.dead_at IS NOT NULL")
    }

    CHECK_WORKFLOW on workflows {
        both: found!("name", "workflows x WHERE x.latest_version <> (SELECT count(*) FROM workflow_versions v
            WHERE v.tenant_id = x.tenant_id AND v.name = x.name AND v.version <= x.latest_version AND v.version > 0)")
    }

    CHECK_JOURNAL_RUN on journal {
        both: without_run!("journal")
    }

    CHECK_STEP_RUN on steps_added {
        both: without_run!("steps_added")
    }

    CHECK_APPROVAL_RUN on approvals {
        both: without_run!("approvals")
    }

    CHECK_RECEIPT_RUN on receipts {
        both: without_run!("receipts")
    }

    CHECK_OUTBOX_RUN on outbox {
        both: without_run!("outbox")
    }

    CHECK_OUTPUT_RUN on output {
        both: without_run!("output")
    }

    CHECK_OUTPUT_HEAD_RUN on output_heads {
        both: without_run!("output_heads")
    }

    CHECK_ATTR_RUN on run_attrs {
        both: without_run!("run_attrs")
    }

    /// The first live runs whose tenant, plan or events are not there.
    CHECK_FIRST_LIVE on run_live {
        both: found!("run_id", "(SELECT l.tenant_id, l.run_id, r.plan_hash FROM run_live l JOIN runs r
            ON r.tenant_id = l.tenant_id AND r.run_id = l.run_id LIMIT 1000) AS x
            WHERE NOT EXISTS (SELECT 1 FROM tenants t WHERE t.tenant_id = x.tenant_id)
            OR NOT EXISTS (SELECT 1 FROM plans p WHERE p.tenant_id = x.tenant_id AND p.plan_hash = x.plan_hash)
            OR NOT EXISTS (SELECT 1 FROM journal j WHERE j.tenant_id = x.tenant_id AND j.run_id = x.run_id)")
    }

    CHECK_FIRST_EVENTS on journal {
        both: first_without_run!("journal")
    }

    CHECK_FIRST_RECEIPTS on receipts {
        both: first_without_run!("receipts")
    }

    CHECK_FIRST_APPROVALS on approvals {
        both: first_without_run!("approvals")
    }

    /// The live runs of all tenants, by key.
    CHECK_LIVE_RUNS on run_live {
        both: "SELECT tenant_id, run_id FROM run_live WHERE branch = 0 AND (tenant_id, run_id) > ($1, $2)
               ORDER BY tenant_id, run_id LIMIT $3"
    }

    /// The next runs of a tenant, by id.
    CHECK_RUNS on runs {
        both: "SELECT run_id FROM runs WHERE tenant_id = $1 AND run_id > $2 ORDER BY run_id LIMIT $3"
    }

    CHECK_EVENTS on journal {
        both: "SELECT run_id, first_seq, seq, events FROM journal WHERE tenant_id = $1 AND run_id >= $2
               AND run_id <= $3"
    }

    CHECK_FEED on tenant_feed {
        both: "SELECT cursor_from, cursor_to, sealed_at, entries FROM tenant_feed WHERE tenant_id = $1 AND cursor_to > $2
               ORDER BY cursor_to LIMIT $3"
    }

    /// Runs that ended between two instants, and their last events.
    CHECK_FED on runs {
        both: "SELECT run_id, version FROM runs WHERE tenant_id = $1 AND finished_at > $2 AND finished_at < $3"
    }
}
