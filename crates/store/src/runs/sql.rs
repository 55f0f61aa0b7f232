use crate::sql::{live, statements};

/// Counts over time, of a bounded number of rows. `begun` and `ended` number the spans: -1 is before the first, and -2 not yet.
/// The arguments are the same in all of them: $1 tenant, $2 workflow ('' for any), $3 and $4 ids from and below, $5 the most
/// rows, $6 where the first span begins, $7 how long each is, $8 subject, $9 trigger, $10 workspace (each '' for any), then three
/// attributes by name and value. `seen` are the rows that were read, `runs` those of them that match.
macro_rules! stats {
    ($rows:expr) => {
        concat!(
            "WITH r AS (",
            $rows,
            " LIMIT $5) SELECT
             CASE WHEN r.created_at < $6 THEN -1 ELSE (r.created_at - $6) / $7 END AS begun,
             CASE WHEN r.finished_at IS NULL THEN -2 WHEN r.finished_at < $6 THEN -1 ELSE (r.finished_at - $6) / $7 END AS ended,
             r.state, count(*) AS seen, sum(CASE WHEN ($8 = '' OR r.subject = $8) AND ($9 = '' OR r.trigger_type = $9)
             AND ($10 = '' OR r.workspace = $10)
             AND ($11 = '' OR EXISTS (SELECT 1 FROM run_attrs x WHERE x.tenant_id = r.tenant_id AND x.name = $11
             AND x.value = $12 AND x.run_id = r.run_id))
             AND ($13 = '' OR EXISTS (SELECT 1 FROM run_attrs y WHERE y.tenant_id = r.tenant_id AND y.name = $13
             AND y.value = $14 AND y.run_id = r.run_id))
             AND ($15 = '' OR EXISTS (SELECT 1 FROM run_attrs z WHERE z.tenant_id = r.tenant_id AND z.name = $15
             AND z.value = $16 AND z.run_id = r.run_id)) THEN 1 ELSE 0 END) AS runs, min(r.created_at) AS oldest
             FROM r GROUP BY begun, ended, r.state"
        )
    };
}

/// Runs of one workflow for [`RUN_STATS_WORKFLOW`]. As with lists, SQLite has to be told that one end of the range hardly
/// matters, or it leaves the workflow's index aside.
macro_rules! of_workflow {
    ($lower:literal) => {
        concat!(
            "SELECT tenant_id, run_id, subject, trigger_type, workspace, state, created_at, finished_at FROM runs
             WHERE tenant_id = $1 AND workflow = $2 AND ",
            $lower,
            " AND run_id < $4 ORDER BY run_id DESC"
        )
    };
}

/// Open approvals for [`OPEN_APPROVAL_STATS`]. SQLite without statistics takes the primary key unless it is told the index.
macro_rules! open_approvals {
    ($index:literal) => {
        concat!(
            "SELECT r.tenant_id, r.run_id, r.subject, r.trigger_type, r.workspace, NULL AS state,
             a.requested_at AS created_at, a.resolved_at AS finished_at
             FROM approvals a",
            $index,
            " JOIN runs r ON r.tenant_id = a.tenant_id AND r.run_id = a.run_id
             WHERE a.tenant_id = $1 AND ($2 = '' OR r.workflow = $2) AND a.state = 'requested' AND a.approval_id >= $3
             AND a.approval_id < $4 ORDER BY a.approval_id DESC"
        )
    };
}

statements! {
    /// Keys of runs and run_live, in one statement and so in one snapshot.
    RUN_LOAD on runs { both: live::LOAD_ONE }

    /// Several runs at once, named by their keys one after the other, 32 bytes each. PostgreSQL only: there a query has
    /// its price, and one lookup inside it does not. Looked up one by one, whatever the planner believes of the tables.
    RUNS_LOAD on runs { sqlite: "", postgres: live::LOAD_MANY }

    /// Keys of runs and run_live.
    RUN_NOTES on runs {
        both: "SELECT COALESCE(l.notes, r.notes) AS notes FROM runs r
               LEFT JOIN run_live l ON l.tenant_id = r.tenant_id AND l.run_id = r.run_id AND l.branch = 0
               WHERE r.tenant_id = $1 AND r.run_id = $2"
    }

    RUN_PLAN_HASH on runs {
        both: "SELECT plan_hash FROM runs WHERE tenant_id = $1 AND run_id = $2"
    }

    /// Key of journal. What is newer than the run's row is left out, so that the two agree.
    RUN_DONE on journal {
        both: "SELECT run_id, done_position, done_state, done_attempt, done_failures, done_iteration, done_claimed_at, output,
               error, why, input FROM journal
               WHERE tenant_id = $1 AND run_id = $2 AND seq <= $3 AND done_position IS NOT NULL ORDER BY seq"
    }

    /// What an attempt has answered, by the key of journal. The row that holds the event which tells so has no lower number than the
    /// event.
    ATTEMPT_OUTPUT on journal {
        both: "SELECT output, why FROM journal
               WHERE tenant_id = $1 AND run_id = $2 AND seq >= $3 AND done_position = $4 AND done_attempt = $5
               AND done_state = 'succeeded' ORDER BY seq LIMIT 1"
    }

    RUN_ADDED on steps_added {
        both: "SELECT run_id, position, spec FROM steps_added WHERE tenant_id = $1 AND run_id = $2 ORDER BY position"
    }

    PLAN_GET on plans {
        both: "SELECT body FROM plans WHERE tenant_id = $1 AND plan_hash = $2"
    }

    /// run_live_timers.
    DUE_RUNS on run_live {
        both: "SELECT tenant_id, run_id FROM run_live WHERE wake_at <= $1 ORDER BY wake_at LIMIT $2"
    }

    NEXT_WAKE on run_live {
        both: "SELECT wake_at FROM run_live WHERE wake_at > $1 ORDER BY wake_at LIMIT 1"
    }

    /// Only of a run that has ended, and only from the labels that it was read with.
    RUN_RELABEL on runs {
        both: "UPDATE runs SET labels = $1 WHERE tenant_id = $2 AND run_id = $3 AND state IS NOT NULL
               AND COALESCE(labels, '') = $4"
    }

    ATTR_REMOVE on run_attrs {
        both: "DELETE FROM run_attrs WHERE tenant_id = $1 AND name = $2 AND value = $3 AND run_id = $4"
    }

    RUN_ONE on run_overview {
        both: "SELECT run_id, workspace, workflow, workflow_version, subject, labels, trigger_type, trigger_ref, priority,
               started_by, root_run_id, resumed_from, resume_count, state, detail, reason, position, control, version,
               created_at, deadline_at, finished_at, duration_ms, inputs, output, error, eligible_at,
               (SELECT s.continued_by FROM successors s WHERE s.tenant_id = $1 AND s.run_id = $2)
               FROM run_overview WHERE tenant_id = $1 AND run_id = $2"
    }

    // Lists, newest first: run ids begin with the instant of their start. Each takes the index of its narrowest
    // filter; what is left is checked row by row. The arguments are the same in all of them:
    // $1 tenant, $2 and $3 run ids from and below, $4 and $5 created from and before, $6 states (`,paused,failed,`), $7 workflow,
    // $8 subject, $9 trigger, $10 workspace (each '' for any), then the attributes where there are some, and the page's limit last.

    LIST_ALL on run_overview {
        list: "run_overview o WHERE o", "o.run_id",
            "($6 = '' OR $6 LIKE '%,' || o.state || ',%') AND ($7 = '' OR o.workflow = $7) AND ($8 = '' OR o.subject = $8)
             AND ($9 = '' OR o.trigger_type = $9) AND ($10 = '' OR o.workspace = $10) ORDER BY o.run_id DESC LIMIT $11"
    }

    LIST_WORKFLOW on run_overview {
        list: "run_overview o WHERE o", "o.run_id",
            "($6 = '' OR $6 LIKE '%,' || o.state || ',%') AND o.workflow = $7 AND ($8 = '' OR o.subject = $8)
             AND ($9 = '' OR o.trigger_type = $9) AND ($10 = '' OR o.workspace = $10) ORDER BY o.run_id DESC LIMIT $11"
    }

    LIST_SUBJECT on run_overview {
        list: "run_overview o WHERE o", "o.run_id",
            "($6 = '' OR $6 LIKE '%,' || o.state || ',%') AND ($7 = '' OR o.workflow = $7) AND o.subject = $8
             AND ($9 = '' OR o.trigger_type = $9) AND ($10 = '' OR o.workspace = $10) ORDER BY o.run_id DESC LIMIT $11"
    }

    /// runs_by_trigger, which leaves out the runs that the API started: they are the many.
    LIST_TRIGGER on run_overview {
        list: "run_overview o WHERE o", "o.run_id",
            "($6 = '' OR $6 LIKE '%,' || o.state || ',%') AND ($7 = '' OR o.workflow = $7) AND ($8 = '' OR o.subject = $8)
             AND o.trigger_type <> 'api' AND o.trigger_type = $9 AND ($10 = '' OR o.workspace = $10) ORDER BY o.run_id DESC LIMIT $11"
    }

    /// run_attrs: a label, a searchable input, or `interlock.state` of runs that ended badly; the second and third
    /// attribute are looked up for each run that has the first.
    LIST_ATTR on run_overview {
        list: "run_attrs a JOIN run_overview o ON o.tenant_id = a.tenant_id AND o.run_id = a.run_id
             WHERE a", "a.run_id",
            "($6 = '' OR $6 LIKE '%,' || o.state || ',%') AND ($7 = '' OR o.workflow = $7) AND ($8 = '' OR o.subject = $8)
             AND ($9 = '' OR o.trigger_type = $9) AND ($10 = '' OR o.workspace = $10) AND a.name = $11 AND a.value = $12
             AND ($13 = '' OR EXISTS (SELECT 1 FROM run_attrs b WHERE b.tenant_id = a.tenant_id AND b.name = $13
             AND b.value = $14 AND b.run_id = a.run_id))
             AND ($15 = '' OR EXISTS (SELECT 1 FROM run_attrs c WHERE c.tenant_id = a.tenant_id AND c.name = $15
             AND c.value = $16 AND c.run_id = a.run_id))
             ORDER BY a.run_id DESC LIMIT $17"
    }

    /// run_live: runs that live are few beside those that ended.
    LIST_LIVE on run_overview {
        list: "run_live v JOIN run_overview o ON o.tenant_id = v.tenant_id AND o.run_id = v.run_id
             WHERE v", "v.run_id",
            "$6 LIKE '%,' || v.state || ',%' AND ($7 = '' OR o.workflow = $7) AND ($8 = '' OR o.subject = $8)
             AND ($9 = '' OR o.trigger_type = $9) AND ($10 = '' OR o.workspace = $10) ORDER BY v.run_id DESC LIMIT $11"
    }

    /// How many runs of a tenant live in each state, by its finer words.
    LIVE_COUNTS on run_live {
        both: "SELECT state, detail, reason, count(*) AS runs FROM run_live
               WHERE tenant_id = $1 AND ($2 = '' OR workspace = $2)
               GROUP BY state, detail, reason ORDER BY state, detail, reason"
    }

    /// Key of runs.
    RUN_STATS on runs {
        both: stats!(
            "SELECT tenant_id, run_id, subject, trigger_type, workspace, state, created_at, finished_at FROM runs
             WHERE tenant_id = $1 AND $2 = '' AND run_id >= $3 AND run_id < $4 ORDER BY run_id DESC"
        )
    }

    /// runs_by_workflow.
    RUN_STATS_WORKFLOW on runs {
        sqlite: stats!(of_workflow!("likely(run_id >= $3)")),
        postgres: stats!(of_workflow!("run_id >= $3"))
    }

    /// Runs that live, by the key of run_live: those that began long ago.
    LIVE_STATS on run_live {
        both: stats!(
            "SELECT r.tenant_id, r.run_id, r.subject, r.trigger_type, r.workspace, r.state, r.created_at, r.finished_at
             FROM run_live l JOIN runs r ON r.tenant_id = l.tenant_id AND r.run_id = l.run_id
             WHERE l.tenant_id = $1 AND ($2 = '' OR r.workflow = $2) AND l.run_id >= $3 AND l.run_id < $4 AND l.branch = 0
             ORDER BY l.run_id DESC"
        )
    }

    /// Key of approvals.
    APPROVAL_STATS on approvals {
        both: stats!(
            "SELECT r.tenant_id, r.run_id, r.subject, r.trigger_type, r.workspace, NULL AS state,
             a.requested_at AS created_at, a.resolved_at AS finished_at
             FROM approvals a JOIN runs r ON r.tenant_id = a.tenant_id AND r.run_id = a.run_id
             WHERE a.tenant_id = $1 AND ($2 = '' OR r.workflow = $2) AND a.approval_id >= $3 AND a.approval_id < $4
             ORDER BY a.approval_id DESC"
        )
    }

    /// approvals_by_state: what was asked long ago, and is open.
    OPEN_APPROVAL_STATS on approvals {
        sqlite: stats!(open_approvals!(" INDEXED BY approvals_by_state")),
        postgres: stats!(open_approvals!(""))
    }

    STEPS on steps {
        both: "SELECT position, key, kind, state, attempt, failures, iteration, started_at, finished_at, output, error
               FROM steps WHERE tenant_id = $1 AND run_id = $2 ORDER BY position"
    }
}
