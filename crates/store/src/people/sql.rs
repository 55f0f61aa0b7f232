use crate::sql::statements;

statements! {
    USER_ADD on users {
        both: "INSERT INTO users (tenant_id, user_id, name, display_name, email, roles, groups, installation, password,
               issuer, subject, created_at, created_by, disabled_at, access_changed_at, access_changed_by)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) ON CONFLICT DO NOTHING"
    }

    USER_CHANGE on users {
        both: "UPDATE users SET display_name = $1, email = $2, roles = $3, groups = $4, installation = $5, password = $6,
               issuer = $7, subject = $8, disabled_at = $9, access_changed_at = $10, access_changed_by = $11
               WHERE tenant_id = $12 AND user_id = $13"
    }

    /// The account before it is written whole: PostgreSQL keeps others from it until then. SQLite has one writer anyway.
    USER_HELD on users {
        sqlite: "SELECT tenant_id, user_id, name, display_name, email, roles, groups, installation, password, issuer,
                 subject, created_at, created_by, disabled_at, last_login_at, access_changed_at, access_changed_by
                 FROM users WHERE tenant_id = ?1 AND user_id = ?2",
        postgres: "SELECT tenant_id, user_id, name, display_name, email, roles, groups, installation, password, issuer,
                   subject, created_at, created_by, disabled_at, last_login_at, access_changed_at, access_changed_by
                   FROM users WHERE tenant_id = $1 AND user_id = $2 FOR UPDATE"
    }

    USER_SIGNED_IN on users {
        both: "UPDATE users SET last_login_at = $1 WHERE tenant_id = $2 AND user_id = $3"
    }

    USER_GET on users {
        both: "SELECT tenant_id, user_id, name, display_name, email, roles, groups, installation, password, issuer,
               subject, created_at, created_by, disabled_at, last_login_at, access_changed_at, access_changed_by
               FROM users WHERE tenant_id = $1 AND user_id = $2"
    }

    /// By the unique (tenant_id, name).
    USER_NAMED on users {
        both: "SELECT tenant_id, user_id, name, display_name, email, roles, groups, installation, password, issuer,
               subject, created_at, created_by, disabled_at, last_login_at, access_changed_at, access_changed_by
               FROM users WHERE tenant_id = $1 AND name = $2"
    }

    /// Whose name differs by capital letters only. Reads all of the tenant's people, which are few, when one is added.
    USER_ALIKE on users {
        both: "SELECT tenant_id, user_id, name, display_name, email, roles, groups, installation, password, issuer,
               subject, created_at, created_by, disabled_at, last_login_at, access_changed_at, access_changed_by
               FROM users WHERE tenant_id = $1 AND lower(name) = lower($2) LIMIT 1"
    }

    /// By the unique (tenant_id, issuer, subject).
    USER_VOUCHED on users {
        both: "SELECT tenant_id, user_id, name, display_name, email, roles, groups, installation, password, issuer,
               subject, created_at, created_by, disabled_at, last_login_at, access_changed_at, access_changed_by
               FROM users WHERE tenant_id = $1 AND issuer = $2 AND subject = $3"
    }

    USER_LIST on users {
        both: "SELECT tenant_id, user_id, name, display_name, email, roles, groups, installation, password, issuer,
               subject, created_at, created_by, disabled_at, last_login_at, access_changed_at, access_changed_by
               FROM users WHERE tenant_id = $1 AND user_id < $2 ORDER BY user_id DESC LIMIT $3"
    }

    SESSION_OPEN on user_sessions {
        both: "INSERT INTO user_sessions (tenant_id, token_hash, user_id, created_at, expires_at, last_used_at)
               VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING"
    }

    SESSION_TOUCH on user_sessions {
        both: "UPDATE user_sessions SET last_used_at = $1 WHERE tenant_id = $2 AND token_hash = $3"
    }

    SESSION_END on user_sessions {
        both: "DELETE FROM user_sessions WHERE tenant_id = $1 AND token_hash = $2"
    }

    /// By user_sessions_user.
    SESSIONS_END on user_sessions {
        both: "DELETE FROM user_sessions WHERE tenant_id = $1 AND user_id = $2"
    }

    /// By user_sessions_token.
    SESSION_FIND on user_sessions {
        both: "SELECT s.tenant_id, s.token_hash, s.user_id, s.created_at, s.expires_at, s.last_used_at
               FROM user_sessions s JOIN tenants t ON t.tenant_id = s.tenant_id
               WHERE s.token_hash = $1 AND t.disabled_at IS NULL"
    }

    /// By user_sessions_user: when the person has last shown who they are, in a visit that goes on.
    SESSIONS_PROVEN on user_sessions {
        both: "SELECT created_at FROM user_sessions WHERE tenant_id = $1 AND user_id = $2 AND expires_at > $3
               ORDER BY created_at DESC LIMIT 1"
    }

    INVITE_ADD on invites {
        both: "INSERT INTO invites (tenant_id, token_hash, user_id, created_at, expires_at)
               VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING"
    }

    INVITE_USE on invites {
        both: "UPDATE invites SET used_at = $1 WHERE tenant_id = $2 AND token_hash = $3 AND used_at IS NULL
               AND expires_at > $1"
    }

    /// In the transaction that has used it, where that comes to nothing.
    INVITE_PUT_BACK on invites {
        both: "UPDATE invites SET used_at = NULL WHERE tenant_id = $1 AND token_hash = $2"
    }

    /// By invites_token.
    INVITE_FIND on invites {
        both: "SELECT tenant_id, token_hash, user_id, created_at, expires_at, used_at FROM invites WHERE token_hash = $1"
    }

    LOGIN_FAILURES on login_failures {
        both: "SELECT failures, failed_at FROM login_failures WHERE tenant_id = $1 AND name = $2"
    }

    LOGIN_COUNT on login_failures {
        both: "INSERT INTO login_failures (tenant_id, name, failures, failed_at) VALUES ($1, $2, 1, $3)
               ON CONFLICT (tenant_id, name) DO UPDATE SET failed_at = excluded.failed_at,
               failures = CASE WHEN login_failures.failed_at < $4 THEN 1 ELSE login_failures.failures + 1 END
               RETURNING failures"
    }

    LOGIN_FAILED on login_failures {
        both: "UPDATE login_failures SET failed_at = $1 WHERE tenant_id = $2 AND name = $3 AND failed_at < $1"
    }

    LOGIN_FORGET on login_failures {
        both: "DELETE FROM login_failures WHERE tenant_id = $1 AND name = $2"
    }

    SWEEP_LOGIN_FAILURES on login_failures {
        both: "DELETE FROM login_failures WHERE (tenant_id, name) IN
               (SELECT tenant_id, name FROM login_failures WHERE failed_at < $1 ORDER BY failed_at LIMIT $2)"
    }

    SWEEP_USER_SESSIONS on user_sessions {
        both: "DELETE FROM user_sessions WHERE (tenant_id, token_hash) IN
               (SELECT tenant_id, token_hash FROM user_sessions WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)"
    }

    SWEEP_INVITES on invites {
        both: "DELETE FROM invites WHERE (tenant_id, token_hash) IN
               (SELECT tenant_id, token_hash FROM invites WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)"
    }
}
