use crate::sql::statements;

statements! {
    WORKER_IDENTITY_ADD on worker_identities {
        both: "INSERT INTO worker_identities (tenant_id, identity_id, name, terms, token_lookup, token_hash,
               token_expires_at, created_at, created_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
               ON CONFLICT DO NOTHING"
    }

    /// Once, and again only for the same key: a worker that has lost the answer asks again.
    WORKER_IDENTITY_ENROL on worker_identities {
        both: "UPDATE worker_identities SET enrolled_at = coalesce(enrolled_at, $1), key_hash = $2, renewed_at = $1,
               certificate_expires_at = $3
               WHERE tenant_id = $4 AND identity_id = $5 AND revoked_at IS NULL AND token_expires_at > $1
               AND (key_hash IS NULL OR key_hash = $2)"
    }

    WORKER_IDENTITY_RENEW on worker_identities {
        both: "UPDATE worker_identities SET renewed_at = $1, certificate_expires_at = $2
               WHERE tenant_id = $3 AND identity_id = $4 AND revoked_at IS NULL AND enrolled_at IS NOT NULL"
    }

    WORKER_IDENTITY_REVOKE on worker_identities {
        both: "UPDATE worker_identities SET revoked_at = $1, revoked_by = $2
               WHERE tenant_id = $3 AND identity_id = $4 AND revoked_at IS NULL"
    }

    /// By worker_identities_token. A disabled tenant's workers are none.
    WORKER_IDENTITY_FIND on worker_identities {
        both: "SELECT w.tenant_id, w.identity_id, w.name, w.terms, w.token_lookup, w.token_hash, w.token_expires_at,
               w.created_at, w.created_by, w.enrolled_at, w.key_hash, w.renewed_at, w.certificate_expires_at, w.revoked_at,
               w.revoked_by FROM worker_identities w JOIN tenants t ON t.tenant_id = w.tenant_id
               WHERE w.token_lookup = $1 AND t.disabled_at IS NULL"
    }

    /// Of a tenant that is not disabled.
    WORKER_IDENTITY_LIVE on worker_identities {
        both: "SELECT w.tenant_id, w.identity_id, w.name, w.terms, w.token_lookup, w.token_hash, w.token_expires_at,
               w.created_at, w.created_by, w.enrolled_at, w.key_hash, w.renewed_at, w.certificate_expires_at, w.revoked_at,
               w.revoked_by FROM worker_identities w JOIN tenants t ON t.tenant_id = w.tenant_id
               WHERE w.tenant_id = $1 AND w.identity_id = $2 AND t.disabled_at IS NULL AND w.revoked_at IS NULL"
    }

    WORKER_IDENTITY_GET on worker_identities {
        both: "SELECT tenant_id, identity_id, name, terms, token_lookup, token_hash, token_expires_at, created_at,
               created_by, enrolled_at, key_hash, renewed_at, certificate_expires_at, revoked_at, revoked_by
               FROM worker_identities WHERE tenant_id = $1 AND identity_id = $2"
    }

    /// Newest first, by the primary key.
    WORKER_IDENTITY_LIST on worker_identities {
        both: "SELECT tenant_id, identity_id, name, terms, token_lookup, token_hash, token_expires_at, created_at,
               created_by, enrolled_at, key_hash, renewed_at, certificate_expires_at, revoked_at, revoked_by
               FROM worker_identities WHERE tenant_id = $1 AND identity_id < $2 ORDER BY identity_id DESC LIMIT $3"
    }
}
