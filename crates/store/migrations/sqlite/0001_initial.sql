-- The first schema. Types are a small palette on both databases: INTEGER (counts, Unix milliseconds, 0/1),
-- TEXT (names, states, JSON kept as the bytes that were hashed), BLOB (ids, hashes).
-- Every key begins with tenant_id, except where a comment says why not.

CREATE TABLE meta (
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tenants (
    tenant_id BLOB NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    max_concurrency INTEGER,
    max_runs_per_min INTEGER,
    rate_next_at INTEGER NOT NULL DEFAULT 0,
    pending_runs_max INTEGER,
    weight INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE plans (
    tenant_id BLOB NOT NULL,
    plan_hash BLOB NOT NULL,
    workflow TEXT NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant_id, plan_hash)
) STRICT, WITHOUT ROWID;

-- Written when a run starts, and once more when it ends. state is NULL while the run is live: run_live has it.
CREATE TABLE runs (
    tenant_id BLOB NOT NULL,
    run_id BLOB NOT NULL,
    workspace TEXT NOT NULL,
    workflow TEXT NOT NULL,
    workflow_version INTEGER NOT NULL,
    plan_hash BLOB NOT NULL,
    inputs TEXT NOT NULL,
    encoding TEXT NOT NULL DEFAULT 'json',
    key_id TEXT,
    subject TEXT,
    labels TEXT,
    trigger_type TEXT NOT NULL,
    trigger_ref TEXT,
    priority INTEGER NOT NULL,
    started_by TEXT,
    root_run_id BLOB,
    parent_run_id BLOB,
    parent_step INTEGER,
    resumed_from BLOB,
    resume_count INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    deadline_at INTEGER,
    state TEXT CHECK (state IN ('succeeded', 'failed', 'canceled')),
    reason TEXT,
    position INTEGER,
    version INTEGER,
    finished_at INTEGER,
    duration_ms INTEGER,
    output TEXT,
    error TEXT,
    notes TEXT,
    PRIMARY KEY (tenant_id, run_id)
) STRICT;
-- Not tenant first: with equal prefixes a planner without statistics takes this one for the primary key.
CREATE INDEX runs_by_workflow ON runs (workflow, tenant_id, run_id);
CREATE INDEX runs_by_subject ON runs (tenant_id, subject, run_id) WHERE subject IS NOT NULL;
CREATE INDEX runs_by_root ON runs (tenant_id, root_run_id, run_id) WHERE root_run_id IS NOT NULL;

-- Declared searchables: a run's labels, and 'interlock.state' for runs that ended badly. Rows only where they exist.
CREATE TABLE run_attrs (
    tenant_id BLOB NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    run_id BLOB NOT NULL,
    PRIMARY KEY (tenant_id, name, value, run_id)
) STRICT, WITHOUT ROWID;

-- One row per run (and branch) that is not terminal. All that claims, timers and the reaper look for.
CREATE TABLE run_live (
    tenant_id BLOB NOT NULL,
    run_id BLOB NOT NULL,
    branch INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL,
    control TEXT NOT NULL CHECK (control IN ('active', 'paused', 'canceling', 'canceled')),
    state TEXT NOT NULL CHECK (state IN ('pending', 'running', 'waiting_approval', 'waiting_signal', 'paused',
        'rolling_back')),
    detail TEXT,
    reason TEXT,
    position INTEGER NOT NULL,
    step_state TEXT NOT NULL CHECK (step_state IN ('pending', 'ready', 'running', 'waiting_approval',
        'waiting_signal', 'in_doubt', 'succeeded', 'skipped', 'failed', 'canceled', 'rolled_back')),
    attempt INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    iteration INTEGER NOT NULL,
    workspace TEXT NOT NULL,
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    eligible_at INTEGER,
    session_id BLOB,
    claimed_at INTEGER,
    step_timeout_at INTEGER,
    wake_at INTEGER,
    step_data TEXT,
    notes TEXT,
    PRIMARY KEY (tenant_id, run_id, branch)
) STRICT, WITHOUT ROWID;
-- Begins with the queue, because a dispatcher serves queues over all tenants.
CREATE INDEX run_live_ready ON run_live (queue, tenant_id, workspace, priority DESC, eligible_at, run_id)
    WHERE eligible_at IS NOT NULL;
CREATE INDEX run_live_claims ON run_live (tenant_id, session_id) WHERE session_id IS NOT NULL;
-- Timers look over all tenants.
CREATE INDEX run_live_timers ON run_live (wake_at) WHERE wake_at IS NOT NULL;

-- One row per change set (or more, where several steps finish in one): its events, and the step that finished with
-- them. Outputs live here and nowhere else. seq is the last event's.
CREATE TABLE journal (
    tenant_id BLOB NOT NULL,
    run_id BLOB NOT NULL,
    seq INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    events TEXT NOT NULL,
    initiator TEXT NOT NULL,
    person TEXT,
    context_meta TEXT,
    done_position INTEGER,
    -- 'pending': the step was rewound by a restart and will run again.
    done_state TEXT CHECK (done_state IN ('succeeded', 'skipped', 'failed', 'canceled', 'rolled_back', 'pending')),
    done_attempt INTEGER,
    done_failures INTEGER,
    done_iteration INTEGER,
    done_claimed_at INTEGER,
    input TEXT,
    output TEXT,
    encoding TEXT NOT NULL DEFAULT 'json',
    key_id TEXT,
    error TEXT,
    why TEXT,
    PRIMARY KEY (tenant_id, run_id, seq)
) STRICT;

CREATE TABLE steps_added (
    tenant_id BLOB NOT NULL,
    run_id BLOB NOT NULL,
    position INTEGER NOT NULL,
    spec TEXT NOT NULL,
    PRIMARY KEY (tenant_id, run_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE waits (
    tenant_id BLOB NOT NULL,
    run_id BLOB NOT NULL,
    branch INTEGER NOT NULL DEFAULT 0,
    position INTEGER NOT NULL,
    type TEXT NOT NULL,
    key TEXT NOT NULL,
    accept_from INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, run_id, branch, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX waits_by_key ON waits (tenant_id, type, key, opened_at);

CREATE TABLE signals (
    tenant_id BLOB NOT NULL,
    signal_id BLOB NOT NULL,
    type TEXT NOT NULL,
    key TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    payload TEXT NOT NULL,
    encoding TEXT NOT NULL DEFAULT 'json',
    key_id TEXT,
    source_id TEXT,
    consumed_by BLOB,
    consumed_step INTEGER,
    consumed_at INTEGER,
    PRIMARY KEY (tenant_id, signal_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX signals_pending ON signals (tenant_id, type, key, received_at, signal_id) WHERE consumed_by IS NULL;
CREATE UNIQUE INDEX signals_source ON signals (tenant_id, source_id) WHERE source_id IS NOT NULL;
CREATE INDEX signals_expiry ON signals (expires_at);

CREATE TABLE approvals (
    tenant_id BLOB NOT NULL,
    approval_id BLOB NOT NULL,
    run_id BLOB NOT NULL,
    position INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('requested', 'approved', 'rejected', 'expired', 'canceled')),
    quorum INTEGER NOT NULL,
    approvers TEXT NOT NULL,
    message TEXT,
    on_reject TEXT NOT NULL,
    on_expiry TEXT NOT NULL,
    requested_at INTEGER NOT NULL,
    notified_at INTEGER,
    escalate_at INTEGER,
    expires_at INTEGER NOT NULL,
    resolved_at INTEGER,
    excluded TEXT NOT NULL,
    PRIMARY KEY (tenant_id, approval_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX approvals_by_state ON approvals (tenant_id, state, approval_id);
CREATE INDEX approvals_by_run ON approvals (tenant_id, run_id);

CREATE TABLE votes (
    tenant_id BLOB NOT NULL,
    approval_id BLOB NOT NULL,
    person TEXT NOT NULL,
    approve INTEGER NOT NULL CHECK (approve IN (0, 1)),
    notes TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, approval_id, person)
) STRICT, WITHOUT ROWID;

CREATE TABLE receipts (
    tenant_id BLOB NOT NULL,
    receipt_id BLOB NOT NULL,
    run_id BLOB NOT NULL,
    position INTEGER NOT NULL,
    iteration INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    effect_key TEXT NOT NULL,
    effect TEXT NOT NULL CHECK (effect IN ('read', 'idempotent', 'keyed', 'unsafe')),
    state TEXT NOT NULL CHECK (state IN ('intent', 'succeeded', 'failed', 'in_doubt')),
    request TEXT NOT NULL,
    response TEXT,
    encoding TEXT NOT NULL DEFAULT 'json',
    key_id TEXT,
    intent_at INTEGER NOT NULL,
    outcome_at INTEGER,
    late INTEGER NOT NULL DEFAULT 0 CHECK (late IN (0, 1)),
    PRIMARY KEY (tenant_id, receipt_id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX receipts_by_key ON receipts (tenant_id, effect_key);
CREATE INDEX receipts_by_run ON receipts (tenant_id, run_id, receipt_id);

CREATE TABLE outbox (
    tenant_id BLOB NOT NULL,
    outbox_id BLOB NOT NULL,
    run_id BLOB NOT NULL,
    destination TEXT NOT NULL,
    payload TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER NOT NULL,
    delivered_at INTEGER,
    dead_at INTEGER,
    last_error TEXT,
    PRIMARY KEY (tenant_id, outbox_id)
) STRICT, WITHOUT ROWID;
-- Relays look over all tenants.
CREATE INDEX outbox_due ON outbox (next_at) WHERE delivered_at IS NULL AND dead_at IS NULL;
CREATE INDEX outbox_order ON outbox (tenant_id, run_id, destination, outbox_id);

CREATE TABLE idempotency (
    tenant_id BLOB NOT NULL,
    client TEXT NOT NULL,
    key TEXT NOT NULL,
    source TEXT NOT NULL,
    request_hash BLOB NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('processing', 'completed', 'failed')),
    run_id BLOB,
    response TEXT,
    error TEXT,
    attempts INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    lock_expires_at INTEGER,
    PRIMARY KEY (tenant_id, client, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_expiry ON idempotency (expires_at);

CREATE TABLE subjects (
    tenant_id BLOB NOT NULL,
    subject TEXT NOT NULL,
    run_id BLOB NOT NULL,
    PRIMARY KEY (tenant_id, subject)
) STRICT, WITHOUT ROWID;

-- Exception to "tenant first": a session may serve all tenants, and is looked up by its id alone.
CREATE TABLE worker_sessions (
    session_id BLOB NOT NULL PRIMARY KEY,
    tenant_id BLOB,
    worker TEXT NOT NULL,
    build_id TEXT,
    queues TEXT NOT NULL,
    slots INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('online', 'draining', 'errored', 'offline')),
    registered_at INTEGER NOT NULL,
    lease_expires_at INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE assignments (
    tenant_id BLOB NOT NULL,
    run_id BLOB NOT NULL,
    session_id BLOB NOT NULL,
    attempt INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('offered', 'acked', 'released', 'refused', 'expired', 'lost')),
    offered_at INTEGER NOT NULL,
    acked_at INTEGER,
    ended_at INTEGER,
    failure_reason TEXT,
    PRIMARY KEY (tenant_id, run_id, session_id)
) STRICT, WITHOUT ROWID;

-- Command output: chunks, not events.
CREATE TABLE output (
    tenant_id BLOB NOT NULL,
    run_id BLOB NOT NULL,
    position INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    stream_seq INTEGER NOT NULL,
    chunk_type TEXT NOT NULL,
    data BLOB NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, run_id, position, attempt, stream_seq)
) STRICT, WITHOUT ROWID;

-- Exceptions to "tenant first": a lane commits for many tenants at once.
CREATE TABLE lanes (
    lane_id INTEGER NOT NULL PRIMARY KEY,
    server_id BLOB NOT NULL,
    opened_at INTEGER NOT NULL
) STRICT;

-- One row per committed group, dense per lane: what it committed, and the proof that it did.
CREATE TABLE commit_groups (
    lane_id INTEGER NOT NULL,
    group_no INTEGER NOT NULL,
    at INTEGER NOT NULL,
    entries BLOB NOT NULL,
    PRIMARY KEY (lane_id, group_no)
) STRICT, WITHOUT ROWID;

CREATE TABLE feed_positions (
    lane_id INTEGER NOT NULL PRIMARY KEY,
    group_no INTEGER NOT NULL
) STRICT;

-- The tenant's events in one order: what the sealer has read from the groups, one cursor per event.
CREATE TABLE tenant_feed (
    tenant_id BLOB NOT NULL,
    cursor_to INTEGER NOT NULL,
    cursor_from INTEGER NOT NULL,
    sealed_at INTEGER NOT NULL,
    entries BLOB NOT NULL,
    PRIMARY KEY (tenant_id, cursor_to)
) STRICT, WITHOUT ROWID;
CREATE INDEX tenant_feed_age ON tenant_feed (sealed_at);

-- The plan's steps as rows, with their states, wherever these are kept: the step that the run stands at in run_live,
-- the others in their latest record, and those without any follow from the run.
CREATE VIEW steps AS
WITH spec AS (
    SELECT r.tenant_id, r.run_id, r.state AS ended, 0 AS added, s.key AS position, s.value AS body
      FROM runs r
      JOIN plans p ON p.tenant_id = r.tenant_id AND p.plan_hash = r.plan_hash,
           json_each(p.body, '$.steps') s
    UNION ALL
    SELECT r.tenant_id, r.run_id, r.state, 1, a.position, a.spec
      FROM runs r JOIN steps_added a ON a.tenant_id = r.tenant_id AND a.run_id = r.run_id
)
SELECT spec.tenant_id, spec.run_id, spec.position,
       spec.body ->> '$.key' AS key,
       spec.body ->> '$.kind' AS kind,
       CASE WHEN l.position = spec.position THEN l.step_state
            WHEN d.done_state <> 'pending' THEN d.done_state
            WHEN spec.ended = 'canceled' THEN 'canceled'
            WHEN spec.added = 0 AND l.notes ->> '$.after_rollback' = 'requested' THEN 'canceled'
            ELSE 'pending' END AS state,
       coalesce(CASE WHEN l.position = spec.position THEN l.attempt END, d.done_attempt, 0) AS attempt,
       coalesce(CASE WHEN l.position = spec.position THEN l.failures END, d.done_failures, 0) AS failures,
       coalesce(CASE WHEN l.position = spec.position THEN l.iteration END, d.done_iteration, 0) AS iteration,
       coalesce(CASE WHEN l.position = spec.position THEN l.claimed_at END, d.done_claimed_at) AS started_at,
       CASE WHEN d.done_state = 'pending' THEN NULL
            WHEN coalesce(l.position <> spec.position, 1) OR l.step_state = d.done_state THEN d.at END AS finished_at,
       CASE WHEN coalesce(l.position <> spec.position, 1) OR l.step_state = d.done_state THEN d.output END AS output,
       CASE WHEN coalesce(l.position <> spec.position, 1) OR l.step_state = d.done_state THEN d.error
            ELSE l.step_data -> '$.last_error' END AS error
  FROM spec
  LEFT JOIN run_live l ON l.tenant_id = spec.tenant_id AND l.run_id = spec.run_id AND l.branch = 0
  LEFT JOIN journal d ON d.tenant_id = spec.tenant_id AND d.run_id = spec.run_id AND d.done_position = spec.position
       AND d.seq = (SELECT max(j.seq) FROM journal j WHERE j.tenant_id = spec.tenant_id AND j.run_id = spec.run_id
                    AND j.done_position = spec.position);

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

-- For people with sqlite3: ids as they are shown everywhere else, instants as text.
CREATE VIEW runs_readable AS
SELECT 'ten_' || lower(hex(tenant_id)) AS tenant, 'run_' || lower(hex(run_id)) AS run, workspace, workflow,
       workflow_version, subject, state, detail, reason, position, step_state, attempt,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', finished_at / 1000.0, 'unixepoch') AS finished_at,
       duration_ms, inputs, output, error
  FROM run_overview;

CREATE VIEW steps_readable AS
SELECT 'ten_' || lower(hex(tenant_id)) AS tenant, 'run_' || lower(hex(run_id)) AS run, position, key, kind, state,
       attempt, failures, iteration,
       strftime('%Y-%m-%dT%H:%M:%fZ', started_at / 1000.0, 'unixepoch') AS started_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', finished_at / 1000.0, 'unixepoch') AS finished_at,
       output, error
  FROM steps;

CREATE VIEW events_readable AS
SELECT 'ten_' || lower(hex(j.tenant_id)) AS tenant, 'run_' || lower(hex(j.run_id)) AS run,
       j.first_seq + e.key AS seq, strftime('%Y-%m-%dT%H:%M:%fZ', j.at / 1000.0, 'unixepoch') AS at,
       e.value ->> '$.event' AS event, e.value AS body, j.initiator, j.person
  FROM journal j, json_each(j.events) e;

CREATE VIEW sessions_readable AS
SELECT 'ses_' || lower(hex(session_id)) AS session, worker, build_id, state, slots, queues,
       strftime('%Y-%m-%dT%H:%M:%fZ', registered_at / 1000.0, 'unixepoch') AS registered_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', lease_expires_at / 1000.0, 'unixepoch') AS lease_expires_at
  FROM worker_sessions;
