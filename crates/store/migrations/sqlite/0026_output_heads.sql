-- How far the output of each attempt has come: the number of its next chunk, and how much of it is kept. It is written in the
-- commit that stores chunks, and keeps two servers from storing the same ones.
CREATE TABLE output_heads (
    tenant_id BLOB NOT NULL,
    run_id BLOB NOT NULL,
    position INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    next_seq INTEGER NOT NULL,
    -- What standard output and standard error have written, as far as it is kept.
    bytes INTEGER NOT NULL,
    status_bytes INTEGER NOT NULL,
    -- Whether there was more.
    cut INTEGER NOT NULL,
    began_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, run_id, position, attempt)
) STRICT, WITHOUT ROWID;
