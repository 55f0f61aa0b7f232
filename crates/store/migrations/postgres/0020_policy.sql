-- The rules that a tenant has given: each version stays, so that a decision can be made again.
CREATE TABLE policy_bundles (
    tenant_id BYTEA NOT NULL,
    version BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    files TEXT NOT NULL,
    note TEXT,
    created_at BIGINT NOT NULL,
    created_by TEXT,
    PRIMARY KEY (tenant_id, version)
);

-- Which version is in force, and which is tried beside it. A tenant without a row has the shipped policy.
CREATE TABLE policies (
    tenant_id BYTEA NOT NULL,
    revision BIGINT NOT NULL,
    active_version BIGINT,
    shadow_version BIGINT,
    latest_version BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT,
    PRIMARY KEY (tenant_id)
);

-- What was decided on an action of a run, and everything that it rests on.
CREATE TABLE decisions (
    tenant_id BYTEA NOT NULL,
    decision_id BYTEA NOT NULL,
    run_id BYTEA NOT NULL,
    position BIGINT NOT NULL,
    iteration BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    operation TEXT NOT NULL,
    verdict TEXT NOT NULL,
    tier TEXT NOT NULL,
    action BYTEA NOT NULL,
    bundle BYTEA NOT NULL,
    evaluator TEXT NOT NULL,
    input TEXT NOT NULL,
    answer TEXT,
    shadow TEXT,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, decision_id)
);
CREATE INDEX decisions_by_run ON decisions (tenant_id, run_id);
