-- Changes of the rules or of who has access, which a second admin must agree to. What was asked for stands in body, without
-- secrets; request_hash is of all of it, and the request that carries the change out must be the same.
CREATE TABLE changes (
    tenant_id BLOB NOT NULL,
    change_id BLOB NOT NULL,
    subject TEXT NOT NULL,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    body TEXT NOT NULL,
    request_hash BLOB NOT NULL,
    state TEXT NOT NULL,
    asked_by TEXT NOT NULL,
    -- A list of names: who asked, and whoever else may be behind the request.
    excluded TEXT NOT NULL,
    asked_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    decided_by TEXT,
    decided_at INTEGER,
    notes TEXT,
    used_at INTEGER,
    PRIMARY KEY (tenant_id, change_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX changes_request ON changes (tenant_id, request_hash);
