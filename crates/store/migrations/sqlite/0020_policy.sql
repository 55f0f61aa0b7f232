-- The rules that a tenant has given: each version stays, so that a decision can be made again.
CREATE TABLE policy_bundles (
    tenant_id BLOB NOT NULL,
    version INTEGER NOT NULL,
    hash BLOB NOT NULL,
    files TEXT NOT NULL,
    note TEXT,
    created_at INTEGER NOT NULL,
    created_by TEXT,
    PRIMARY KEY (tenant_id, version)
);

-- Which version is in force, and which is tried beside it. A tenant without a row has the shipped policy.
CREATE TABLE policies (
    tenant_id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    active_version INTEGER,
    shadow_version INTEGER,
    latest_version INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT,
    PRIMARY KEY (tenant_id)
);

-- What was decided on an action of a run, and everything that it rests on.
CREATE TABLE decisions (
    tenant_id BLOB NOT NULL,
    decision_id BLOB NOT NULL,
    run_id BLOB NOT NULL,
    position INTEGER NOT NULL,
    iteration INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    operation TEXT NOT NULL,
    verdict TEXT NOT NULL,
    tier TEXT NOT NULL,
    action BLOB NOT NULL,
    bundle BLOB NOT NULL,
    evaluator TEXT NOT NULL,
    input TEXT NOT NULL,
    answer TEXT,
    shadow TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, decision_id)
);
CREATE INDEX decisions_by_run ON decisions (tenant_id, run_id);
