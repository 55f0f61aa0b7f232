-- A signal for everybody who waits for it is used up by nobody; which run has heard it is kept here.
ALTER TABLE signals ADD COLUMN broadcast INTEGER NOT NULL DEFAULT 0 CHECK (broadcast = 0 OR broadcast = 1);

CREATE TABLE signals_heard (
    tenant_id BLOB NOT NULL,
    run_id BLOB NOT NULL,
    signal_id BLOB NOT NULL,
    position INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, run_id, signal_id)
) STRICT, WITHOUT ROWID;
