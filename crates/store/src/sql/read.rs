//! What is read. Every statement names the index that serves it.

use super::statements;

statements! {
    /// Keys of runs and run_live, in one statement and so in one snapshot.
    RUN_LOAD on runs {
        both: "SELECT r.run_id, r.workspace, r.plan_hash, r.inputs, r.subject, r.labels, r.trigger_type, r.trigger_ref,
               r.priority, r.started_by, r.root_run_id, r.resumed_from, r.resume_count, r.created_at, r.deadline_at,
               r.state, r.reason, r.position, r.version, r.finished_at, r.notes,
               l.version, l.control, l.state, l.detail, l.reason, l.position, l.step_state, l.attempt, l.failures,
               l.iteration, l.eligible_at, l.session_id, l.claimed_at, l.step_timeout_at, l.step_data, l.notes
               FROM runs r
               LEFT JOIN run_live l ON l.tenant_id = r.tenant_id AND l.run_id = r.run_id AND l.branch = 0
               WHERE r.tenant_id = $1 AND r.run_id = $2"
    }

    /// Several runs at once, named by their keys one after the other, 32 bytes each. PostgreSQL only: there a query has
    /// its price, and one lookup inside it does not. Looked up one by one, whatever the planner believes of the tables.
    RUNS_LOAD on runs {
        sqlite: "",
        postgres: "SELECT k.tenant_id, f.*
                   FROM (SELECT substring($1::bytea FROM n * 32 + 1 FOR 16) AS tenant_id,
                   substring($1::bytea FROM n * 32 + 17 FOR 16) AS run_id
                   FROM generate_series(0, octet_length($1::bytea) / 32 - 1) AS n) AS k
                   CROSS JOIN LATERAL (SELECT r.run_id, r.workspace, r.plan_hash, r.inputs, r.subject, r.labels,
                   r.trigger_type, r.trigger_ref, r.priority, r.started_by, r.root_run_id, r.resumed_from,
                   r.resume_count, r.created_at, r.deadline_at, r.state, r.reason, r.position, r.version,
                   r.finished_at, r.notes, l.version, l.control, l.state, l.detail, l.reason, l.position,
                   l.step_state, l.attempt, l.failures, l.iteration, l.eligible_at, l.session_id, l.claimed_at,
                   l.step_timeout_at, l.step_data, l.notes
                   FROM runs r
                   LEFT JOIN run_live l ON l.tenant_id = r.tenant_id AND l.run_id = r.run_id AND l.branch = 0
                   WHERE r.tenant_id = k.tenant_id AND r.run_id = k.run_id OFFSET 0) AS f"
    }

    /// Key of journal. What is newer than the run's row is left out, so that the two agree.
    RUN_DONE on journal {
        both: "SELECT run_id, done_position, done_state, done_attempt, done_failures, done_iteration, done_claimed_at, output,
               error, why, input FROM journal
               WHERE tenant_id = $1 AND run_id = $2 AND seq <= $3 AND done_position IS NOT NULL ORDER BY seq"
    }

    RUN_ADDED on steps_added {
        both: "SELECT run_id, position, spec FROM steps_added WHERE tenant_id = $1 AND run_id = $2 ORDER BY position"
    }

    PLAN_GET on plans {
        both: "SELECT body FROM plans WHERE tenant_id = $1 AND plan_hash = $2"
    }

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

    /// The same without those of some workflows, a JSON list: what their limits hold back stands in nobody's way. The key
    /// of runs, once per run that is passed over or read.
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

    /// run_live_timers.
    DUE_RUNS on run_live {
        both: "SELECT tenant_id, run_id FROM run_live WHERE wake_at <= $1 ORDER BY wake_at LIMIT $2"
    }

    NEXT_WAKE on run_live {
        both: "SELECT wake_at FROM run_live WHERE wake_at > $1 ORDER BY wake_at LIMIT 1"
    }

    /// run_live_claims: the claims that live now are few, whatever the number of runs.
    LOST_CLAIMS on run_live {
        both: "SELECT l.tenant_id, l.run_id, l.position, l.attempt, l.session_id, l.control FROM run_live l
               LEFT JOIN worker_sessions s ON s.session_id = l.session_id
               WHERE l.session_id IS NOT NULL
               AND (s.session_id IS NULL OR s.state = 'offline' OR s.lease_expires_at < $1) LIMIT $2"
    }

    /// When the session that has a run's step was last heard of.
    CLAIM_HEARTBEAT on run_live {
        both: "SELECT s.heartbeat_at FROM run_live l LEFT JOIN worker_sessions s ON s.session_id = l.session_id
               WHERE l.tenant_id = $1 AND l.run_id = $2 AND l.session_id IS NOT NULL"
    }

    ORPHANS_COUNT on run_live {
        both: "SELECT count(*) AS runs FROM run_live l LEFT JOIN worker_sessions s ON s.session_id = l.session_id
               WHERE l.session_id IS NOT NULL AND (s.session_id IS NULL OR s.heartbeat_at < $1)"
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

    SESSIONS on worker_sessions {
        both: "SELECT session_id, tenant_id, worker, build_id, queues, slots, state, registered_at, lease_expires_at,
               heartbeat_at, tasks, capabilities, unlisted FROM worker_sessions ORDER BY session_id"
    }

    SESSION_GET on worker_sessions {
        both: "SELECT session_id, tenant_id, worker, build_id, queues, slots, state, registered_at, lease_expires_at,
               heartbeat_at, tasks, capabilities, unlisted FROM worker_sessions WHERE session_id = $1"
    }

    TENANTS on tenants {
        both: "SELECT tenant_id, name, max_concurrency, max_runs_per_min, pending_runs_max, weight, created_at,
               settings, disabled_at FROM tenants
               ORDER BY tenant_id"
    }

    TENANT_GET on tenants {
        both: "SELECT tenant_id, name, max_concurrency, max_runs_per_min, pending_runs_max, weight, created_at,
               settings, disabled_at FROM tenants
               WHERE tenant_id = $1"
    }

    TENANT_NAMED on tenants {
        both: "SELECT tenant_id, name, max_concurrency, max_runs_per_min, pending_runs_max, weight, created_at,
               settings, disabled_at FROM tenants
               WHERE name = $1"
    }

    IDEMPOTENCY_GET on idempotency {
        both: "SELECT source, request_hash, state, run_id, response, error, attempts, created_at, updated_at, expires_at,
               lock_expires_at FROM idempotency WHERE tenant_id = $1 AND client = $2 AND key = $3"
    }

    SUBJECT_GET on subjects {
        both: "SELECT run_id FROM subjects WHERE tenant_id = $1 AND subject = $2"
    }

    /// Key of subject_queue, in its order.
    SUBJECT_QUEUED on subject_queue {
        both: "SELECT run_id, cancels FROM subject_queue WHERE tenant_id = $1 AND subject = $2 ORDER BY run_id LIMIT $3"
    }

    /// Subjects with somebody who waits where nobody is in the way, or nobody should be. The queue is short: it holds
    /// runs that wait now.
    SUBJECTS_UNTENDED on subject_queue {
        both: "SELECT DISTINCT q.tenant_id, q.subject FROM subject_queue q
               LEFT JOIN subjects s ON s.tenant_id = q.tenant_id AND s.subject = q.subject
               WHERE s.run_id IS NULL OR q.cancels = 1 LIMIT $1"
    }

    /// waits_by_key: first come, first served.
    WAITS_OPEN on waits {
        both: "SELECT run_id, position, accept_from, opened_at FROM waits WHERE tenant_id = $1 AND type = $2 AND key = $3
               AND (opened_at, run_id) > ($4, $5) ORDER BY opened_at, run_id LIMIT $6"
    }

    /// signals_pending.
    SIGNALS_PENDING on signals {
        both: "SELECT signal_id, received_at, payload, broadcast FROM signals
               WHERE tenant_id = $1 AND type = $2 AND key = $3 AND consumed_by IS NULL AND received_at >= $4
               ORDER BY received_at, signal_id LIMIT $5"
    }

    /// The same, but for those for everybody that the run has heard.
    SIGNALS_UNHEARD on signals {
        both: "SELECT s.signal_id, s.received_at, s.payload, s.broadcast FROM signals s
               WHERE s.tenant_id = $1 AND s.type = $2 AND s.key = $3 AND s.consumed_by IS NULL AND s.received_at >= $4
               AND (s.broadcast = 0 OR NOT EXISTS (SELECT 1 FROM signals_heard h WHERE h.tenant_id = s.tenant_id
               AND h.run_id = $5 AND h.signal_id = s.signal_id))
               ORDER BY s.received_at, s.signal_id LIMIT $6"
    }

    /// The sweep that matches what two commits at the same instant could have missed.
    UNMATCHED on waits {
        both: "SELECT DISTINCT w.tenant_id, w.type, w.key FROM waits w
               WHERE EXISTS (SELECT 1 FROM signals s WHERE s.tenant_id = w.tenant_id AND s.type = w.type
               AND s.key = w.key AND s.consumed_by IS NULL AND s.received_at >= w.accept_from AND (s.broadcast = 0 OR NOT EXISTS
               (SELECT 1 FROM signals_heard h WHERE h.tenant_id = s.tenant_id AND h.run_id = w.run_id
               AND h.signal_id = s.signal_id))) LIMIT $1"
    }

    EVENTS on journal {
        both: "SELECT run_id, first_seq, at, events, initiator, person, context_meta FROM journal
               WHERE tenant_id = $1 AND run_id = $2 AND seq > $3 ORDER BY seq LIMIT $4"
    }

    FEED_READ on tenant_feed {
        both: "SELECT cursor_from, cursor_to, entries FROM tenant_feed WHERE tenant_id = $1 AND cursor_to > $2
               ORDER BY cursor_to LIMIT $3"
    }

    FEED_LAST on tenant_feed {
        both: "SELECT cursor_to FROM tenant_feed WHERE tenant_id = $1 ORDER BY cursor_to DESC LIMIT 1"
    }

    FEED_EVENTS on journal {
        both: "SELECT run_id, first_seq, at, events FROM journal
               WHERE tenant_id = $1 AND run_id = $2 AND seq >= $3 AND seq <= $4 ORDER BY seq"
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
    // $1 tenant, $2 and $3 run ids from and below, $4 and $5 created from and before, $6 state, $7 workflow,
    // $8 subject, $9 trigger, $10 workspace (each '' for any), then the attributes where there are some, and the page's limit last.

    LIST_ALL on run_overview {
        list: "run_overview o WHERE o", "o.run_id",
            "($6 = '' OR o.state = $6) AND ($7 = '' OR o.workflow = $7) AND ($8 = '' OR o.subject = $8)
             AND ($9 = '' OR o.trigger_type = $9) AND ($10 = '' OR o.workspace = $10) ORDER BY o.run_id DESC LIMIT $11"
    }

    LIST_WORKFLOW on run_overview {
        list: "run_overview o WHERE o", "o.run_id",
            "($6 = '' OR o.state = $6) AND o.workflow = $7 AND ($8 = '' OR o.subject = $8)
             AND ($9 = '' OR o.trigger_type = $9) AND ($10 = '' OR o.workspace = $10) ORDER BY o.run_id DESC LIMIT $11"
    }

    LIST_SUBJECT on run_overview {
        list: "run_overview o WHERE o", "o.run_id",
            "($6 = '' OR o.state = $6) AND ($7 = '' OR o.workflow = $7) AND o.subject = $8
             AND ($9 = '' OR o.trigger_type = $9) AND ($10 = '' OR o.workspace = $10) ORDER BY o.run_id DESC LIMIT $11"
    }

    /// runs_by_trigger, which leaves out the runs that the API started: they are the many.
    LIST_TRIGGER on run_overview {
        list: "run_overview o WHERE o", "o.run_id",
            "($6 = '' OR o.state = $6) AND ($7 = '' OR o.workflow = $7) AND ($8 = '' OR o.subject = $8)
             AND o.trigger_type <> 'api' AND o.trigger_type = $9 AND ($10 = '' OR o.workspace = $10) ORDER BY o.run_id DESC LIMIT $11"
    }

    /// run_attrs: a label, a searchable input, or `interlock.state` of runs that ended badly; the second and third
    /// attribute are looked up for each run that has the first.
    LIST_ATTR on run_overview {
        list: "run_attrs a JOIN run_overview o ON o.tenant_id = a.tenant_id AND o.run_id = a.run_id
             WHERE a", "a.run_id",
            "($6 = '' OR o.state = $6) AND ($7 = '' OR o.workflow = $7) AND ($8 = '' OR o.subject = $8)
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
            "v.state = $6 AND ($7 = '' OR o.workflow = $7) AND ($8 = '' OR o.subject = $8)
             AND ($9 = '' OR o.trigger_type = $9) AND ($10 = '' OR o.workspace = $10) ORDER BY v.run_id DESC LIMIT $11"
    }

    // Who waits for what: by type and key, by type, or all of a tenant. Pages go on after a wait: $2 type, $3 key,
    // $4 opened_at, $5 run id of the last one.

    WAITS_LIST on waits {
        both: "SELECT run_id, position, type, key, accept_from, opened_at FROM waits
               WHERE tenant_id = $1 AND (type, key, opened_at, run_id) > ($2, $3, $4, $5)
               AND ($6 = '' OR EXISTS (SELECT 1 FROM run_live l WHERE l.tenant_id = waits.tenant_id
               AND l.run_id = waits.run_id AND l.branch = waits.branch AND l.workspace = $6))
               ORDER BY type, key, opened_at, run_id LIMIT $7"
    }

    WAITS_OF_TYPE on waits {
        both: "SELECT run_id, position, type, key, accept_from, opened_at FROM waits
               WHERE tenant_id = $1 AND type = $2 AND (key, opened_at, run_id) > ($3, $4, $5)
               AND ($6 = '' OR EXISTS (SELECT 1 FROM run_live l WHERE l.tenant_id = waits.tenant_id
               AND l.run_id = waits.run_id AND l.branch = waits.branch AND l.workspace = $6))
               ORDER BY key, opened_at, run_id LIMIT $7"
    }

    WAITS_OF_KEY on waits {
        both: "SELECT run_id, position, type, key, accept_from, opened_at FROM waits
               WHERE tenant_id = $1 AND type = $2 AND key = $3 AND (opened_at, run_id) > ($4, $5)
               AND ($6 = '' OR EXISTS (SELECT 1 FROM run_live l WHERE l.tenant_id = waits.tenant_id
               AND l.run_id = waits.run_id AND l.branch = waits.branch AND l.workspace = $6))
               ORDER BY opened_at, run_id LIMIT $7"
    }

    STEPS on steps {
        both: "SELECT position, key, kind, state, attempt, failures, iteration, started_at, finished_at, output, error
               FROM steps WHERE tenant_id = $1 AND run_id = $2 ORDER BY position"
    }

    APPROVALS on approvals {
        both: "SELECT approval_id, run_id, position, state, quorum, approvers, message, requested_at, escalate_at,
               expires_at, resolved_at, excluded, purpose FROM approvals WHERE tenant_id = $1 AND state = $2
               AND approval_id > $3 ORDER BY approval_id LIMIT $4"
    }

    APPROVALS_RUN on approvals {
        both: "SELECT approval_id, run_id, position, state, quorum, approvers, message, requested_at, escalate_at,
               expires_at, resolved_at, excluded, purpose FROM approvals WHERE tenant_id = $1 AND run_id = $2
               ORDER BY approval_id"
    }

    APPROVAL_ONE on approvals {
        both: "SELECT approval_id, run_id, position, state, quorum, approvers, message, requested_at, escalate_at,
               expires_at, resolved_at, excluded, purpose FROM approvals WHERE tenant_id = $1 AND approval_id = $2"
    }

    VOTES on votes {
        both: "SELECT person, on_behalf_of, approve, notes, at FROM votes WHERE tenant_id = $1 AND approval_id = $2
               ORDER BY at, person"
    }

    RECEIPTS on receipts {
        both: "SELECT run_id, receipt_id, position, iteration, attempt, effect_key, effect, state, request, response, intent_at,
               outcome_at, late FROM receipts WHERE tenant_id = $1 AND run_id = $2 ORDER BY receipt_id"
    }

    RECEIPT_KEYED on receipts {
        both: "SELECT run_id, receipt_id, position, iteration, attempt, effect_key, effect, state, request, response, intent_at,
               outcome_at, late FROM receipts WHERE tenant_id = $1 AND effect_key = $2"
    }

    /// outbox_due, then outbox_order: only the first undelivered message of a run and destination.
    OUTBOX_DUE on outbox {
        both: "SELECT o.tenant_id, o.outbox_id, o.run_id, o.destination, o.payload, o.created_at, o.attempts FROM outbox o
               WHERE o.delivered_at IS NULL AND o.dead_at IS NULL AND o.next_at <= $1
               AND NOT EXISTS (SELECT 1 FROM outbox e WHERE e.tenant_id = o.tenant_id AND e.run_id = o.run_id
               AND e.destination = o.destination AND (e.place, e.outbox_id) < (o.place, o.outbox_id)
               AND e.delivered_at IS NULL AND e.dead_at IS NULL)
               ORDER BY o.next_at, o.outbox_id LIMIT $2"
    }

    NEXT_OUTBOX on outbox {
        both: "SELECT next_at FROM outbox WHERE delivered_at IS NULL AND dead_at IS NULL ORDER BY next_at LIMIT 1"
    }

    // What decides whether a commit survives a crash of the machine. SQLite's are set by every connection of ours.
    DURABILITY on pg_settings {
        sqlite: "",
        postgres: "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') ORDER BY name"
    }

    /// Whether this very connection is encrypted.
    ENCRYPTED on pg_stat_ssl {
        sqlite: "",
        postgres: "SELECT CASE WHEN ssl THEN 1::bigint ELSE 0 END FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
    }

    SERVER_TIME on meta {
        sqlite: "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)",
        postgres: "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    }

    /// Group numbers do not order lanes, so the newest group of each lane is asked.
    LAST_COMMIT on commit_groups {
        both: "SELECT (SELECT g.at FROM commit_groups g WHERE g.lane_id = l.lane_id ORDER BY g.group_no DESC LIMIT 1)
               FROM lanes l"
    }

    STATS on run_live {
        both: "SELECT count(*), count(session_id) FROM run_live"
    }

    /// Looks at every live run: for whoever watches the server, now and then.
    LIVE_BY_STATE on run_live {
        both: "SELECT state, count(*) AS runs FROM run_live GROUP BY state ORDER BY state"
    }

    // What `check` asks. Each answers with (tenant_id, run_id) of rows that must not exist.
}
