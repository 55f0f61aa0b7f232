-- Changes of the rules or of who has access, which a second admin must agree to. What was asked for stands in body, without
-- secrets; request_hash is of all of it, and the request that carries the change out must be the same.
CREATE TABLE changes (
    tenant_id BYTEA NOT NULL,
    change_id BYTEA NOT NULL,
    subject TEXT NOT NULL,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    body TEXT NOT NULL,
    request_hash BYTEA NOT NULL,
    state TEXT NOT NULL,
    asked_by TEXT NOT NULL,
    -- A list of names: who asked, and whoever else may be behind the request.
    excluded TEXT NOT NULL,
    asked_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    decided_by TEXT,
    decided_at BIGINT,
    notes TEXT,
    used_at BIGINT,
    PRIMARY KEY (tenant_id, change_id)
);
CREATE INDEX changes_request ON changes (tenant_id, request_hash);
