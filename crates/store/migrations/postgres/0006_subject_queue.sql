-- Runs that wait for their subject: admitted, pending, nothing of them activated. First come, first served by the run's
-- id, which begins with the instant of its start. cancels: whoever stands before it is to be canceled.
CREATE TABLE subject_queue (
    tenant_id BYTEA NOT NULL,
    subject TEXT NOT NULL,
    run_id BYTEA NOT NULL,
    cancels BIGINT NOT NULL CHECK (cancels IN (0, 1)),
    queued_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, subject, run_id)
);
