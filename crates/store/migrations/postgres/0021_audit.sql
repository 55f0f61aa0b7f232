-- The tenant's audit log. A log begins anew (a higher number) after a restore, or with another key; the older ones stay.
CREATE TABLE audit_logs (
    tenant_id BYTEA NOT NULL,
    number BIGINT NOT NULL,
    origin TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    key_id BYTEA NOT NULL,
    opened_at BIGINT NOT NULL,
    -- How many entries it has, the hash of the last one, the complete subtrees on the right edge of its tree.
    size BIGINT NOT NULL,
    last_hash BYTEA NOT NULL,
    peaks BYTEA NOT NULL,
    checkpoint TEXT NOT NULL,
    -- Up to where the tenant's feed is in the log.
    feed_cursor BIGINT NOT NULL,
    sealed_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, number)
);

-- Entries that were sealed together: one JSON object a line, without what follows from the place; 32 bytes of salts and a
-- leaf of 32 bytes for each. checkpoint is the signed head with the block's last entry.
CREATE TABLE audit_blocks (
    tenant_id BYTEA NOT NULL,
    number BIGINT NOT NULL,
    last_entry BIGINT NOT NULL,
    first_entry BIGINT NOT NULL,
    prev_hash BYTEA NOT NULL,
    bodies TEXT NOT NULL,
    salts BYTEA NOT NULL,
    leaves BYTEA NOT NULL,
    at_from BIGINT NOT NULL,
    at_to BIGINT NOT NULL,
    checkpoint TEXT NOT NULL,
    PRIMARY KEY (tenant_id, number, last_entry)
);
CREATE INDEX audit_blocks_at ON audit_blocks (tenant_id, at_to, at_from);

-- Nodes of the tree above the leaves, 256 a row.
CREATE TABLE audit_tiles (
    tenant_id BYTEA NOT NULL,
    number BIGINT NOT NULL,
    level BIGINT NOT NULL,
    tile BIGINT NOT NULL,
    hashes BYTEA NOT NULL,
    PRIMARY KEY (tenant_id, number, level, tile)
);

-- What the salted hashes of an entry stand for, where no row of the journal says it. Both are NULL once erased.
CREATE TABLE audit_details (
    tenant_id BYTEA NOT NULL,
    number BIGINT NOT NULL,
    entry BIGINT NOT NULL,
    actor TEXT,
    details TEXT,
    PRIMARY KEY (tenant_id, number, entry)
);

-- What happened apart from runs, committed together with it: it waits here for the log.
CREATE TABLE audit_notes (
    tenant_id BYTEA NOT NULL,
    note_id BYTEA NOT NULL,
    at BIGINT NOT NULL,
    initiator TEXT NOT NULL,
    actor TEXT,
    kind TEXT NOT NULL,
    subject TEXT,
    details TEXT NOT NULL,
    PRIMARY KEY (tenant_id, note_id)
);

-- Runs whose evidence is to be bundled once they have ended.
CREATE TABLE evidence_due (
    tenant_id BYTEA NOT NULL,
    run_id BYTEA NOT NULL,
    noted_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, run_id)
);

-- The bundles of a run. body is the bundle, or the reference to it in the payload store.
CREATE TABLE evidence_bundles (
    tenant_id BYTEA NOT NULL,
    run_id BYTEA NOT NULL,
    number BIGINT NOT NULL,
    sha256 BYTEA NOT NULL,
    bytes BIGINT NOT NULL,
    entries BIGINT NOT NULL,
    made_at BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant_id, run_id, number)
);
