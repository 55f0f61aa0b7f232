-- What the HTTP surface adds: bulk jobs, and lists by trigger.

-- The many runs that the API starts are left out: every list shows those.
CREATE INDEX runs_by_trigger ON runs (tenant_id, trigger_type, run_id) WHERE trigger_type <> 'api';

-- One action on many runs. Which ones is fixed when the job is made: runs holds their ids, 16 bytes each, in order.
CREATE TABLE bulk_jobs (
    tenant_id BYTEA NOT NULL,
    job_id BYTEA NOT NULL,
    action TEXT NOT NULL CHECK (action IN ('cancel', 'retry', 'resume')),
    filter TEXT NOT NULL,
    reason TEXT NOT NULL,
    rollback BIGINT NOT NULL CHECK (rollback IN (0, 1)),
    person TEXT,
    runs BYTEA NOT NULL,
    total BIGINT NOT NULL,
    -- How many runs have been dealt with; the guard of whoever deals with them.
    next BIGINT NOT NULL DEFAULT 0,
    succeeded BIGINT NOT NULL DEFAULT 0,
    failed BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    finished_at BIGINT,
    -- The server that works on it, and until when it may be believed to.
    owner BYTEA,
    owner_until BIGINT,
    PRIMARY KEY (tenant_id, job_id)
);
-- Servers look for open jobs over all tenants.
CREATE INDEX bulk_jobs_open ON bulk_jobs (job_id) WHERE finished_at IS NULL;

CREATE TABLE bulk_failures (
    tenant_id BYTEA NOT NULL,
    job_id BYTEA NOT NULL,
    position BIGINT NOT NULL,
    run_id BYTEA NOT NULL,
    code TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (tenant_id, job_id, position)
);
