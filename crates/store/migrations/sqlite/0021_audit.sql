-- The tenant's audit log. A log begins anew (a higher number) after a restore, or with another key; the older ones stay.
CREATE TABLE audit_logs (
    tenant_id BLOB NOT NULL,
    number INTEGER NOT NULL,
    origin TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    key_id BLOB NOT NULL,
    opened_at INTEGER NOT NULL,
    -- How many entries it has, the hash of the last one, the complete subtrees on the right edge of its tree.
    size INTEGER NOT NULL,
    last_hash BLOB NOT NULL,
    peaks BLOB NOT NULL,
    checkpoint TEXT NOT NULL,
    -- Up to where the tenant's feed is in the log.
    feed_cursor INTEGER NOT NULL,
    sealed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, number)
) STRICT, WITHOUT ROWID;

-- Entries that were sealed together: one JSON object a line, without what follows from the place; 32 bytes of salts and a
-- leaf of 32 bytes for each. checkpoint is the signed head with the block's last entry.
CREATE TABLE audit_blocks (
    tenant_id BLOB NOT NULL,
    number INTEGER NOT NULL,
    last_entry INTEGER NOT NULL,
    first_entry INTEGER NOT NULL,
    prev_hash BLOB NOT NULL,
    bodies TEXT NOT NULL,
    salts BLOB NOT NULL,
    leaves BLOB NOT NULL,
    at_from INTEGER NOT NULL,
    at_to INTEGER NOT NULL,
    checkpoint TEXT NOT NULL,
    PRIMARY KEY (tenant_id, number, last_entry)
) STRICT;
CREATE INDEX audit_blocks_at ON audit_blocks (tenant_id, at_to, at_from);

-- Nodes of the tree above the leaves, 256 a row.
CREATE TABLE audit_tiles (
    tenant_id BLOB NOT NULL,
    number INTEGER NOT NULL,
    level INTEGER NOT NULL,
    tile INTEGER NOT NULL,
    hashes BLOB NOT NULL,
    PRIMARY KEY (tenant_id, number, level, tile)
) STRICT;

-- What the salted hashes of an entry stand for, where no row of the journal says it. Both are NULL once erased.
CREATE TABLE audit_details (
    tenant_id BLOB NOT NULL,
    number INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    actor TEXT,
    details TEXT,
    PRIMARY KEY (tenant_id, number, entry)
) STRICT, WITHOUT ROWID;

-- What happened apart from runs, committed together with it: it waits here for the log.
CREATE TABLE audit_notes (
    tenant_id BLOB NOT NULL,
    note_id BLOB NOT NULL,
    at INTEGER NOT NULL,
    initiator TEXT NOT NULL,
    actor TEXT,
    kind TEXT NOT NULL,
    subject TEXT,
    details TEXT NOT NULL,
    PRIMARY KEY (tenant_id, note_id)
) STRICT, WITHOUT ROWID;

-- Runs whose evidence is to be bundled once they have ended.
CREATE TABLE evidence_due (
    tenant_id BLOB NOT NULL,
    run_id BLOB NOT NULL,
    noted_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, run_id)
) STRICT, WITHOUT ROWID;

-- The bundles of a run. body is the bundle, or the reference to it in the payload store.
CREATE TABLE evidence_bundles (
    tenant_id BLOB NOT NULL,
    run_id BLOB NOT NULL,
    number INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    made_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant_id, run_id, number)
) STRICT;
