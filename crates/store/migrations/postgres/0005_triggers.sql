-- What starts runs from outside, and what tells the outside about them: schedules, webhooks in, webhooks out.

CREATE TABLE schedules (
    tenant_id BYTEA NOT NULL,
    schedule_id BYTEA NOT NULL,
    name TEXT NOT NULL,
    workflow TEXT NOT NULL,
    -- 'workflow': it stands in the workflow's file and follows it.
    origin TEXT NOT NULL CHECK (origin IN ('api', 'workflow')),
    cron TEXT NOT NULL,
    timezone TEXT NOT NULL,
    dst TEXT NOT NULL CHECK (dst IN ('skip', 'once', 'twice')),
    overlap TEXT NOT NULL CHECK (overlap IN ('allow', 'skip', 'queue', 'cancel_previous')),
    catch_up_ms BIGINT NOT NULL,
    jitter_ms BIGINT NOT NULL,
    inputs TEXT NOT NULL,
    workspace TEXT NOT NULL,
    paused BIGINT NOT NULL CHECK (paused IN (0, 1)),
    note TEXT,
    -- The last slot that was dealt with, and when the loop has to look again.
    done_at BIGINT NOT NULL,
    next_at BIGINT,
    last_run_id BYTEA,
    -- Guards every change.
    revision BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, schedule_id)
);
CREATE UNIQUE INDEX schedules_by_name ON schedules (tenant_id, name);
-- The scheduler looks over all tenants.
CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;

-- What became of each slot: the schedule's history, and its queue.
CREATE TABLE schedule_slots (
    tenant_id BYTEA NOT NULL,
    schedule_id BYTEA NOT NULL,
    slot_at BIGINT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('started', 'skipped', 'queued', 'missed', 'failed')),
    run_id BYTEA,
    note TEXT,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, schedule_id, slot_at)
);
CREATE INDEX schedule_slots_queued ON schedule_slots (tenant_id, schedule_id, slot_at) WHERE state = 'queued';
CREATE INDEX schedule_slots_age ON schedule_slots (at);

CREATE TABLE inbound_endpoints (
    tenant_id BYTEA NOT NULL,
    endpoint_id BYTEA NOT NULL,
    name TEXT NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('github', 'slack', 'servicenow', 'generic', 'standard')),
    -- Where a generic sender puts its signature.
    header TEXT,
    -- GitHub: the same pull request, event, action and head within seconds are one delivery.
    secondary BIGINT NOT NULL CHECK (secondary IN (0, 1)),
    paused BIGINT NOT NULL CHECK (paused IN (0, 1)),
    -- Sealed with the server's secret; the previous one is accepted until its time is over.
    secret TEXT NOT NULL,
    previous_secret TEXT,
    previous_until BIGINT,
    created_at BIGINT NOT NULL,
    created_by TEXT,
    PRIMARY KEY (tenant_id, endpoint_id)
);
CREATE UNIQUE INDEX inbound_endpoints_by_name ON inbound_endpoints (tenant_id, name);
-- Not tenant first: a sender knows the endpoint's address and nothing of tenants.
CREATE INDEX inbound_endpoints_by_id ON inbound_endpoints (endpoint_id);

-- What came in, until its runs are started and a while after. The record of its key stands in idempotency.
CREATE TABLE inbound_deliveries (
    tenant_id BYTEA NOT NULL,
    endpoint_id BYTEA NOT NULL,
    key TEXT NOT NULL,
    event TEXT NOT NULL,
    payload TEXT NOT NULL,
    encoding TEXT NOT NULL DEFAULT 'json',
    key_id TEXT,
    received_at BIGINT NOT NULL,
    -- When somebody has to take it over; NULL once it is done with.
    retry_at BIGINT,
    PRIMARY KEY (tenant_id, endpoint_id, key)
);
CREATE INDEX inbound_deliveries_due ON inbound_deliveries (retry_at) WHERE retry_at IS NOT NULL;
CREATE INDEX inbound_deliveries_recent ON inbound_deliveries (tenant_id, endpoint_id, received_at);
CREATE INDEX inbound_deliveries_age ON inbound_deliveries (received_at);

-- The secondary rule: what a delivery was about, and when it last came.
CREATE TABLE inbound_fingerprints (
    tenant_id BYTEA NOT NULL,
    endpoint_id BYTEA NOT NULL,
    fingerprint BYTEA NOT NULL,
    key TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, endpoint_id, fingerprint)
);
CREATE INDEX inbound_fingerprints_age ON inbound_fingerprints (at);

CREATE TABLE outbound_endpoints (
    tenant_id BYTEA NOT NULL,
    endpoint_id BYTEA NOT NULL,
    url TEXT NOT NULL,
    description TEXT,
    -- JSON lists: names of events (`session.*` takes all of a kind), workflows; NULL takes all.
    events TEXT,
    workflows TEXT,
    secret TEXT NOT NULL,
    previous_secret TEXT,
    previous_until BIGINT,
    state TEXT NOT NULL CHECK (state IN ('enabled', 'disabled')),
    note TEXT,
    -- How far the tenant's feed has been turned into messages, and the instant of the newest message's id.
    fed_to BIGINT NOT NULL,
    fed_at BIGINT NOT NULL,
    failing_since BIGINT,
    created_at BIGINT NOT NULL,
    created_by TEXT,
    PRIMARY KEY (tenant_id, endpoint_id)
);

-- One row per try to bring a message to its endpoint. The message itself is the outbox row.
CREATE TABLE outbound_attempts (
    tenant_id BYTEA NOT NULL,
    outbox_id BYTEA NOT NULL,
    attempt BIGINT NOT NULL,
    at BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL,
    status BIGINT,
    error TEXT,
    excerpt TEXT,
    PRIMARY KEY (tenant_id, outbox_id, attempt)
);
CREATE INDEX outbound_attempts_age ON outbound_attempts (at);

-- The messages of one endpoint. Not tenant first: with equal prefixes a planner without statistics takes the primary key.
CREATE INDEX outbox_by_destination ON outbox (destination, tenant_id, outbox_id);
