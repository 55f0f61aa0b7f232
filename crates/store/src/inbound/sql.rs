use crate::sql::statements;

statements! {
    INBOUND_ADD on inbound_endpoints {
        both: "INSERT INTO inbound_endpoints (tenant_id, endpoint_id, name, source, header, secondary, paused, secret,
               previous_secret, previous_until, created_at, created_by, secret_by)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT DO NOTHING"
    }

    INBOUND_CHANGE on inbound_endpoints {
        both: "UPDATE inbound_endpoints SET header = $1, secondary = $2, paused = $3, secret = $4, previous_secret = $5,
               previous_until = $6, secret_by = $7 WHERE tenant_id = $8 AND endpoint_id = $9
               AND secret = $10 AND secondary = $11 AND paused = $12"
    }

    INBOUND_REMOVE on inbound_endpoints {
        both: "DELETE FROM inbound_endpoints WHERE tenant_id = $1 AND endpoint_id = $2"
    }

    INBOUND_DELIVERIES_REMOVE on inbound_deliveries {
        both: "DELETE FROM inbound_deliveries WHERE tenant_id = $1 AND endpoint_id = $2"
    }

    INBOUND_FINGERPRINTS_REMOVE on inbound_fingerprints {
        both: "DELETE FROM inbound_fingerprints WHERE tenant_id = $1 AND endpoint_id = $2"
    }

    /// inbound_endpoints_by_name.
    INBOUNDS on inbound_endpoints {
        both: "SELECT tenant_id, endpoint_id, name, source, header, secondary, paused, secret, previous_secret,
               previous_until, created_at, created_by, secret_by FROM inbound_endpoints
               WHERE tenant_id = $1 AND name > $2 ORDER BY name LIMIT $3"
    }

    /// inbound_endpoints_by_id: the sender of a webhook names no tenant.
    INBOUND_GET on inbound_endpoints {
        both: "SELECT tenant_id, endpoint_id, name, source, header, secondary, paused, secret, previous_secret,
               previous_until, created_at, created_by, secret_by FROM inbound_endpoints WHERE endpoint_id = $1"
    }

    INBOUND_NAMED on inbound_endpoints {
        both: "SELECT tenant_id, endpoint_id, name, source, header, secondary, paused, secret, previous_secret,
               previous_until, created_at, created_by, secret_by FROM inbound_endpoints WHERE tenant_id = $1 AND name = $2"
    }

    /// Guard: the key is new.
    DELIVERY_RECORD on idempotency {
        both: "INSERT INTO idempotency (tenant_id, client, key, source, request_hash, state, attempts, created_at,
               updated_at, expires_at, lock_expires_at) VALUES ($1, $2, $3, $4, $5, 'processing', 1, $6, $6, $7, $8)
               ON CONFLICT (tenant_id, client, key) DO NOTHING"
    }

    DELIVERY_STANDING on idempotency {
        both: "SELECT state, attempts, request_hash, expires_at, lock_expires_at FROM idempotency
               WHERE tenant_id = $1 AND client = $2 AND key = $3"
    }

    /// Guard: no other server has retaken it meanwhile.
    DELIVERY_RETAKE on idempotency {
        both: "UPDATE idempotency SET state = 'processing', attempts = $1, updated_at = $2, lock_expires_at = $3,
               error = NULL WHERE tenant_id = $4 AND client = $5 AND key = $6 AND attempts = $7"
    }

    DELIVERY_INSERT on inbound_deliveries {
        both: "INSERT INTO inbound_deliveries (tenant_id, endpoint_id, key, event, payload, received_at, retry_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7)
               ON CONFLICT (tenant_id, endpoint_id, key) DO UPDATE SET event = excluded.event, payload = excluded.payload,
               received_at = excluded.received_at, retry_at = excluded.retry_at"
    }

    /// One that came before. Of what it says only the body is signed: its event stays as it was stored.
    DELIVERY_AGAIN on inbound_deliveries {
        both: "INSERT INTO inbound_deliveries (tenant_id, endpoint_id, key, event, payload, received_at, retry_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7)
               ON CONFLICT (tenant_id, endpoint_id, key) DO UPDATE SET received_at = excluded.received_at,
               retry_at = excluded.retry_at"
    }

    DELIVERY_RETRY_AT on inbound_deliveries {
        both: "UPDATE inbound_deliveries SET retry_at = $1 WHERE tenant_id = $2 AND endpoint_id = $3 AND key = $4"
    }

    /// Guard: the attempt is still the current one.
    DELIVERY_FINISH on idempotency {
        both: "UPDATE idempotency SET state = $1, response = $2, error = $3, updated_at = $4, expires_at = $5,
               lock_expires_at = NULL WHERE tenant_id = $6 AND client = $7 AND key = $8 AND attempts = $9
               AND state = 'processing'"
    }

    /// Guard: no other delivery was about the same a moment ago, but for the one that has come to nothing.
    FINGERPRINT_PUT on inbound_fingerprints {
        both: "INSERT INTO inbound_fingerprints (tenant_id, endpoint_id, fingerprint, key, at) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (tenant_id, endpoint_id, fingerprint) DO UPDATE SET key = excluded.key, at = excluded.at
               WHERE inbound_fingerprints.at < $6 OR inbound_fingerprints.key = $7"
    }

    FINGERPRINT_GIVE on inbound_fingerprints {
        both: "UPDATE inbound_fingerprints SET key = $1 WHERE tenant_id = $2 AND endpoint_id = $3 AND fingerprint = $4"
    }

    FINGERPRINT_GET on inbound_fingerprints {
        both: "SELECT key FROM inbound_fingerprints WHERE tenant_id = $1 AND endpoint_id = $2 AND fingerprint = $3"
    }

    DELIVERY_GET on inbound_deliveries {
        both: "SELECT tenant_id, endpoint_id, key, event, payload, received_at, retry_at FROM inbound_deliveries
               WHERE tenant_id = $1 AND endpoint_id = $2 AND key = $3"
    }

    /// inbound_deliveries_due.
    DELIVERIES_DUE on inbound_deliveries {
        both: "SELECT tenant_id, endpoint_id, key, event, payload, received_at, retry_at FROM inbound_deliveries
               WHERE retry_at IS NOT NULL AND retry_at <= $1 ORDER BY retry_at LIMIT $2"
    }

    /// inbound_deliveries_recent, and the key of idempotency.
    DELIVERIES on inbound_deliveries {
        both: "SELECT d.tenant_id, d.endpoint_id, d.key, d.event, d.payload, d.received_at, d.retry_at,
               i.state, i.attempts, i.response, i.error FROM inbound_deliveries d
               JOIN idempotency i ON i.tenant_id = d.tenant_id AND i.client = $1 AND i.key = d.key
               WHERE d.tenant_id = $2 AND d.endpoint_id = $3 AND d.received_at < $4
               ORDER BY d.received_at DESC LIMIT $5"
    }

    SWEEP_DELIVERIES on inbound_deliveries {
        both: "DELETE FROM inbound_deliveries WHERE (tenant_id, endpoint_id, key) IN
               (SELECT tenant_id, endpoint_id, key FROM inbound_deliveries WHERE received_at < $1 AND retry_at IS NULL
                ORDER BY received_at LIMIT $2)"
    }

    SWEEP_FINGERPRINTS on inbound_fingerprints {
        both: "DELETE FROM inbound_fingerprints WHERE (tenant_id, endpoint_id, fingerprint) IN
               (SELECT tenant_id, endpoint_id, fingerprint FROM inbound_fingerprints WHERE at < $1 ORDER BY at LIMIT $2)"
    }
}
