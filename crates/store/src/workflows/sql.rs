use crate::sql::statements;

statements! {
    /// Guard: the next version, or none. A name that is new begins with version 1.
    WORKFLOW_ADVANCE on workflows {
        both: "INSERT INTO workflows (tenant_id, name, revision, latest_version, created_at, updated_at)
               VALUES ($1, $2, 1, $3, $4, $4)
               ON CONFLICT (tenant_id, name) DO UPDATE SET revision = workflows.revision + 1,
               latest_version = excluded.latest_version, updated_at = excluded.updated_at
               WHERE workflows.latest_version + 1 = excluded.latest_version"
    }

    WORKFLOW_VERSION_INSERT on workflow_versions {
        both: "INSERT INTO workflow_versions (tenant_id, name, version, source, source_hash, definition, plan_hash,
               created_at, created_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
    }

    WORKFLOW_STATE on workflows {
        both: "UPDATE workflows SET state = $1, revision = revision + 1, updated_at = $2
               WHERE tenant_id = $3 AND name = $4"
    }

    /// The primary keys of both tables. Asked again whenever another server has committed something, so it reads no
    /// source.
    WORKFLOW_HEAD on workflows {
        both: "SELECT w.name, w.revision, w.latest_version, w.state, w.created_at, w.updated_at, v.source_hash,
               v.plan_hash, v.created_by
               FROM workflows w JOIN workflow_versions v
               ON v.tenant_id = w.tenant_id AND v.name = w.name AND v.version = w.latest_version
               WHERE w.tenant_id = $1 AND w.name = $2"
    }

    WORKFLOW_LIST on workflows {
        both: "SELECT w.name, w.revision, w.latest_version, w.state, w.created_at, w.updated_at, v.source_hash,
               v.plan_hash, v.created_by
               FROM workflows w JOIN workflow_versions v
               ON v.tenant_id = w.tenant_id AND v.name = w.name AND v.version = w.latest_version
               WHERE w.tenant_id = $1 AND w.name > $2 ORDER BY w.name LIMIT $3"
    }

    WORKFLOW_VERSION_GET on workflow_versions {
        both: "SELECT name, version, source, source_hash, definition, plan_hash, created_at, created_by
               FROM workflow_versions WHERE tenant_id = $1 AND name = $2 AND version = $3"
    }

    WORKFLOW_VERSIONS on workflow_versions {
        both: "SELECT name, version, source_hash, plan_hash, created_at, created_by FROM workflow_versions
               WHERE tenant_id = $1 AND name = $2 AND version < $3 ORDER BY version DESC LIMIT $4"
    }
}
