use crate::sql::statements;

statements! {
    OUTBOUND_ADD on outbound_endpoints {
        both: "INSERT INTO outbound_endpoints (tenant_id, endpoint_id, url, description, events, workflows, secret,
               previous_secret, previous_until, state, note, fed_to, fed_at, failing_since, created_at, created_by, name)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
               ON CONFLICT DO NOTHING"
    }

    OUTBOUND_CHANGE on outbound_endpoints {
        both: "UPDATE outbound_endpoints SET url = $1, description = $2, events = $3, workflows = $4, secret = $5,
               previous_secret = $6, previous_until = $7, state = $8, note = $9, failing_since = $10
               WHERE tenant_id = $11 AND endpoint_id = $12 AND secret = $13 AND state = $14"
    }

    OUTBOUND_REMOVE on outbound_endpoints {
        both: "DELETE FROM outbound_endpoints WHERE tenant_id = $1 AND endpoint_id = $2"
    }

    /// Messages to a removed endpoint become dead letters.
    OUTBOUND_MESSAGES_END on outbox {
        both: "UPDATE outbox SET dead_at = $1, last_error = 'the endpoint was removed'
               WHERE tenant_id = $2 AND destination = $3 AND delivered_at IS NULL AND dead_at IS NULL"
    }

    OUTBOUND_GET on outbound_endpoints {
        both: "SELECT tenant_id, endpoint_id, url, description, events, workflows, secret, previous_secret, previous_until,
               state, note, fed_to, fed_at, failing_since, created_at, created_by, name FROM outbound_endpoints
               WHERE tenant_id = $1 AND endpoint_id = $2"
    }

    /// outbound_endpoints_name
    OUTBOUND_NAMED on outbound_endpoints {
        both: "SELECT tenant_id, endpoint_id, url, description, events, workflows, secret, previous_secret, previous_until,
               state, note, fed_to, fed_at, failing_since, created_at, created_by, name FROM outbound_endpoints
               WHERE tenant_id = $1 AND name = $2"
    }

    OUTBOUNDS on outbound_endpoints {
        both: "SELECT tenant_id, endpoint_id, url, description, events, workflows, secret, previous_secret, previous_until,
               state, note, fed_to, fed_at, failing_since, created_at, created_by, name FROM outbound_endpoints
               WHERE tenant_id = $1 ORDER BY endpoint_id LIMIT $2"
    }

    /// All of them on purpose: the publisher serves every tenant's endpoints, and they are few.
    OUTBOUNDS_FED on outbound_endpoints {
        both: "SELECT tenant_id, endpoint_id, url, description, events, workflows, secret, previous_secret, previous_until,
               state, note, fed_to, fed_at, failing_since, created_at, created_by, name FROM outbound_endpoints
               WHERE state = 'enabled'"
    }

    /// Guard: no other server has published from here.
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

    ATTEMPT_INSERT on outbound_attempts {
        both: "INSERT INTO outbound_attempts (tenant_id, outbox_id, attempt, at, duration_ms, status, error, excerpt)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
               ON CONFLICT (tenant_id, outbox_id, attempt) DO UPDATE SET at = excluded.at,
               duration_ms = excluded.duration_ms, status = excluded.status, error = excluded.error,
               excerpt = excluded.excerpt"
    }

    /// The attempts of a whole page of an endpoint's messages: outbox_by_destination for the messages, then the primary key
    /// for each one's. The `+` and the `OFFSET` keep the range away from the attempts, among which are those of other
    /// endpoints.
    ATTEMPTS on outbound_attempts {
        sqlite: "SELECT a.outbox_id, a.attempt, a.at, a.duration_ms, a.status, a.error, a.excerpt
                 FROM outbox o INDEXED BY outbox_by_destination CROSS JOIN outbound_attempts a
                 ON a.tenant_id = o.tenant_id AND a.outbox_id = +o.outbox_id
                 WHERE o.tenant_id = $1 AND o.destination = $2 AND o.outbox_id >= $3 AND o.outbox_id <= $4
                 ORDER BY o.outbox_id, a.attempt",
        postgres: "SELECT a.outbox_id, a.attempt, a.at, a.duration_ms, a.status, a.error, a.excerpt
                   FROM outbox o CROSS JOIN LATERAL (SELECT t.outbox_id, t.attempt, t.at, t.duration_ms, t.status, t.error,
                   t.excerpt FROM outbound_attempts t WHERE t.tenant_id = o.tenant_id AND t.outbox_id = o.outbox_id
                   OFFSET 0) AS a
                   WHERE o.tenant_id = $1 AND o.destination = $2 AND o.outbox_id >= $3 AND o.outbox_id <= $4
                   ORDER BY o.outbox_id, a.attempt"
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

    SWEEP_ATTEMPTS on outbound_attempts {
        both: "DELETE FROM outbound_attempts WHERE (tenant_id, outbox_id, attempt) IN
               (SELECT tenant_id, outbox_id, attempt FROM outbound_attempts WHERE at < $1 ORDER BY at LIMIT $2)"
    }
}
