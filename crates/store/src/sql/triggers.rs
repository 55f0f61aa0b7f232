//! Schedules and webhooks: what is written and read of them.

use super::statements;

statements! {
    SCHEDULE_ADD on schedules {
        both: "INSERT INTO schedules (tenant_id, schedule_id, name, workflow, origin, cron, timezone, dst, overlap,
               catch_up_ms, jitter_ms, inputs, workspace, paused, note, done_at, next_at, last_run_id, revision,
               created_at, created_by, updated_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)
               ON CONFLICT DO NOTHING"
    }

    /// Guard: the revision that was read.
    SCHEDULE_CHANGE on schedules {
        both: "UPDATE schedules SET workflow = $1, cron = $2, timezone = $3, dst = $4, overlap = $5, catch_up_ms = $6,
               jitter_ms = $7, inputs = $8, workspace = $9, paused = $10, note = $11, done_at = $12, next_at = $13,
               last_run_id = $14, updated_at = $15, revision = revision + 1
               WHERE tenant_id = $16 AND schedule_id = $17 AND revision = $18"
    }

    SCHEDULE_REMOVE on schedules { both: "DELETE FROM schedules WHERE tenant_id = $1 AND schedule_id = $2" }

    SCHEDULE_SLOTS_REMOVE on schedule_slots {
        both: "DELETE FROM schedule_slots WHERE tenant_id = $1 AND schedule_id = $2"
    }

    SLOT_PUT on schedule_slots {
        both: "INSERT INTO schedule_slots (tenant_id, schedule_id, slot_at, state, run_id, note, at)
               VALUES ($1, $2, $3, $4, $5, $6, $7)
               ON CONFLICT (tenant_id, schedule_id, slot_at) DO UPDATE SET state = excluded.state,
               run_id = excluded.run_id, note = excluded.note, at = excluded.at"
    }

    SCHEDULE_GET on schedules {
        both: "SELECT tenant_id, schedule_id, name, workflow, origin, cron, timezone, dst, overlap, catch_up_ms, jitter_ms,
               inputs, workspace, paused, note, done_at, next_at, last_run_id, revision, created_at, created_by, updated_at
               FROM schedules WHERE tenant_id = $1 AND schedule_id = $2"
    }

    /// schedules_by_name.
    SCHEDULE_NAMED on schedules {
        both: "SELECT tenant_id, schedule_id, name, workflow, origin, cron, timezone, dst, overlap, catch_up_ms, jitter_ms,
               inputs, workspace, paused, note, done_at, next_at, last_run_id, revision, created_at, created_by, updated_at
               FROM schedules WHERE tenant_id = $1 AND name = $2"
    }

    /// schedules_by_name.
    SCHEDULES on schedules {
        both: "SELECT tenant_id, schedule_id, name, workflow, origin, cron, timezone, dst, overlap, catch_up_ms, jitter_ms,
               inputs, workspace, paused, note, done_at, next_at, last_run_id, revision, created_at, created_by, updated_at
               FROM schedules WHERE tenant_id = $1 AND name > $2 ORDER BY name LIMIT $3"
    }

    /// schedules_due.
    SCHEDULES_DUE on schedules {
        both: "SELECT tenant_id, schedule_id, name, workflow, origin, cron, timezone, dst, overlap, catch_up_ms, jitter_ms,
               inputs, workspace, paused, note, done_at, next_at, last_run_id, revision, created_at, created_by, updated_at
               FROM schedules WHERE next_at IS NOT NULL AND next_at <= $1 ORDER BY next_at LIMIT $2"
    }

    SCHEDULES_NEXT on schedules {
        both: "SELECT next_at FROM schedules WHERE next_at > $1 ORDER BY next_at LIMIT 1"
    }

    SLOTS on schedule_slots {
        both: "SELECT slot_at, state, run_id, note, at FROM schedule_slots
               WHERE tenant_id = $1 AND schedule_id = $2 ORDER BY slot_at DESC LIMIT $3"
    }

    /// schedule_slots_queued.
    SLOTS_QUEUED on schedule_slots {
        both: "SELECT slot_at, state, run_id, note, at FROM schedule_slots
               WHERE tenant_id = $1 AND schedule_id = $2 AND state = 'queued' ORDER BY slot_at LIMIT $3"
    }

    INBOUND_ADD on inbound_endpoints {
        both: "INSERT INTO inbound_endpoints (tenant_id, endpoint_id, name, source, header, secondary, paused, secret,
               previous_secret, previous_until, created_at, created_by)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING"
    }

    INBOUND_CHANGE on inbound_endpoints {
        both: "UPDATE inbound_endpoints SET header = $1, secondary = $2, paused = $3, secret = $4, previous_secret = $5,
               previous_until = $6 WHERE tenant_id = $7 AND endpoint_id = $8"
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
               previous_until, created_at, created_by FROM inbound_endpoints
               WHERE tenant_id = $1 AND name > $2 ORDER BY name LIMIT $3"
    }

    /// inbound_endpoints_by_id: whoever sends to it names no tenant.
    INBOUND_GET on inbound_endpoints {
        both: "SELECT tenant_id, endpoint_id, name, source, header, secondary, paused, secret, previous_secret,
               previous_until, created_at, created_by FROM inbound_endpoints WHERE endpoint_id = $1"
    }

    INBOUND_NAMED on inbound_endpoints {
        both: "SELECT tenant_id, endpoint_id, name, source, header, secondary, paused, secret, previous_secret,
               previous_until, created_at, created_by FROM inbound_endpoints WHERE tenant_id = $1 AND name = $2"
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

    /// Guard: nobody else was faster.
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

    DELIVERY_RETRY_AT on inbound_deliveries {
        both: "UPDATE inbound_deliveries SET retry_at = $1 WHERE tenant_id = $2 AND endpoint_id = $3 AND key = $4"
    }

    /// Guard: the attempt is still the current one.
    DELIVERY_FINISH on idempotency {
        both: "UPDATE idempotency SET state = $1, response = $2, error = $3, updated_at = $4, expires_at = $5,
               lock_expires_at = NULL WHERE tenant_id = $6 AND client = $7 AND key = $8 AND attempts = $9
               AND state = 'processing'"
    }

    /// Guard: no other delivery was about the same a moment ago.
    FINGERPRINT_PUT on inbound_fingerprints {
        both: "INSERT INTO inbound_fingerprints (tenant_id, endpoint_id, fingerprint, key, at) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (tenant_id, endpoint_id, fingerprint) DO UPDATE SET key = excluded.key, at = excluded.at
               WHERE inbound_fingerprints.at < $6 OR inbound_fingerprints.key = excluded.key"
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

    OUTBOUND_ADD on outbound_endpoints {
        both: "INSERT INTO outbound_endpoints (tenant_id, endpoint_id, url, description, events, workflows, secret,
               previous_secret, previous_until, state, note, fed_to, fed_at, failing_since, created_at, created_by)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"
    }

    OUTBOUND_CHANGE on outbound_endpoints {
        both: "UPDATE outbound_endpoints SET url = $1, description = $2, events = $3, workflows = $4, secret = $5,
               previous_secret = $6, previous_until = $7, state = $8, note = $9, failing_since = $10
               WHERE tenant_id = $11 AND endpoint_id = $12"
    }

    OUTBOUND_REMOVE on outbound_endpoints {
        both: "DELETE FROM outbound_endpoints WHERE tenant_id = $1 AND endpoint_id = $2"
    }

    /// What was meant for an endpoint that is gone goes nowhere.
    OUTBOUND_MESSAGES_END on outbox {
        both: "UPDATE outbox SET dead_at = $1, last_error = 'the endpoint was removed'
               WHERE tenant_id = $2 AND destination = $3 AND delivered_at IS NULL AND dead_at IS NULL"
    }

    OUTBOUND_GET on outbound_endpoints {
        both: "SELECT tenant_id, endpoint_id, url, description, events, workflows, secret, previous_secret, previous_until,
               state, note, fed_to, fed_at, failing_since, created_at, created_by FROM outbound_endpoints
               WHERE tenant_id = $1 AND endpoint_id = $2"
    }

    OUTBOUNDS on outbound_endpoints {
        both: "SELECT tenant_id, endpoint_id, url, description, events, workflows, secret, previous_secret, previous_until,
               state, note, fed_to, fed_at, failing_since, created_at, created_by FROM outbound_endpoints
               WHERE tenant_id = $1 ORDER BY endpoint_id LIMIT $2"
    }

    /// All of them on purpose: the publisher serves every tenant's endpoints, and they are few.
    OUTBOUNDS_FED on outbound_endpoints {
        both: "SELECT tenant_id, endpoint_id, url, description, events, workflows, secret, previous_secret, previous_until,
               state, note, fed_to, fed_at, failing_since, created_at, created_by FROM outbound_endpoints
               WHERE state = 'enabled'"
    }

    /// Guard: nobody else has published from here.
    OUTBOUND_FEED on outbound_endpoints {
        both: "UPDATE outbound_endpoints SET fed_to = $1, fed_at = $2
               WHERE tenant_id = $3 AND endpoint_id = $4 AND fed_to = $5 AND state = 'enabled'"
    }

    OUTBOUND_SKIP on outbound_endpoints {
        both: "UPDATE outbound_endpoints SET fed_to = $1 WHERE tenant_id = $2 AND endpoint_id = $3 AND fed_to < $1"
    }

    OUTBOUND_FAILING on outbound_endpoints {
        both: "UPDATE outbound_endpoints SET failing_since = coalesce(failing_since, $1)
               WHERE tenant_id = $2 AND endpoint_id = $3"
    }

    OUTBOUND_WELL on outbound_endpoints {
        both: "UPDATE outbound_endpoints SET failing_since = NULL
               WHERE tenant_id = $1 AND endpoint_id = $2 AND failing_since IS NOT NULL"
    }

    OUTBOUND_DISABLE on outbound_endpoints {
        both: "UPDATE outbound_endpoints SET state = 'disabled', note = $1
               WHERE tenant_id = $2 AND endpoint_id = $3 AND state = 'enabled'"
    }

    /// Guard: it is due, and nobody has it.
    OUTBOX_TAKE on outbox {
        both: "UPDATE outbox SET next_at = $1 WHERE tenant_id = $2 AND outbox_id = $3 AND attempts = $4 AND next_at <= $5
               AND delivered_at IS NULL AND dead_at IS NULL"
    }

    ATTEMPT_INSERT on outbound_attempts {
        both: "INSERT INTO outbound_attempts (tenant_id, outbox_id, attempt, at, duration_ms, status, error, excerpt)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
               ON CONFLICT (tenant_id, outbox_id, attempt) DO UPDATE SET at = excluded.at,
               duration_ms = excluded.duration_ms, status = excluded.status, error = excluded.error,
               excerpt = excluded.excerpt"
    }

    ATTEMPTS on outbound_attempts {
        both: "SELECT attempt, at, duration_ms, status, error, excerpt FROM outbound_attempts
               WHERE tenant_id = $1 AND outbox_id = $2 ORDER BY attempt"
    }

    /// outbox_by_destination, which SQLite without statistics would pass over for the primary key.
    MESSAGES on outbox {
        sqlite: "SELECT outbox_id, run_id, payload, created_at, attempts, next_at, delivered_at, dead_at, last_error
                 FROM outbox INDEXED BY outbox_by_destination
                 WHERE tenant_id = $1 AND destination = $2 AND outbox_id < $3 ORDER BY outbox_id DESC LIMIT $4",
        postgres: "SELECT outbox_id, run_id, payload, created_at, attempts, next_at, delivered_at, dead_at, last_error
                   FROM outbox WHERE tenant_id = $1 AND destination = $2 AND outbox_id < $3
                   ORDER BY outbox_id DESC LIMIT $4"
    }

    MESSAGE_GET on outbox {
        both: "SELECT outbox_id, run_id, payload, created_at, attempts, next_at, delivered_at, dead_at, last_error
               FROM outbox WHERE tenant_id = $1 AND outbox_id = $2 AND destination = $3"
    }

    /// outbox_by_destination: ids begin with the instant.
    MESSAGES_BETWEEN on outbox {
        sqlite: "SELECT outbox_id, run_id, payload, created_at, attempts, next_at, delivered_at, dead_at, last_error
                 FROM outbox INDEXED BY outbox_by_destination
                 WHERE tenant_id = $1 AND destination = $2 AND outbox_id >= $3 AND outbox_id < $4
                 ORDER BY outbox_id LIMIT $5",
        postgres: "SELECT outbox_id, run_id, payload, created_at, attempts, next_at, delivered_at, dead_at, last_error
                   FROM outbox WHERE tenant_id = $1 AND destination = $2 AND outbox_id >= $3 AND outbox_id < $4
                   ORDER BY outbox_id LIMIT $5"
    }

    SWEEP_SLOTS on schedule_slots {
        both: "DELETE FROM schedule_slots WHERE (tenant_id, schedule_id, slot_at) IN
               (SELECT tenant_id, schedule_id, slot_at FROM schedule_slots WHERE at < $1 AND state <> 'queued'
                ORDER BY at LIMIT $2)"
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

    SWEEP_ATTEMPTS on outbound_attempts {
        both: "DELETE FROM outbound_attempts WHERE (tenant_id, outbox_id, attempt) IN
               (SELECT tenant_id, outbox_id, attempt FROM outbound_attempts WHERE at < $1 ORDER BY at LIMIT $2)"
    }
}
