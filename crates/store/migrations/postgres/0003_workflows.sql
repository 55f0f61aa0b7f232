-- Workflows: a named definition, and its immutable versions. A run does not need either: it has its plan.

CREATE TABLE workflows (
    tenant_id BYTEA NOT NULL,
    name TEXT NOT NULL,
    -- Rises with every change; what a server keeps in memory is held against it.
    revision BIGINT NOT NULL,
    latest_version BIGINT NOT NULL,
    state TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'disabled')),
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, name)
);

CREATE TABLE workflow_versions (
    tenant_id BYTEA NOT NULL,
    name TEXT NOT NULL,
    version BIGINT NOT NULL,
    source TEXT NOT NULL,
    source_hash BYTEA NOT NULL,
    definition TEXT NOT NULL,
    plan_hash BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT,
    PRIMARY KEY (tenant_id, name, version)
);
