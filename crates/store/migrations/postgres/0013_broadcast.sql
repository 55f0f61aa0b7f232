-- A signal for everybody who waits for it is used up by nobody; which run has heard it is kept here.
ALTER TABLE signals ADD COLUMN broadcast BIGINT NOT NULL DEFAULT 0 CHECK (broadcast = 0 OR broadcast = 1);

CREATE TABLE signals_heard (
    tenant_id BYTEA NOT NULL,
    run_id BYTEA NOT NULL,
    signal_id BYTEA NOT NULL,
    position BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, run_id, signal_id)
);
