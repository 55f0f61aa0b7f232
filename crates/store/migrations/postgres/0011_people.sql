-- A person's right to decide, lent to another for a time. Rows stay when they are over: a vote names whose right it used.
CREATE TABLE delegations (
    tenant_id BYTEA NOT NULL,
    delegation_id BYTEA NOT NULL,
    -- Names of people, which never change.
    delegator TEXT NOT NULL,
    delegate TEXT NOT NULL,
    from_at BIGINT NOT NULL,
    until_at BIGINT NOT NULL,
    reason TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    revoked_at BIGINT,
    revoked_by TEXT,
    PRIMARY KEY (tenant_id, delegation_id),
    CHECK (delegator <> delegate AND from_at < until_at)
);
CREATE INDEX delegations_delegator ON delegations (tenant_id, delegator, until_at);
CREATE INDEX delegations_delegate ON delegations (tenant_id, delegate, until_at);

ALTER TABLE votes ADD COLUMN on_behalf_of TEXT;

-- Wrong passwords by account, over all servers; a row goes when the password is right, or when nobody guesses any more.
CREATE TABLE login_failures (
    tenant_id BYTEA NOT NULL,
    name TEXT NOT NULL,
    failures BIGINT NOT NULL,
    failed_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, name)
);
CREATE INDEX login_failures_age ON login_failures (failed_at);
