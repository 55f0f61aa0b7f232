use crate::sql::statements;

statements! {
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
}
