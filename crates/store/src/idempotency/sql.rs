use crate::sql::statements;

statements! {
    IDEMPOTENCY_GET on idempotency {
        both: "SELECT source, request_hash, state, run_id, response, error, attempts, created_at, updated_at, expires_at,
               lock_expires_at FROM idempotency WHERE tenant_id = $1 AND client = $2 AND key = $3"
    }

    /// Guard: a key is free if it is new, if the lock of the request that had it has expired, if it failed and may be
    /// tried again, or if its record has expired and no run stands for it.
    IDEMPOTENCY_BEGIN on idempotency {
        both: "INSERT INTO idempotency (tenant_id, client, key, source, request_hash, state, created_at, updated_at,
               expires_at, lock_expires_at) VALUES ($1, $2, $3, $4, $5, 'processing', $6, $6, $7, $8)
               ON CONFLICT (tenant_id, client, key) DO UPDATE SET state = 'processing', attempts = CASE
               WHEN idempotency.expires_at <= $6 THEN 1 ELSE idempotency.attempts + 1 END, updated_at = $6,
               source = excluded.source, request_hash = excluded.request_hash, response = NULL, error = NULL,
               expires_at = excluded.expires_at, lock_expires_at = excluded.lock_expires_at
               WHERE idempotency.run_id IS NULL AND (idempotency.expires_at <= $6
               OR (idempotency.request_hash = excluded.request_hash
               AND ((idempotency.state = 'processing' AND idempotency.lock_expires_at <= $6)
               OR (idempotency.state = 'failed' AND idempotency.attempts < $9))))"
    }

    IDEMPOTENCY_RENEW on idempotency {
        both: "UPDATE idempotency SET lock_expires_at = $1 WHERE tenant_id = $2 AND client = $3 AND key = $4
               AND state = 'processing' AND lock_expires_at < $1"
    }

    IDEMPOTENCY_FINISH on idempotency {
        both: "UPDATE idempotency SET state = $1, response = $2, error = $3, updated_at = $4, expires_at = $5,
               lock_expires_at = NULL WHERE tenant_id = $6 AND client = $7 AND key = $8"
    }

    /// Long after they expired, and never before its run: as long as that is here its key answers `IDEMPOTENCY_EXPIRED`.
    SWEEP_IDEMPOTENCY on idempotency {
        both: "DELETE FROM idempotency WHERE (tenant_id, client, key) IN
               (SELECT i.tenant_id, i.client, i.key FROM idempotency i WHERE i.expires_at < $1
                AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.tenant_id = i.tenant_id AND r.run_id = i.run_id)
                ORDER BY i.expires_at LIMIT $2)"
    }
}
