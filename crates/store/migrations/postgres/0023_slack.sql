-- The Slack app through which a tenant's people are asked for approvals. Tokens and secrets are sealed.
CREATE TABLE slack_connections (
    tenant_id BYTEA NOT NULL,
    connection_id BYTEA NOT NULL,
    team_id TEXT NOT NULL,
    enterprise_id TEXT,
    channel TEXT NOT NULL,
    escalation_channel TEXT,
    bot_token TEXT NOT NULL,
    secret TEXT NOT NULL,
    previous_secret TEXT,
    previous_until BIGINT,
    pagerduty_key TEXT,
    -- How long each rung of the ladder waits for the next, in milliseconds.
    rung_prod_ms BIGINT NOT NULL,
    rung_other_ms BIGINT NOT NULL,
    fed_to BIGINT NOT NULL,
    fed_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT,
    -- When and by whom the team, the token or the signing secret were given: whoever has the secret can speak for everybody.
    secret_at BIGINT NOT NULL,
    secret_by TEXT,
    PRIMARY KEY (tenant_id)
);
-- Slack names no tenant: the address that it sends to has the connection's id.
CREATE INDEX slack_connections_by_id ON slack_connections (connection_id);

-- Which person of the tenant a Slack user is.
CREATE TABLE slack_links (
    tenant_id BYTEA NOT NULL,
    -- Empty outside of an Enterprise organization.
    enterprise_id TEXT NOT NULL,
    team_id TEXT NOT NULL,
    slack_user_id TEXT NOT NULL,
    person TEXT NOT NULL,
    linked_at BIGINT NOT NULL,
    linked_by TEXT NOT NULL,
    PRIMARY KEY (tenant_id, enterprise_id, team_id, slack_user_id)
);
CREATE UNIQUE INDEX slack_links_person ON slack_links (tenant_id, person);

-- Addresses by which somebody who is signed in says that a Slack user is them. Each works once.
CREATE TABLE slack_link_requests (
    tenant_id BYTEA NOT NULL,
    token_hash BYTEA NOT NULL,
    enterprise_id TEXT NOT NULL,
    team_id TEXT NOT NULL,
    slack_user_id TEXT NOT NULL,
    slack_name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, token_hash)
);
CREATE INDEX slack_link_requests_expiry ON slack_link_requests (expires_at);

-- An approval that people are told of: how far its escalation has come.
CREATE TABLE approval_cards (
    tenant_id BYTEA NOT NULL,
    approval_id BYTEA NOT NULL,
    run_id BYTEA NOT NULL,
    -- Rungs of the ladder that were reached, and when the next one is.
    rung BIGINT NOT NULL,
    rung_at BIGINT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, approval_id)
);
CREATE INDEX approval_cards_by_run ON approval_cards (tenant_id, run_id);
CREATE INDEX approval_cards_due ON approval_cards (rung_at) WHERE rung_at IS NOT NULL;

-- What was posted about an approval: begun before the call, with its place once that is known.
CREATE TABLE approval_notices (
    tenant_id BYTEA NOT NULL,
    approval_id BYTEA NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('card', 'reminder', 'escalation', 'page')),
    begun_at BIGINT NOT NULL,
    channel TEXT,
    ts TEXT,
    PRIMARY KEY (tenant_id, approval_id, kind)
);
