-- What the HTTP surface adds: bulk jobs, and lists by trigger.

-- The many runs that the API starts are left out: every list shows those.
CREATE INDEX runs_by_trigger ON runs (tenant_id, trigger_type, run_id) WHERE trigger_type <> 'api';

-- One action on many runs. Which ones is fixed when the job is made: runs holds their ids, 16 bytes each, in order.
CREATE TABLE bulk_jobs (
    tenant_id BLOB NOT NULL,
    job_id BLOB NOT NULL,
    action TEXT NOT NULL CHECK (action IN ('cancel', 'retry', 'resume')),
    filter TEXT NOT NULL,
    reason TEXT NOT NULL,
    rollback INTEGER NOT NULL CHECK (rollback IN (0, 1)),
    person TEXT,
    runs BLOB NOT NULL,
    total INTEGER NOT NULL,
    -- How many runs have been dealt with; the guard of whoever deals with them.
    next INTEGER NOT NULL DEFAULT 0,
    succeeded INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    finished_at INTEGER,
    -- The server that works on it, and until when it may be believed to.
    owner BLOB,
    owner_until INTEGER,
    PRIMARY KEY (tenant_id, job_id)
) STRICT, WITHOUT ROWID;
-- Servers look for open jobs over all tenants.
CREATE INDEX bulk_jobs_open ON bulk_jobs (job_id) WHERE finished_at IS NULL;

CREATE TABLE bulk_failures (
    tenant_id BLOB NOT NULL,
    job_id BLOB NOT NULL,
    position INTEGER NOT NULL,
    run_id BLOB NOT NULL,
    code TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (tenant_id, job_id, position)
) STRICT, WITHOUT ROWID;
