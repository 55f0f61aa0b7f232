-- Payloads that stand beside the database, by who refers to them: a run or a signal. The object's name is the tenant and
-- the hash, so that several owners share one object; it goes with the last of them. sweeping: it is going now, and
-- nobody may refer to it anew.
CREATE TABLE payloads (
    tenant_id BLOB NOT NULL,
    owner BLOB NOT NULL,
    sha256 BLOB NOT NULL,
    bytes INTEGER NOT NULL CHECK (bytes >= 0),
    kept_at INTEGER NOT NULL,
    sweeping INTEGER NOT NULL CHECK (sweeping IN (0, 1)),
    PRIMARY KEY (tenant_id, owner, sha256)
) STRICT, WITHOUT ROWID;

CREATE INDEX payloads_by_hash ON payloads (tenant_id, sha256);
CREATE INDEX payloads_by_age ON payloads (kept_at);
