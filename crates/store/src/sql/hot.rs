//! The hot path: what a start, a completion and an end write. SQLite executes them once per change set; PostgreSQL
//! once per group, over arrays sorted by key, so that locks are taken in one order everywhere.
//!
//! On PostgreSQL rows are found by a scalar subquery over the whole key and updated by their place (`ctid`). A plain
//! join leaves the planner a choice, and without statistics, or with those of a table that was empty a minute ago, it
//! reads all of `run_live` once per group: 1,500 sets a second instead of 22,000. Looked up this way there is only one
//! plan. A row that another transaction changes meanwhile has moved, so it is not updated, and the row count tells. The
//! guard stands beside the place all the same: before 14.20, 15.15, 16.11, 17.7 and 18.1 PostgreSQL follows the row to
//! where it has moved without looking at `ctid` again, and only the other conditions are looked at once more.

use super::{live, statements};

statements! {
    /// The first statement of a group's transaction on PostgreSQL, the last one on SQLite. A unique violation means
    /// that the group was committed before, by an attempt whose answer was lost.
    GROUP_INSERT on commit_groups {
        both: "INSERT INTO commit_groups (lane_id, group_no, at, entries) VALUES ($1, $2, $3, $4)"
    }

    /// For a plan that is new, or has not been used for an hour: a sweep of it waits for this commit and leaves it be,
    /// or has removed it before and it is written anew.
    PLAN_USE on plans {
        both: "INSERT INTO plans (tenant_id, plan_hash, workflow, version, body, used_at) VALUES ($1, $2, $3, $4, $5, $6)
               ON CONFLICT (tenant_id, plan_hash) DO UPDATE SET used_at = CASE
               WHEN plans.used_at < excluded.used_at THEN excluded.used_at ELSE plans.used_at END"
    }

    /// Guard: one row, or the run exists.
    RUN_INSERT on runs {
        sqlite: "INSERT INTO runs (tenant_id, run_id, workspace, workflow, workflow_version, plan_hash, inputs, subject,
                 labels, trigger_type, trigger_ref, priority, started_by, root_run_id, resumed_from, resume_count,
                 created_at, deadline_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)
                 ON CONFLICT (tenant_id, run_id) DO NOTHING",
        postgres: "INSERT INTO runs (tenant_id, run_id, workspace, workflow, workflow_version, plan_hash, inputs, subject,
                   labels, trigger_type, trigger_ref, priority, started_by, root_run_id, resumed_from, resume_count,
                   created_at, deadline_at)
                   SELECT unnest($1::bytea[]), unnest($2::bytea[]), unnest($3::text[]), unnest($4::text[]),
                   unnest($5::bigint[]), unnest($6::bytea[]), unnest($7::text[]), unnest($8::text[]),
                   unnest($9::text[]), unnest($10::text[]), unnest($11::text[]), unnest($12::bigint[]),
                   unnest($13::text[]), unnest($14::bytea[]), unnest($15::bytea[]), unnest($16::bigint[]),
                   unnest($17::bigint[]), unnest($18::bigint[])
                   ON CONFLICT (tenant_id, run_id) DO NOTHING"
    }

    /// Written once, when the run ends. Guard: it has not ended before.
    RUN_END on runs {
        sqlite: "UPDATE runs SET state = ?3, reason = ?4, position = ?5, version = ?6, finished_at = ?7, duration_ms = ?8,
                 output = ?9, error = ?10, notes = ?11 WHERE tenant_id = ?1 AND run_id = ?2 AND state IS NULL",
        postgres: "UPDATE runs r SET state = u.state, reason = u.reason, position = u.position, version = u.version,
                   finished_at = u.finished_at, duration_ms = u.duration_ms, output = u.output, error = u.error,
                   notes = u.notes
                   FROM (SELECT a.*, (SELECT k.ctid FROM runs k WHERE k.tenant_id = a.tenant_id AND k.run_id = a.run_id)
                   AS place
                   FROM (SELECT unnest($1::bytea[]) AS tenant_id, unnest($2::bytea[]) AS run_id,
                   unnest($3::text[]) AS state, unnest($4::text[]) AS reason, unnest($5::bigint[]) AS position,
                   unnest($6::bigint[]) AS version, unnest($7::bigint[]) AS finished_at,
                   unnest($8::bigint[]) AS duration_ms, unnest($9::text[]) AS output, unnest($10::text[]) AS error,
                   unnest($11::text[]) AS notes) AS a OFFSET 0) AS u
                   WHERE r.ctid = u.place AND r.state IS NULL"
    }

    LIVE_INSERT on run_live { sqlite: live::INSERT_SQLITE, postgres: live::INSERT_POSTGRES }

    /// Guard: one row, or the run has moved on.
    LIVE_PUT on run_live { sqlite: live::PUT_SQLITE, postgres: live::PUT_POSTGRES }

    /// The hottest statement: no indexed column stands in the SET list, which SQLite would rewrite index entries for.
    LIVE_ADVANCE on run_live { sqlite: live::ADVANCE_SQLITE, postgres: live::ADVANCE_POSTGRES }

    /// Guard: one row, or the run has moved on.
    LIVE_DELETE on run_live {
        sqlite: "DELETE FROM run_live WHERE tenant_id = ?1 AND run_id = ?2 AND branch = 0 AND version = ?3",
        postgres: "DELETE FROM run_live l
                   USING (SELECT a.expected, (SELECT k.ctid FROM run_live k WHERE k.tenant_id = a.tenant_id
                   AND k.run_id = a.run_id AND k.branch = 0 AND k.version = a.expected) AS place
                   FROM (SELECT unnest($1::bytea[]) AS tenant_id, unnest($2::bytea[]) AS run_id,
                   unnest($3::bigint[]) AS expected) AS a OFFSET 0) AS u
                   WHERE l.ctid = u.place AND l.version = u.expected"
    }

    JOURNAL_INSERT on journal {
        sqlite: "INSERT INTO journal (tenant_id, run_id, seq, first_seq, at, events, initiator, person, context_meta,
                 done_position, done_state, done_attempt, done_failures, done_iteration, done_claimed_at, output, error,
                 why, input)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)",
        postgres: "INSERT INTO journal (tenant_id, run_id, seq, first_seq, at, events, initiator, person, context_meta,
                   done_position, done_state, done_attempt, done_failures, done_iteration, done_claimed_at, output,
                   error, why, input)
                   SELECT unnest($1::bytea[]), unnest($2::bytea[]), unnest($3::bigint[]), unnest($4::bigint[]),
                   unnest($5::bigint[]), unnest($6::text[]), unnest($7::text[]), unnest($8::text[]),
                   unnest($9::text[]), unnest($10::bigint[]), unnest($11::text[]), unnest($12::bigint[]),
                   unnest($13::bigint[]), unnest($14::bigint[]), unnest($15::bigint[]), unnest($16::text[]),
                   unnest($17::text[]), unnest($18::text[]), unnest($19::text[])"
    }

    /// A tenant's limits, for the writer of SQLite.
    TENANT_LIMITS on tenants {
        sqlite: "SELECT tenant_id, max_concurrency, max_runs_per_min, rate_next_at, pending_runs_max, disabled_at FROM tenants
                 WHERE tenant_id = ?1",
        postgres: ""
    }

    /// Keeps tenants of which runs begin from being disabled before the commit ([`crate::begin_lock`]). The rows are the locks
    /// that were not to be had, because one of the tenants is being disabled. These are locks of no row: many lanes hold them
    /// at once, and nothing is written for them. Sent before all that looks at the tenants.
    BEGIN_LOCK on tenants {
        sqlite: "",
        postgres: "SELECT k FROM unnest($1::bigint[]) AS k WHERE NOT pg_try_advisory_xact_lock_shared(k)"
    }

    /// The tenants of a group that have a limit, locked in key order so that two servers cannot admit past it.
    LIMITED_LOCK on tenants {
        sqlite: "",
        postgres: "SELECT tenant_id FROM tenants
                   WHERE tenant_id = ANY($1::bytea[]) AND (max_concurrency IS NOT NULL OR max_runs_per_min IS NOT NULL
                   OR pending_runs_max IS NOT NULL)
                   ORDER BY tenant_id FOR UPDATE"
    }

    /// After a lock was not to be had: the tenants that LIMITED_LOCK or WORKFLOW_LOCK would lock, and that
    /// another transaction has locked.
    LIMITED_LOCKED on tenants {
        sqlite: "",
        postgres: "WITH free AS (SELECT tenant_id FROM tenants
                   WHERE tenant_id = ANY($1::bytea[]) ORDER BY tenant_id FOR UPDATE SKIP LOCKED)
                   SELECT t.tenant_id FROM tenants t
                   WHERE t.tenant_id = ANY($1::bytea[]) AND (t.max_concurrency IS NOT NULL
                   OR t.max_runs_per_min IS NOT NULL OR t.pending_runs_max IS NOT NULL OR t.tenant_id = ANY($2::bytea[]))
                   AND t.tenant_id NOT IN (SELECT f.tenant_id FROM free f)"
    }

    /// The runs among these whose row another transaction has locked.
    LIVE_LOCKED on run_live {
        sqlite: "",
        postgres: "WITH asked AS (SELECT unnest($1::bytea[]) AS tenant_id, unnest($2::bytea[]) AS run_id),
                   free AS (SELECT l.tenant_id, l.run_id FROM asked a JOIN run_live l
                   ON l.tenant_id = a.tenant_id AND l.run_id = a.run_id ORDER BY 1, 2 FOR UPDATE OF l SKIP LOCKED)
                   SELECT l.tenant_id, l.run_id FROM asked a JOIN run_live l
                   ON l.tenant_id = a.tenant_id AND l.run_id = a.run_id
                   WHERE NOT EXISTS (SELECT 1 FROM free f WHERE f.tenant_id = l.tenant_id AND f.run_id = l.run_id)"
    }

    /// Where they stand, and which tenants are disabled. A statement of its own, because its snapshot must be taken once the
    /// locks are held.
    LIMITED_USAGE on tenants {
        sqlite: "",
        postgres: "SELECT t.tenant_id, t.max_concurrency, t.max_runs_per_min, t.rate_next_at, t.pending_runs_max,
                   CASE WHEN t.max_concurrency IS NULL THEN 0 ELSE (SELECT count(*) FROM run_live l
                       WHERE l.tenant_id = t.tenant_id AND l.session_id IS NOT NULL) END,
                   CASE WHEN t.pending_runs_max IS NULL THEN 0 ELSE (SELECT count(*) FROM (SELECT 1 FROM run_live l
                       WHERE l.tenant_id = t.tenant_id AND l.state = 'pending' LIMIT t.pending_runs_max) AS p) END,
                   t.disabled_at
                   FROM tenants t
                   WHERE t.tenant_id = ANY($1::bytea[]) AND (t.max_concurrency IS NOT NULL
                   OR t.max_runs_per_min IS NOT NULL OR t.pending_runs_max IS NOT NULL OR t.disabled_at IS NOT NULL)"
    }

    /// Instead of LIMITED_LOCK where a workflow of the group has limits: its tenant is locked as well ($2). One statement,
    /// because tenants locked by two would not be locked in one order.
    WORKFLOW_LOCK on tenants {
        sqlite: "",
        postgres: "SELECT tenant_id FROM tenants
                   WHERE tenant_id = ANY($1::bytea[]) AND (max_concurrency IS NOT NULL OR max_runs_per_min IS NOT NULL
                   OR pending_runs_max IS NOT NULL OR tenant_id = ANY($2::bytea[]))
                   ORDER BY tenant_id FOR UPDATE"
    }

    /// Where the limited workflows of a group stand; $3 says whose claims are counted. run_live_claims, and the key of
    /// runs once per claim of the tenant: runs of versions without a limit count too, and have nothing to be found by.
    WORKFLOW_USAGE on run_live {
        sqlite: "",
        postgres: "SELECT a.tenant_id, a.workflow,
                   CASE WHEN a.counted = 0 THEN 0 ELSE (SELECT count(*) FROM run_live l
                       WHERE l.tenant_id = a.tenant_id AND l.session_id IS NOT NULL AND (SELECT r.workflow FROM runs r
                       WHERE r.tenant_id = l.tenant_id AND r.run_id = l.run_id) = a.workflow) END,
                   coalesce((SELECT w.rate_next_at FROM workflow_rates w WHERE w.tenant_id = a.tenant_id
                       AND w.workflow = a.workflow), 0)
                   FROM (SELECT unnest($1::bytea[]) AS tenant_id, unnest($2::text[]) AS workflow,
                   unnest($3::bigint[]) AS counted) AS a"
    }

    /// Live claims of a workflow, whatever the version of its runs.
    WORKFLOW_CLAIMS on run_live {
        sqlite: "SELECT count(*) FROM run_live l INDEXED BY run_live_claims
                 WHERE l.tenant_id = ?1 AND l.session_id IS NOT NULL AND (SELECT r.workflow FROM runs r
                 WHERE r.tenant_id = l.tenant_id AND r.run_id = l.run_id) = ?2",
        postgres: "SELECT count(*) FROM run_live l
                   WHERE l.tenant_id = $1 AND l.session_id IS NOT NULL AND (SELECT r.workflow FROM runs r
                   WHERE r.tenant_id = l.tenant_id AND r.run_id = l.run_id) = $2"
    }

    WORKFLOW_RATE on workflow_rates {
        both: "SELECT rate_next_at FROM workflow_rates WHERE tenant_id = $1 AND workflow = $2"
    }

    WORKFLOW_RATE_PUT on workflow_rates {
        both: "INSERT INTO workflow_rates (tenant_id, workflow, rate_next_at) VALUES ($1, $2, $3)
               ON CONFLICT (tenant_id, workflow) DO UPDATE SET rate_next_at = excluded.rate_next_at"
    }

    TENANT_RATE on tenants {
        both: "SELECT rate_next_at FROM tenants WHERE tenant_id = $1"
    }

    /// Wakes the other servers, after a commit.
    NOTIFY on commit_groups {
        sqlite: "",
        postgres: "SELECT pg_notify('interlock', $1)"
    }

    /// Live claims of a tenant, derived from the claims index: no counter that could drift.
    CLAIMS_COUNT on run_live {
        both: "SELECT count(*) FROM run_live WHERE tenant_id = $1 AND session_id IS NOT NULL"
    }

    /// Stops counting at the limit: it is only compared with it.
    PENDING_COUNT on run_live {
        both: "SELECT count(*) FROM (SELECT 1 FROM run_live WHERE tenant_id = $1 AND state = 'pending' LIMIT $2) AS p"
    }

    RATE_UPDATE on tenants {
        both: "UPDATE tenants SET rate_next_at = $1 WHERE tenant_id = $2"
    }

    GROUP_EXISTS on commit_groups {
        both: "SELECT 1 FROM commit_groups WHERE lane_id = $1 AND group_no = $2"
    }

    // The questions of the slow path on PostgreSQL: which sets does a guard refuse?

    INSPECT_VERSION on run_live {
        both: "SELECT version FROM run_live WHERE tenant_id = $1 AND run_id = $2 AND branch = 0"
    }

    INSPECT_RUN on runs {
        both: "SELECT 1 FROM runs WHERE tenant_id = $1 AND run_id = $2"
    }

    TENANT_EXISTS on tenants {
        both: "SELECT 1 FROM tenants WHERE tenant_id = $1"
    }
}
