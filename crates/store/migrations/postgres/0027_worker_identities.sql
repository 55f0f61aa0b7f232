-- Workers that enrol: a token makes one, once, and its certificates are renewed under the same identity. The token itself is
-- nowhere: token_lookup finds the row, token_hash proves the rest. key_hash is of the public key by which it enrolled.
CREATE TABLE worker_identities (
    tenant_id BYTEA NOT NULL,
    identity_id BYTEA NOT NULL,
    name TEXT NOT NULL,
    terms TEXT NOT NULL,
    token_lookup TEXT NOT NULL,
    token_hash BYTEA NOT NULL,
    token_expires_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT,
    enrolled_at BIGINT,
    key_hash BYTEA,
    renewed_at BIGINT,
    certificate_expires_at BIGINT,
    revoked_at BIGINT,
    revoked_by TEXT,
    PRIMARY KEY (tenant_id, identity_id)
);
CREATE INDEX worker_identities_token ON worker_identities (token_lookup);
-- Whose certificate a session was registered with, and within which bounds; neither for one with an API key.
ALTER TABLE worker_sessions ADD COLUMN identity_id BYTEA;
ALTER TABLE worker_sessions ADD COLUMN terms TEXT;
