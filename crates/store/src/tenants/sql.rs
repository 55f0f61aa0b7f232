use crate::sql::statements;

statements! {
    TENANT_PUT on tenants {
        both: "INSERT INTO tenants (tenant_id, name, max_concurrency, max_runs_per_min, pending_runs_max, weight, created_at,
               settings, disabled_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
               ON CONFLICT (tenant_id) DO UPDATE SET name = excluded.name, max_concurrency = excluded.max_concurrency,
               max_runs_per_min = excluded.max_runs_per_min, pending_runs_max = excluded.pending_runs_max,
               weight = excluded.weight, settings = excluded.settings, disabled_at = excluded.disabled_at"
    }

    /// Before a tenant is disabled: waits for the transactions in which its runs begin, and keeps new ones from it until the
    /// commit. Before its row is locked, as they do.
    BEGIN_LOCK_ALONE on tenants {
        sqlite: "",
        postgres: "SELECT pg_advisory_xact_lock($1)"
    }

    /// The tenant before it is written whole: PostgreSQL keeps others from it until then. SQLite has one writer anyway.
    TENANT_HELD on tenants {
        sqlite: "SELECT tenant_id, name, max_concurrency, max_runs_per_min, pending_runs_max, weight, created_at,
                 settings, disabled_at FROM tenants WHERE tenant_id = ?1",
        postgres: "SELECT tenant_id, name, max_concurrency, max_runs_per_min, pending_runs_max, weight, created_at,
                   settings, disabled_at FROM tenants WHERE tenant_id = $1 FOR UPDATE"
    }

    TENANTS on tenants {
        both: "SELECT tenant_id, name, max_concurrency, max_runs_per_min, pending_runs_max, weight, created_at,
               settings, disabled_at FROM tenants
               ORDER BY tenant_id"
    }

    /// Whether there are several tenants that are not disabled: two are enough to tell.
    TENANTS_ENABLED on tenants {
        both: "SELECT tenant_id FROM tenants WHERE disabled_at IS NULL LIMIT 2"
    }

    /// The same, disabled or not.
    TENANTS_ANY on tenants {
        both: "SELECT tenant_id FROM tenants LIMIT 2"
    }

    TENANT_GET on tenants {
        both: "SELECT tenant_id, name, max_concurrency, max_runs_per_min, pending_runs_max, weight, created_at,
               settings, disabled_at FROM tenants
               WHERE tenant_id = $1"
    }

    TENANT_NAMED on tenants {
        both: "SELECT tenant_id, name, max_concurrency, max_runs_per_min, pending_runs_max, weight, created_at,
               settings, disabled_at FROM tenants
               WHERE name = $1"
    }
}
