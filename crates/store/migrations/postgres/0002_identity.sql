-- Who asks: keys, people, their sessions, and links that work once. Secrets are never here: keys, session tokens and
-- links are stored as keyed hashes, passwords as argon2id. The key of those hashes is the server's secret, a file.
-- Each of the lookup indexes begins with a hash or a random text, because the tenant is what a lookup finds out.

ALTER TABLE tenants ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
ALTER TABLE tenants ADD COLUMN disabled_at BIGINT;

CREATE TABLE api_keys (
    tenant_id BYTEA NOT NULL,
    key_id BYTEA NOT NULL,
    lookup TEXT NOT NULL,
    hash BYTEA NOT NULL,
    name TEXT NOT NULL,
    -- Whom idempotency keys belong to: it stays the same when the key is rotated.
    client TEXT NOT NULL,
    -- The person who answers for it, and so may not approve what it starts.
    owner TEXT,
    roles TEXT NOT NULL,
    workspace TEXT,
    installation BIGINT NOT NULL DEFAULT 0,
    requests_per_min BIGINT,
    created_at BIGINT NOT NULL,
    created_by TEXT,
    expires_at BIGINT,
    revoked_at BIGINT,
    last_used_at BIGINT,
    PRIMARY KEY (tenant_id, key_id)
);
CREATE INDEX api_keys_lookup ON api_keys (lookup);

CREATE TABLE users (
    tenant_id BYTEA NOT NULL,
    user_id BYTEA NOT NULL,
    -- The person's name in votes and histories: it never changes.
    name TEXT NOT NULL,
    display_name TEXT,
    email TEXT,
    roles TEXT NOT NULL,
    groups TEXT NOT NULL,
    installation BIGINT NOT NULL DEFAULT 0,
    password TEXT,
    issuer TEXT,
    subject TEXT,
    created_at BIGINT NOT NULL,
    created_by TEXT,
    disabled_at BIGINT,
    last_login_at BIGINT,
    PRIMARY KEY (tenant_id, user_id),
    UNIQUE (tenant_id, name),
    UNIQUE (tenant_id, issuer, subject)
);

CREATE TABLE user_sessions (
    tenant_id BYTEA NOT NULL,
    token_hash BYTEA NOT NULL,
    user_id BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, token_hash)
);
CREATE INDEX user_sessions_token ON user_sessions (token_hash);
CREATE INDEX user_sessions_user ON user_sessions (tenant_id, user_id);
CREATE INDEX user_sessions_expiry ON user_sessions (expires_at);

-- A link by which a person sets a password: the first admin's, and later ones'.
CREATE TABLE invites (
    tenant_id BYTEA NOT NULL,
    token_hash BYTEA NOT NULL,
    -- The account it is for; NULL makes the first admin's.
    user_id BYTEA,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT,
    PRIMARY KEY (tenant_id, token_hash)
);
CREATE INDEX invites_token ON invites (token_hash);
CREATE INDEX invites_expiry ON invites (expires_at);

CREATE VIEW keys_readable AS
SELECT 'ten_' || encode(tenant_id, 'hex') AS tenant, 'key_' || encode(key_id, 'hex') AS key, lookup, name, client, owner,
       roles, workspace, to_timestamp(created_at / 1000.0) AS created_at, to_timestamp(expires_at / 1000.0) AS expires_at,
       to_timestamp(revoked_at / 1000.0) AS revoked_at, to_timestamp(last_used_at / 1000.0) AS last_used_at
  FROM api_keys;

CREATE VIEW users_readable AS
SELECT 'ten_' || encode(tenant_id, 'hex') AS tenant, 'usr_' || encode(user_id, 'hex') AS usr, name, display_name, email,
       roles, groups, issuer, to_timestamp(created_at / 1000.0) AS created_at,
       to_timestamp(disabled_at / 1000.0) AS disabled_at, to_timestamp(last_login_at / 1000.0) AS last_login_at
  FROM users;
