-- Workers that enrol: a token makes one, once, and its certificates are renewed under the same identity. The token itself is
-- nowhere: token_lookup finds the row, token_hash proves the rest. key_hash is of the public key by which it enrolled.
CREATE TABLE worker_identities (
    tenant_id BLOB NOT NULL,
    identity_id BLOB NOT NULL,
    name TEXT NOT NULL,
    terms TEXT NOT NULL,
    token_lookup TEXT NOT NULL,
    token_hash BLOB NOT NULL,
    token_expires_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT,
    enrolled_at INTEGER,
    key_hash BLOB,
    renewed_at INTEGER,
    certificate_expires_at INTEGER,
    revoked_at INTEGER,
    revoked_by TEXT,
    PRIMARY KEY (tenant_id, identity_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX worker_identities_token ON worker_identities (token_lookup);
-- Whose certificate a session was registered with, and within which bounds; neither for one with an API key.
ALTER TABLE worker_sessions ADD COLUMN identity_id BLOB;
ALTER TABLE worker_sessions ADD COLUMN terms TEXT;
