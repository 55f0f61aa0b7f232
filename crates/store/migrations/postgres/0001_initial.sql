-- The first schema. Types are a small palette on both databases: BIGINT (counts, Unix milliseconds, 0/1),
-- TEXT (names, states, JSON kept as the bytes that were hashed), BYTEA (ids, hashes).
-- Every key begins with tenant_id, except where a comment says why not.

CREATE TABLE meta (
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE tenants (
    tenant_id BYTEA NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    max_concurrency BIGINT,
    max_runs_per_min BIGINT,
    rate_next_at BIGINT NOT NULL DEFAULT 0,
    pending_runs_max BIGINT,
    weight BIGINT NOT NULL DEFAULT 1,
    created_at BIGINT NOT NULL
);

CREATE TABLE plans (
    tenant_id BYTEA NOT NULL,
    plan_hash BYTEA NOT NULL,
    workflow TEXT NOT NULL,
    version BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant_id, plan_hash)
);

-- Written when a run starts, and once more when it ends. state is NULL while the run is live: run_live has it.
CREATE TABLE runs (
    tenant_id BYTEA NOT NULL,
    run_id BYTEA NOT NULL,
    workspace TEXT NOT NULL,
    workflow TEXT NOT NULL,
    workflow_version BIGINT NOT NULL,
    plan_hash BYTEA NOT NULL,
    inputs TEXT NOT NULL,
    encoding TEXT NOT NULL DEFAULT 'json',
    key_id TEXT,
    subject TEXT,
    labels TEXT,
    trigger_type TEXT NOT NULL,
    trigger_ref TEXT,
    priority BIGINT NOT NULL,
    started_by TEXT,
    root_run_id BYTEA,
    parent_run_id BYTEA,
    parent_step BIGINT,
    resumed_from BYTEA,
    resume_count BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    deadline_at BIGINT,
    state TEXT CHECK (state IN ('succeeded', 'failed', 'canceled')),
    reason TEXT,
    position BIGINT,
    version BIGINT,
    finished_at BIGINT,
    duration_ms BIGINT,
    output TEXT,
    error TEXT,
    notes TEXT,
    PRIMARY KEY (tenant_id, run_id)
) WITH (fillfactor = 50);
-- Not tenant first: with equal prefixes a planner without statistics takes this one for the primary key.
CREATE INDEX runs_by_workflow ON runs (workflow, tenant_id, run_id);
CREATE INDEX runs_by_subject ON runs (tenant_id, subject, run_id) WHERE subject IS NOT NULL;
CREATE INDEX runs_by_root ON runs (tenant_id, root_run_id, run_id) WHERE root_run_id IS NOT NULL;

-- Declared searchables: a run's labels, and 'interlock.state' for runs that ended badly. Rows only where they exist.
CREATE TABLE run_attrs (
    tenant_id BYTEA NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    run_id BYTEA NOT NULL,
    PRIMARY KEY (tenant_id, name, value, run_id)
);

-- One row per run (and branch) that is not terminal. All that claims, timers and the reaper look for.
CREATE TABLE run_live (
    tenant_id BYTEA NOT NULL,
    run_id BYTEA NOT NULL,
    branch BIGINT NOT NULL DEFAULT 0,
    version BIGINT NOT NULL,
    control TEXT NOT NULL CHECK (control IN ('active', 'paused', 'canceling', 'canceled')),
    state TEXT NOT NULL CHECK (state IN ('pending', 'running', 'waiting_approval', 'waiting_signal', 'paused',
        'rolling_back')),
    detail TEXT,
    reason TEXT,
    position BIGINT NOT NULL,
    step_state TEXT NOT NULL CHECK (step_state IN ('pending', 'ready', 'running', 'waiting_approval',
        'waiting_signal', 'in_doubt', 'succeeded', 'skipped', 'failed', 'canceled', 'rolled_back')),
    attempt BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    iteration BIGINT NOT NULL,
    workspace TEXT NOT NULL,
    queue TEXT NOT NULL,
    priority BIGINT NOT NULL,
    eligible_at BIGINT,
    session_id BYTEA,
    claimed_at BIGINT,
    step_timeout_at BIGINT,
    wake_at BIGINT,
    step_data TEXT,
    notes TEXT,
    PRIMARY KEY (tenant_id, run_id, branch)
) WITH (fillfactor = 30, autovacuum_vacuum_scale_factor = 0.05);
-- Begins with the queue, because a dispatcher serves queues over all tenants.
CREATE INDEX run_live_ready ON run_live (queue, tenant_id, workspace, priority DESC, eligible_at, run_id)
    WHERE eligible_at IS NOT NULL;
CREATE INDEX run_live_claims ON run_live (tenant_id, session_id) WHERE session_id IS NOT NULL;
-- Timers look over all tenants.
CREATE INDEX run_live_timers ON run_live (wake_at) WHERE wake_at IS NOT NULL;

-- One row per change set (or more, where several steps finish in one): its events, and the step that finished with
-- them. Outputs live here and nowhere else. seq is the last event's.
CREATE TABLE journal (
    tenant_id BYTEA NOT NULL,
    run_id BYTEA NOT NULL,
    seq BIGINT NOT NULL,
    first_seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    events TEXT NOT NULL,
    initiator TEXT NOT NULL,
    person TEXT,
    context_meta TEXT,
    done_position BIGINT,
    -- 'pending': the step was rewound by a restart and will run again.
    done_state TEXT CHECK (done_state IN ('succeeded', 'skipped', 'failed', 'canceled', 'rolled_back', 'pending')),
    done_attempt BIGINT,
    done_failures BIGINT,
    done_iteration BIGINT,
    done_claimed_at BIGINT,
    input TEXT,
    output TEXT,
    encoding TEXT NOT NULL DEFAULT 'json',
    key_id TEXT,
    error TEXT,
    why TEXT,
    PRIMARY KEY (tenant_id, run_id, seq)
) PARTITION BY RANGE (run_id);
-- A run's id begins with the instant of its start, so a run's rows stay together and retention drops whole weeks.
-- Rows that no week was made for go here.
CREATE TABLE journal_default PARTITION OF journal DEFAULT;

CREATE TABLE steps_added (
    tenant_id BYTEA NOT NULL,
    run_id BYTEA NOT NULL,
    position BIGINT NOT NULL,
    spec TEXT NOT NULL,
    PRIMARY KEY (tenant_id, run_id, position)
);

CREATE TABLE waits (
    tenant_id BYTEA NOT NULL,
    run_id BYTEA NOT NULL,
    branch BIGINT NOT NULL DEFAULT 0,
    position BIGINT NOT NULL,
    type TEXT NOT NULL,
    key TEXT NOT NULL,
    accept_from BIGINT NOT NULL,
    opened_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, run_id, branch, position)
);
CREATE INDEX waits_by_key ON waits (tenant_id, type, key, opened_at);

CREATE TABLE signals (
    tenant_id BYTEA NOT NULL,
    signal_id BYTEA NOT NULL,
    type TEXT NOT NULL,
    key TEXT NOT NULL,
    received_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    payload TEXT NOT NULL,
    encoding TEXT NOT NULL DEFAULT 'json',
    key_id TEXT,
    source_id TEXT,
    consumed_by BYTEA,
    consumed_step BIGINT,
    consumed_at BIGINT,
    PRIMARY KEY (tenant_id, signal_id)
);
CREATE INDEX signals_pending ON signals (tenant_id, type, key, received_at, signal_id) WHERE consumed_by IS NULL;
CREATE UNIQUE INDEX signals_source ON signals (tenant_id, source_id) WHERE source_id IS NOT NULL;
CREATE INDEX signals_expiry ON signals (expires_at);

CREATE TABLE approvals (
    tenant_id BYTEA NOT NULL,
    approval_id BYTEA NOT NULL,
    run_id BYTEA NOT NULL,
    position BIGINT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('requested', 'approved', 'rejected', 'expired', 'canceled')),
    quorum BIGINT NOT NULL,
    approvers TEXT NOT NULL,
    message TEXT,
    on_reject TEXT NOT NULL,
    on_expiry TEXT NOT NULL,
    requested_at BIGINT NOT NULL,
    notified_at BIGINT,
    escalate_at BIGINT,
    expires_at BIGINT NOT NULL,
    resolved_at BIGINT,
    excluded TEXT NOT NULL,
    PRIMARY KEY (tenant_id, approval_id)
);
CREATE INDEX approvals_by_state ON approvals (tenant_id, state, approval_id);
CREATE INDEX approvals_by_run ON approvals (tenant_id, run_id);

CREATE TABLE votes (
    tenant_id BYTEA NOT NULL,
    approval_id BYTEA NOT NULL,
    person TEXT NOT NULL,
    approve BIGINT NOT NULL CHECK (approve IN (0, 1)),
    notes TEXT,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, approval_id, person)
);

CREATE TABLE receipts (
    tenant_id BYTEA NOT NULL,
    receipt_id BYTEA NOT NULL,
    run_id BYTEA NOT NULL,
    position BIGINT NOT NULL,
    iteration BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    effect_key TEXT NOT NULL,
    effect TEXT NOT NULL CHECK (effect IN ('read', 'idempotent', 'keyed', 'unsafe')),
    state TEXT NOT NULL CHECK (state IN ('intent', 'succeeded', 'failed', 'in_doubt')),
    request TEXT NOT NULL,
    response TEXT,
    encoding TEXT NOT NULL DEFAULT 'json',
    key_id TEXT,
    intent_at BIGINT NOT NULL,
    outcome_at BIGINT,
    late BIGINT NOT NULL DEFAULT 0 CHECK (late IN (0, 1)),
    PRIMARY KEY (tenant_id, receipt_id)
);
CREATE UNIQUE INDEX receipts_by_key ON receipts (tenant_id, effect_key);
CREATE INDEX receipts_by_run ON receipts (tenant_id, run_id, receipt_id);

CREATE TABLE outbox (
    tenant_id BYTEA NOT NULL,
    outbox_id BYTEA NOT NULL,
    run_id BYTEA NOT NULL,
    destination TEXT NOT NULL,
    payload TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL DEFAULT 0,
    next_at BIGINT NOT NULL,
    delivered_at BIGINT,
    dead_at BIGINT,
    last_error TEXT,
    PRIMARY KEY (tenant_id, outbox_id)
);
-- Relays look over all tenants.
CREATE INDEX outbox_due ON outbox (next_at) WHERE delivered_at IS NULL AND dead_at IS NULL;
CREATE INDEX outbox_order ON outbox (tenant_id, run_id, destination, outbox_id);

CREATE TABLE idempotency (
    tenant_id BYTEA NOT NULL,
    client TEXT NOT NULL,
    key TEXT NOT NULL,
    source TEXT NOT NULL,
    request_hash BYTEA NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('processing', 'completed', 'failed')),
    run_id BYTEA,
    response TEXT,
    error TEXT,
    attempts BIGINT NOT NULL DEFAULT 1,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    lock_expires_at BIGINT,
    PRIMARY KEY (tenant_id, client, key)
);
CREATE INDEX idempotency_expiry ON idempotency (expires_at);

CREATE TABLE subjects (
    tenant_id BYTEA NOT NULL,
    subject TEXT NOT NULL,
    run_id BYTEA NOT NULL,
    PRIMARY KEY (tenant_id, subject)
);

-- Exception to "tenant first": a session may serve all tenants, and is looked up by its id alone.
CREATE TABLE worker_sessions (
    session_id BYTEA NOT NULL PRIMARY KEY,
    tenant_id BYTEA,
    worker TEXT NOT NULL,
    build_id TEXT,
    queues TEXT NOT NULL,
    slots BIGINT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('online', 'draining', 'errored', 'offline')),
    registered_at BIGINT NOT NULL,
    lease_expires_at BIGINT NOT NULL,
    heartbeat_at BIGINT NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE assignments (
    tenant_id BYTEA NOT NULL,
    run_id BYTEA NOT NULL,
    session_id BYTEA NOT NULL,
    attempt BIGINT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('offered', 'acked', 'released', 'refused', 'expired', 'lost')),
    offered_at BIGINT NOT NULL,
    acked_at BIGINT,
    ended_at BIGINT,
    failure_reason TEXT,
    PRIMARY KEY (tenant_id, run_id, session_id)
);

-- Command output: chunks, not events.
CREATE TABLE output (
    tenant_id BYTEA NOT NULL,
    run_id BYTEA NOT NULL,
    position BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    stream_seq BIGINT NOT NULL,
    chunk_type TEXT NOT NULL,
    data BYTEA NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, run_id, position, attempt, stream_seq)
);

-- Exceptions to "tenant first": a lane commits for many tenants at once.
CREATE TABLE lanes (
    lane_id BIGINT NOT NULL PRIMARY KEY,
    server_id BYTEA NOT NULL,
    opened_at BIGINT NOT NULL
);

-- One row per committed group, dense per lane: what it committed, and the proof that it did.
CREATE TABLE commit_groups (
    lane_id BIGINT NOT NULL,
    group_no BIGINT NOT NULL,
    at BIGINT NOT NULL,
    entries BYTEA NOT NULL,
    PRIMARY KEY (lane_id, group_no)
);

CREATE TABLE feed_positions (
    lane_id BIGINT NOT NULL PRIMARY KEY,
    group_no BIGINT NOT NULL
);

-- The tenant's events in one order: what the sealer has read from the groups, one cursor per event.
CREATE TABLE tenant_feed (
    tenant_id BYTEA NOT NULL,
    cursor_to BIGINT NOT NULL,
    cursor_from BIGINT NOT NULL,
    sealed_at BIGINT NOT NULL,
    entries BYTEA NOT NULL,
    PRIMARY KEY (tenant_id, cursor_to)
);
CREATE INDEX tenant_feed_age ON tenant_feed (sealed_at);

-- The plan's steps as rows, with their states, wherever these are kept: the step that the run stands at in run_live,
-- the others in their latest record, and those without any follow from the run.
CREATE VIEW steps AS
WITH spec AS (
    SELECT r.tenant_id, r.run_id, r.state AS ended, false AS added, s.ordinality - 1 AS position, s.value AS body
      FROM runs r
      JOIN plans p ON p.tenant_id = r.tenant_id AND p.plan_hash = r.plan_hash,
           json_array_elements(p.body::json -> 'steps') WITH ORDINALITY s
    UNION ALL
    SELECT r.tenant_id, r.run_id, r.state, true, a.position, a.spec::json
      FROM runs r JOIN steps_added a ON a.tenant_id = r.tenant_id AND a.run_id = r.run_id
)
SELECT spec.tenant_id, spec.run_id, spec.position,
       spec.body ->> 'key' AS key,
       spec.body ->> 'kind' AS kind,
       CASE WHEN l.position = spec.position THEN l.step_state
            WHEN d.done_state <> 'pending' THEN d.done_state
            WHEN spec.ended = 'canceled' THEN 'canceled'
            WHEN NOT spec.added AND l.notes::json ->> 'after_rollback' = 'requested' THEN 'canceled'
            ELSE 'pending' END AS state,
       coalesce(CASE WHEN l.position = spec.position THEN l.attempt END, d.done_attempt, 0) AS attempt,
       coalesce(CASE WHEN l.position = spec.position THEN l.failures END, d.done_failures, 0) AS failures,
       coalesce(CASE WHEN l.position = spec.position THEN l.iteration END, d.done_iteration, 0) AS iteration,
       coalesce(CASE WHEN l.position = spec.position THEN l.claimed_at END, d.done_claimed_at) AS started_at,
       CASE WHEN d.done_state = 'pending' THEN NULL
            WHEN coalesce(l.position <> spec.position, true) OR l.step_state = d.done_state THEN d.at
            END AS finished_at,
       CASE WHEN coalesce(l.position <> spec.position, true) OR l.step_state = d.done_state THEN d.output
            END AS output,
       CASE WHEN coalesce(l.position <> spec.position, true) OR l.step_state = d.done_state THEN d.error
            ELSE (l.step_data::json -> 'last_error')::text END AS error
  FROM spec
  LEFT JOIN run_live l ON l.tenant_id = spec.tenant_id AND l.run_id = spec.run_id AND l.branch = 0
  LEFT JOIN LATERAL (
       SELECT j.* FROM journal j
        WHERE j.tenant_id = spec.tenant_id AND j.run_id = spec.run_id AND j.done_position = spec.position
        ORDER BY j.seq DESC LIMIT 1) d ON true;

-- Runs as one list, live and ended.
CREATE VIEW run_overview AS
SELECT r.tenant_id, r.run_id, r.workspace, r.workflow, r.workflow_version, r.plan_hash, r.subject, r.labels,
       r.trigger_type, r.trigger_ref, r.priority, r.started_by, r.root_run_id, r.resumed_from, r.resume_count,
       coalesce(r.state, l.state) AS state, l.detail AS detail, coalesce(l.reason, r.reason) AS reason,
       coalesce(l.position, r.position) AS position, l.control AS control, coalesce(l.version, r.version) AS version,
       r.created_at, r.deadline_at, r.finished_at, r.duration_ms, r.inputs, r.output, r.error,
       coalesce(l.notes, r.notes) AS notes, l.step_state AS step_state, l.attempt AS attempt,
       l.eligible_at AS eligible_at, l.wake_at AS wake_at
  FROM runs r
  LEFT JOIN run_live l ON l.tenant_id = r.tenant_id AND l.run_id = r.run_id AND l.branch = 0;

-- For people with psql: ids as they are shown everywhere else, instants as timestamps.
CREATE VIEW runs_readable AS
SELECT 'ten_' || encode(tenant_id, 'hex') AS tenant, 'run_' || encode(run_id, 'hex') AS run, workspace, workflow,
       workflow_version, subject, state, detail, reason, position, step_state, attempt,
       to_timestamp(created_at / 1000.0) AS created_at,
       to_timestamp(finished_at / 1000.0) AS finished_at,
       duration_ms, inputs, output, error
  FROM run_overview;

CREATE VIEW steps_readable AS
SELECT 'ten_' || encode(tenant_id, 'hex') AS tenant, 'run_' || encode(run_id, 'hex') AS run, position, key, kind, state,
       attempt, failures, iteration,
       to_timestamp(started_at / 1000.0) AS started_at,
       to_timestamp(finished_at / 1000.0) AS finished_at,
       output, error
  FROM steps;

CREATE VIEW events_readable AS
SELECT 'ten_' || encode(j.tenant_id, 'hex') AS tenant, 'run_' || encode(j.run_id, 'hex') AS run,
       j.first_seq + e.ordinality - 1 AS seq, to_timestamp(j.at / 1000.0) AS at,
       e.value ->> 'event' AS event, e.value AS body, j.initiator, j.person
  FROM journal j, json_array_elements(j.events::json) WITH ORDINALITY e;

CREATE VIEW sessions_readable AS
SELECT 'ses_' || encode(session_id, 'hex') AS session, worker, build_id, state, slots, queues,
       to_timestamp(registered_at / 1000.0) AS registered_at,
       to_timestamp(lease_expires_at / 1000.0) AS lease_expires_at
  FROM worker_sessions;
