-- Who asks: keys, people, their sessions, and links that work once. Secrets are never here: keys, session tokens and
-- links are stored as keyed hashes, passwords as argon2id. The key of those hashes is the server's secret, a file.
-- Each of the lookup indexes begins with a hash or a random text, because the tenant is what a lookup finds out.

ALTER TABLE tenants ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
ALTER TABLE tenants ADD COLUMN disabled_at INTEGER;

CREATE TABLE api_keys (
    tenant_id BLOB NOT NULL,
    key_id BLOB NOT NULL,
    lookup TEXT NOT NULL,
    hash BLOB NOT NULL,
    name TEXT NOT NULL,
    -- Whom idempotency keys belong to: it stays the same when the key is rotated.
    client TEXT NOT NULL,
    -- The person who answers for it, and so may not approve what it starts.
    owner TEXT,
    roles TEXT NOT NULL,
    workspace TEXT,
    installation INTEGER NOT NULL DEFAULT 0,
    requests_per_min INTEGER,
    created_at INTEGER NOT NULL,
    created_by TEXT,
    expires_at INTEGER,
    revoked_at INTEGER,
    last_used_at INTEGER,
    PRIMARY KEY (tenant_id, key_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX api_keys_lookup ON api_keys (lookup);

CREATE TABLE users (
    tenant_id BLOB NOT NULL,
    user_id BLOB NOT NULL,
    -- The person's name in votes and histories: it never changes.
    name TEXT NOT NULL,
    display_name TEXT,
    email TEXT,
    roles TEXT NOT NULL,
    groups TEXT NOT NULL,
    installation INTEGER NOT NULL DEFAULT 0,
    password TEXT,
    issuer TEXT,
    subject TEXT,
    created_at INTEGER NOT NULL,
    created_by TEXT,
    disabled_at INTEGER,
    last_login_at INTEGER,
    PRIMARY KEY (tenant_id, user_id),
    UNIQUE (tenant_id, name),
    UNIQUE (tenant_id, issuer, subject)
) STRICT, WITHOUT ROWID;

CREATE TABLE user_sessions (
    tenant_id BLOB NOT NULL,
    token_hash BLOB NOT NULL,
    user_id BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, token_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX user_sessions_token ON user_sessions (token_hash);
CREATE INDEX user_sessions_user ON user_sessions (tenant_id, user_id);
CREATE INDEX user_sessions_expiry ON user_sessions (expires_at);

-- A link by which a person sets a password: the first admin's, and later ones'.
CREATE TABLE invites (
    tenant_id BLOB NOT NULL,
    token_hash BLOB NOT NULL,
    -- The account it is for; NULL makes the first admin's.
    user_id BLOB,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER,
    PRIMARY KEY (tenant_id, token_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX invites_token ON invites (token_hash);
CREATE INDEX invites_expiry ON invites (expires_at);

CREATE VIEW keys_readable AS
SELECT 'ten_' || lower(hex(tenant_id)) AS tenant, 'key_' || lower(hex(key_id)) AS key, lookup, name, client, owner,
       roles, workspace, datetime(created_at / 1000, 'unixepoch') AS created_at, datetime(expires_at / 1000, 'unixepoch') AS expires_at,
       datetime(revoked_at / 1000, 'unixepoch') AS revoked_at, datetime(last_used_at / 1000, 'unixepoch') AS last_used_at
  FROM api_keys;

CREATE VIEW users_readable AS
SELECT 'ten_' || lower(hex(tenant_id)) AS tenant, 'usr_' || lower(hex(user_id)) AS usr, name, display_name, email,
       roles, groups, issuer, datetime(created_at / 1000, 'unixepoch') AS created_at,
       datetime(disabled_at / 1000, 'unixepoch') AS disabled_at, datetime(last_login_at / 1000, 'unixepoch') AS last_login_at
  FROM users;
