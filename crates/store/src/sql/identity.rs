//! Keys, people, sessions, invites. Lookups by what a request brings stand on indexes that begin with it: which tenant
//! it belongs to is what they find out.

use super::statements;

statements! {
    /// Which tenant's rows the session sees behind row-level security.
    SET_TENANT on meta {
        sqlite: "",
        postgres: "SELECT set_config('interlock.tenant', $1, false)"
    }

    SET_ONCE on meta {
        both: "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING"
    }

    KEY_ADD on api_keys {
        both: "INSERT INTO api_keys (tenant_id, key_id, lookup, hash, name, client, owner, roles, workspace, installation,
               requests_per_min, created_at, created_by, expires_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT DO NOTHING"
    }

    KEY_REVOKE on api_keys {
        both: "UPDATE api_keys SET revoked_at = coalesce(revoked_at, $1) WHERE tenant_id = $2 AND key_id = $3"
    }

    /// The old key of a rotation never lives longer than it would have.
    KEY_SHORTEN on api_keys {
        both: "UPDATE api_keys SET expires_at = CASE WHEN expires_at < $1 THEN expires_at ELSE $1 END
               WHERE tenant_id = $2 AND key_id = $3 AND revoked_at IS NULL"
    }

    KEY_TOUCH on api_keys {
        both: "UPDATE api_keys SET last_used_at = $1 WHERE tenant_id = $2 AND key_id = $3
               AND (last_used_at IS NULL OR last_used_at < $1)"
    }

    /// By api_keys_lookup. The tenant's own standing comes with it: a disabled tenant's keys are none.
    KEY_FIND on api_keys {
        both: "SELECT k.tenant_id, k.key_id, k.lookup, k.hash, k.name, k.client, k.owner, k.roles, k.workspace,
               k.installation, k.requests_per_min, k.created_at, k.created_by, k.expires_at, k.revoked_at, k.last_used_at
               FROM api_keys k JOIN tenants t ON t.tenant_id = k.tenant_id
               WHERE k.lookup = $1 AND t.disabled_at IS NULL"
    }

    KEY_GET on api_keys {
        both: "SELECT tenant_id, key_id, lookup, hash, name, client, owner, roles, workspace, installation,
               requests_per_min, created_at, created_by, expires_at, revoked_at, last_used_at
               FROM api_keys WHERE tenant_id = $1 AND key_id = $2"
    }

    /// Newest first, by the primary key.
    KEY_LIST on api_keys {
        both: "SELECT tenant_id, key_id, lookup, hash, name, client, owner, roles, workspace, installation,
               requests_per_min, created_at, created_by, expires_at, revoked_at, last_used_at
               FROM api_keys WHERE tenant_id = $1 AND key_id < $2 ORDER BY key_id DESC LIMIT $3"
    }

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

    INVITE_ADD on invites {
        both: "INSERT INTO invites (tenant_id, token_hash, user_id, created_at, expires_at)
               VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING"
    }

    INVITE_USE on invites {
        both: "UPDATE invites SET used_at = $1 WHERE tenant_id = $2 AND token_hash = $3 AND used_at IS NULL
               AND expires_at > $1"
    }

    /// By invites_token.
    INVITE_FIND on invites {
        both: "SELECT tenant_id, token_hash, user_id, created_at, expires_at, used_at FROM invites WHERE token_hash = $1"
    }

    /// Nobody passes on what was lent to them: whoever delegates is nobody's delegate meanwhile, and the other way about.
    DELEGATION_ADD on delegations {
        sqlite: "INSERT INTO delegations (tenant_id, delegation_id, delegator, delegate, from_at, until_at, reason,
                 created_at, created_by) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9
                 WHERE NOT EXISTS (SELECT 1 FROM delegations d WHERE d.tenant_id = ?1 AND d.delegate = ?3
                 AND d.until_at > ?5 AND d.from_at < ?6 AND d.revoked_at IS NULL)
                 AND NOT EXISTS (SELECT 1 FROM delegations d WHERE d.tenant_id = ?1 AND d.delegator = ?4
                 AND d.until_at > ?5 AND d.from_at < ?6 AND d.revoked_at IS NULL)
                 AND (SELECT count(*) FROM delegations d WHERE d.tenant_id = ?1 AND d.delegator = ?3
                 AND d.until_at > ?8 AND d.revoked_at IS NULL) < ?10
                 AND (SELECT count(*) FROM delegations d WHERE d.tenant_id = ?1 AND d.delegate = ?4
                 AND d.until_at > ?8 AND d.revoked_at IS NULL) < ?10",
        postgres: "INSERT INTO delegations (tenant_id, delegation_id, delegator, delegate, from_at, until_at, reason,
                   created_at, created_by)
                   SELECT $1::bytea, $2::bytea, $3::text, $4::text, $5::bigint, $6::bigint, $7::text, $8::bigint, $9::text
                   WHERE NOT EXISTS (SELECT 1 FROM delegations d WHERE d.tenant_id = $1 AND d.delegate = $3
                   AND d.until_at > $5 AND d.from_at < $6 AND d.revoked_at IS NULL)
                   AND NOT EXISTS (SELECT 1 FROM delegations d WHERE d.tenant_id = $1 AND d.delegator = $4
                   AND d.until_at > $5 AND d.from_at < $6 AND d.revoked_at IS NULL)
                   AND (SELECT count(*) FROM delegations d WHERE d.tenant_id = $1 AND d.delegator = $3
                   AND d.until_at > $8 AND d.revoked_at IS NULL) < $10
                   AND (SELECT count(*) FROM delegations d WHERE d.tenant_id = $1 AND d.delegate = $4
                   AND d.until_at > $8 AND d.revoked_at IS NULL) < $10"
    }

    DELEGATION_REVOKE on delegations {
        both: "UPDATE delegations SET revoked_at = $1, revoked_by = $2
               WHERE tenant_id = $3 AND delegation_id = $4 AND revoked_at IS NULL"
    }

    DELEGATION_GET on delegations {
        both: "SELECT tenant_id, delegation_id, delegator, delegate, from_at, until_at, reason, created_at, created_by,
               revoked_at, revoked_by
               FROM delegations WHERE tenant_id = $1 AND delegation_id = $2"
    }

    /// Newest first, by the primary key; those that were not over at an instant.
    DELEGATION_LIST on delegations {
        both: "SELECT tenant_id, delegation_id, delegator, delegate, from_at, until_at, reason, created_at, created_by,
               revoked_at, revoked_by
               FROM delegations WHERE tenant_id = $1 AND delegation_id < $2
               AND until_at > $3 AND (revoked_at IS NULL OR revoked_at > $3) ORDER BY delegation_id DESC LIMIT $4"
    }

    /// What somebody has lent now, by delegations_delegator.
    DELEGATIONS_BY on delegations {
        both: "SELECT tenant_id, delegation_id, delegator, delegate, from_at, until_at, reason, created_at, created_by,
               revoked_at, revoked_by
               FROM delegations WHERE tenant_id = $1 AND delegator = $2 AND until_at > $3 AND from_at <= $3
               AND revoked_at IS NULL ORDER BY delegation_id"
    }

    /// What was lent to somebody now, by delegations_delegate.
    DELEGATIONS_TO on delegations {
        both: "SELECT tenant_id, delegation_id, delegator, delegate, from_at, until_at, reason, created_at, created_by,
               revoked_at, revoked_by
               FROM delegations WHERE tenant_id = $1 AND delegate = $2 AND until_at > $3 AND from_at <= $3
               AND revoked_at IS NULL ORDER BY delegation_id"
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
