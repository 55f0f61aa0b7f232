-- Workflows: a named definition, and its immutable versions. A run does not need either: it has its plan.

CREATE TABLE workflows (
    tenant_id BLOB NOT NULL,
    name TEXT NOT NULL,
    -- Rises with every change; what a server keeps in memory is held against it.
    revision INTEGER NOT NULL,
    latest_version INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'disabled')),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE workflow_versions (
    tenant_id BLOB NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    source TEXT NOT NULL,
    source_hash BLOB NOT NULL,
    definition TEXT NOT NULL,
    plan_hash BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT,
    PRIMARY KEY (tenant_id, name, version)
) STRICT;
