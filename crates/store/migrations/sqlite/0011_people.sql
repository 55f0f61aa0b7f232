-- A person's right to decide, lent to another for a time. Rows stay when they are over: a vote names whose right it used.
CREATE TABLE delegations (
    tenant_id BLOB NOT NULL,
    delegation_id BLOB NOT NULL,
    -- Names of people, which never change.
    delegator TEXT NOT NULL,
    delegate TEXT NOT NULL,
    from_at INTEGER NOT NULL,
    until_at INTEGER NOT NULL,
    reason TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    revoked_at INTEGER,
    revoked_by TEXT,
    PRIMARY KEY (tenant_id, delegation_id),
    CHECK (delegator <> delegate AND from_at < until_at)
) STRICT, WITHOUT ROWID;
CREATE INDEX delegations_delegator ON delegations (tenant_id, delegator, until_at);
CREATE INDEX delegations_delegate ON delegations (tenant_id, delegate, until_at);

ALTER TABLE votes ADD COLUMN on_behalf_of TEXT;

-- Wrong passwords by account, over all servers; a row goes when the password is right, or when nobody guesses any more.
CREATE TABLE login_failures (
    tenant_id BLOB NOT NULL,
    name TEXT NOT NULL,
    failures INTEGER NOT NULL,
    failed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX login_failures_age ON login_failures (failed_at);
