-- The virtual schedule of each workflow that limits its runs per minute. Only claims of such workflows read or write it,
-- under the lock of the tenant's row.
CREATE TABLE workflow_rates (
    tenant_id BLOB NOT NULL,
    workflow TEXT NOT NULL,
    rate_next_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, workflow)
) STRICT, WITHOUT ROWID;
