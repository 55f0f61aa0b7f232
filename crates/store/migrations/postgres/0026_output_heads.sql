-- How far the output of each attempt has come: the number of its next chunk, and how much of it is kept. It is written in the
-- commit that stores chunks, and keeps two servers from storing the same ones.
CREATE TABLE output_heads (
    tenant_id BYTEA NOT NULL,
    run_id BYTEA NOT NULL,
    position BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    next_seq BIGINT NOT NULL,
    -- What standard output and standard error have written, as far as it is kept.
    bytes BIGINT NOT NULL,
    status_bytes BIGINT NOT NULL,
    -- Whether there was more.
    cut BIGINT NOT NULL,
    began_at BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, run_id, position, attempt)
);
