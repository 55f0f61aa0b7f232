use crate::sql::statements;

statements! {
    POLICY_GET on policies {
        both: "SELECT revision, active_version, shadow_version, latest_version, updated_at, updated_by FROM policies
               WHERE tenant_id = $1"
    }

    /// Guard: the next version, or none. A tenant's first one is 1. Who has put what in force, and when, stays: a version is not in
    /// force by being there.
    POLICY_ADVANCE on policies {
        both: "INSERT INTO policies (tenant_id, revision, latest_version, updated_at, updated_by)
               VALUES ($1, 1, $2, $3, $4)
               ON CONFLICT (tenant_id) DO UPDATE SET revision = policies.revision + 1,
               latest_version = excluded.latest_version
               WHERE policies.latest_version + 1 = excluded.latest_version"
    }

    POLICY_BUNDLE_INSERT on policy_bundles {
        both: "INSERT INTO policy_bundles (tenant_id, version, hash, files, note, created_at, created_by)
               VALUES ($1, $2, $3, $4, $5, $6, $7)"
    }

    /// Guard: the policy has not been changed since it was read, and the version that is put in force exists.
    POLICY_SET on policies {
        both: "UPDATE policies SET active_version = $1, shadow_version = $2, revision = revision + 1, updated_at = $3,
               updated_by = $4 WHERE tenant_id = $5 AND revision = $6
               AND (latest_version >= $1 OR $1 IS NULL) AND (latest_version >= $2 OR $2 IS NULL)"
    }

    POLICY_BUNDLE_GET on policy_bundles {
        both: "SELECT version, hash, note, created_at, created_by, files FROM policy_bundles
               WHERE tenant_id = $1 AND version = $2"
    }

    /// The newest of those with the same content.
    POLICY_BUNDLE_HASHED on policy_bundles {
        both: "SELECT version, hash, note, created_at, created_by, files FROM policy_bundles
               WHERE tenant_id = $1 AND hash = $2 ORDER BY version DESC LIMIT 1"
    }

    POLICY_BUNDLES on policy_bundles {
        both: "SELECT version, hash, note, created_at, created_by FROM policy_bundles
               WHERE tenant_id = $1 AND version < $2 ORDER BY version DESC LIMIT $3"
    }
}
