use crate::sql::statements;

statements! {
    BULK_PUT on bulk_jobs {
        both: "INSERT INTO bulk_jobs (tenant_id, job_id, action, filter, reason, rollback, person, runs, total, created_at,
               finished_at, maker, key_name) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
               ON CONFLICT (tenant_id, job_id) DO NOTHING"
    }

    /// Guard: no other server owns it, or its time as owner has run out.
    BULK_CLAIM on bulk_jobs {
        both: "UPDATE bulk_jobs SET owner = $1, owner_until = $2 WHERE tenant_id = $3 AND job_id = $4
               AND finished_at IS NULL AND (owner IS NULL OR owner = $1 OR owner_until < $5)"
    }

    /// Guard: the job is where its owner left it.
    BULK_PROGRESS on bulk_jobs {
        both: "UPDATE bulk_jobs SET next = $1, succeeded = succeeded + $2, failed = failed + $3, owner_until = $4,
               finished_at = $5 WHERE tenant_id = $6 AND job_id = $7 AND next = $8 AND owner = $9"
    }

    BULK_FAILURE on bulk_failures {
        both: "INSERT INTO bulk_failures (tenant_id, job_id, position, run_id, code, message)
               VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (tenant_id, job_id, position) DO NOTHING"
    }

    /// bulk_jobs_open.
    BULK_OPEN on bulk_jobs {
        both: "SELECT tenant_id, job_id FROM bulk_jobs WHERE finished_at IS NULL
               AND (owner IS NULL OR owner = $1 OR owner_until < $2) ORDER BY job_id LIMIT $3"
    }

    BULK_ONE on bulk_jobs {
        both: "SELECT job_id, action, filter, reason, rollback, person, key_name, maker, total, next, succeeded, failed, created_at,
               finished_at, runs FROM bulk_jobs WHERE tenant_id = $1 AND job_id = $2"
    }

    BULK_LIST on bulk_jobs {
        both: "SELECT job_id, action, filter, reason, rollback, person, key_name, maker, total, next, succeeded, failed, created_at,
               finished_at FROM bulk_jobs WHERE tenant_id = $1 AND job_id < $2 ORDER BY job_id DESC LIMIT $3"
    }

    BULK_FAILURES on bulk_failures {
        both: "SELECT position, run_id, code, message FROM bulk_failures WHERE tenant_id = $1 AND job_id = $2
               AND position > $3 ORDER BY position LIMIT $4"
    }

    SWEEP_BULK_FAILURES on bulk_failures {
        both: "DELETE FROM bulk_failures WHERE tenant_id = $1 AND job_id < $2 AND NOT EXISTS (SELECT 1 FROM bulk_jobs j
               WHERE j.tenant_id = bulk_failures.tenant_id AND j.job_id = bulk_failures.job_id
               AND (j.finished_at IS NULL OR j.finished_at >= $3))"
    }

    SWEEP_BULK on bulk_jobs {
        both: "DELETE FROM bulk_jobs WHERE tenant_id = $1 AND job_id < $2 AND finished_at < $3"
    }
}
