use crate::sql::statements;

statements! {
    CHANGE_ADD on changes {
        both: "INSERT INTO changes (tenant_id, change_id, subject, method, path, body, request_hash, state, asked_by,
               excluded, asked_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
               ON CONFLICT DO NOTHING"
    }

    CHANGE_DECIDE on changes {
        both: "UPDATE changes SET state = $1, decided_by = $2, decided_at = $3, notes = $4, expires_at = $5
               WHERE tenant_id = $6 AND change_id = $7 AND state = 'requested' AND expires_at > $3"
    }

    CHANGE_USE on changes {
        both: "UPDATE changes SET state = 'used', used_at = $1
               WHERE tenant_id = $2 AND change_id = $3 AND state = 'approved' AND request_hash = $4 AND expires_at > $1"
    }

    CHANGE_GET on changes {
        both: "SELECT tenant_id, change_id, subject, method, path, body, request_hash, state, asked_by, excluded, asked_at,
               expires_at, decided_by, decided_at, notes, used_at FROM changes WHERE tenant_id = $1 AND change_id = $2"
    }

    /// What was asked for already, by changes_request.
    CHANGE_ASKED on changes {
        both: "SELECT tenant_id, change_id, subject, method, path, body, request_hash, state, asked_by, excluded, asked_at,
               expires_at, decided_by, decided_at, notes, used_at FROM changes
               WHERE tenant_id = $1 AND request_hash = $2 AND asked_by = $3 AND state IN ('requested', 'approved')
               AND expires_at > $4 ORDER BY change_id DESC LIMIT 1"
    }

    /// Newest first, by the primary key.
    CHANGE_LIST on changes {
        both: "SELECT tenant_id, change_id, subject, method, path, body, request_hash, state, asked_by, excluded, asked_at,
               expires_at, decided_by, decided_at, notes, used_at FROM changes
               WHERE tenant_id = $1 AND change_id < $2 AND ($3 = '' OR state = $3) ORDER BY change_id DESC LIMIT $4"
    }
}
