use crate::sql::statements;

statements! {
    /// A delegated vote is not passed on: in the span of a delegation its delegator is no other person's delegate, and
    /// its delegate delegates to no other person.
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

    /// The delegations that a person has given and that are in force now, by delegations_delegator.
    DELEGATIONS_BY on delegations {
        both: "SELECT tenant_id, delegation_id, delegator, delegate, from_at, until_at, reason, created_at, created_by,
               revoked_at, revoked_by
               FROM delegations WHERE tenant_id = $1 AND delegator = $2 AND until_at > $3 AND from_at <= $3
               AND revoked_at IS NULL ORDER BY delegation_id"
    }

    /// The delegations that a person has received and that are in force now, by delegations_delegate.
    DELEGATIONS_TO on delegations {
        both: "SELECT tenant_id, delegation_id, delegator, delegate, from_at, until_at, reason, created_at, created_by,
               revoked_at, revoked_by
               FROM delegations WHERE tenant_id = $1 AND delegate = $2 AND until_at > $3 AND from_at <= $3
               AND revoked_at IS NULL ORDER BY delegation_id"
    }
}
