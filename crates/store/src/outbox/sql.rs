use crate::sql::statements;

statements! {
    /// outbox_due, then outbox_order: only the first undelivered message of a run and destination.
    OUTBOX_DUE on outbox {
        both: "SELECT o.tenant_id, o.outbox_id, o.run_id, o.destination, o.payload, o.created_at, o.attempts FROM outbox o
               WHERE o.delivered_at IS NULL AND o.dead_at IS NULL AND o.next_at <= $1
               AND NOT EXISTS (SELECT 1 FROM outbox e WHERE e.tenant_id = o.tenant_id AND e.run_id = o.run_id
               AND e.destination = o.destination AND (e.place, e.outbox_id) < (o.place, o.outbox_id)
               AND e.delivered_at IS NULL AND e.dead_at IS NULL)
               ORDER BY o.next_at, o.outbox_id LIMIT $2"
    }

    /// Where messages wait to be sent, each once, with the instant of the first: from one destination to the next.
    OUTBOX_DESTINATIONS on outbox {
        sqlite: "",
        postgres: "WITH RECURSIVE head AS (
                       (SELECT tenant_id, destination, next_at, 1::bigint AS number FROM outbox
                        WHERE delivered_at IS NULL AND dead_at IS NULL AND (tenant_id, destination) > ($1, $2)
                        ORDER BY tenant_id, destination, next_at LIMIT 1)
                     UNION ALL
                       SELECT next.tenant_id, next.destination, next.next_at, head.number + 1
                       FROM head CROSS JOIN LATERAL (
                           SELECT o.tenant_id, o.destination, o.next_at FROM outbox o
                           WHERE o.delivered_at IS NULL AND o.dead_at IS NULL
                           AND (o.tenant_id, o.destination) > (head.tenant_id, head.destination)
                           ORDER BY o.tenant_id, o.destination, o.next_at LIMIT 1) next
                       WHERE head.number < $3
                   ) SELECT tenant_id, destination, next_at FROM head"
    }

    OUTBOX_DESTINATION_NEXT on outbox {
        sqlite: "SELECT tenant_id, destination, next_at FROM outbox INDEXED BY outbox_waiting
                 WHERE delivered_at IS NULL AND dead_at IS NULL AND (tenant_id, destination) > ($1, $2)
                 ORDER BY tenant_id, destination, next_at LIMIT 1",
        postgres: ""
    }

    /// Of one destination, the first of each run only: later ones wait for it.
    OUTBOX_DUE_AT on outbox {
        sqlite: "SELECT o.tenant_id, o.outbox_id, o.run_id, o.destination, o.payload, o.created_at, o.attempts
                 FROM outbox o INDEXED BY outbox_waiting
                 WHERE o.tenant_id = $1 AND o.destination = $2 AND o.delivered_at IS NULL AND o.dead_at IS NULL
                 AND o.next_at <= $3
                 AND NOT EXISTS (SELECT 1 FROM outbox e WHERE e.tenant_id = o.tenant_id AND e.run_id = o.run_id
                 AND e.destination = o.destination AND (e.place, e.outbox_id) < (o.place, o.outbox_id)
                 AND e.delivered_at IS NULL AND e.dead_at IS NULL)
                 ORDER BY o.next_at, o.outbox_id LIMIT $4",
        postgres: "SELECT o.tenant_id, o.outbox_id, o.run_id, o.destination, o.payload, o.created_at, o.attempts
                   FROM outbox o
                   WHERE o.tenant_id = $1 AND o.destination = $2 AND o.delivered_at IS NULL AND o.dead_at IS NULL
                   AND o.next_at <= $3
                   AND NOT EXISTS (SELECT 1 FROM outbox e WHERE e.tenant_id = o.tenant_id AND e.run_id = o.run_id
                   AND e.destination = o.destination AND (e.place, e.outbox_id) < (o.place, o.outbox_id)
                   AND e.delivered_at IS NULL AND e.dead_at IS NULL)
                   ORDER BY o.next_at, o.outbox_id LIMIT $4"
    }

    NEXT_OUTBOX on outbox {
        both: "SELECT next_at FROM outbox WHERE delivered_at IS NULL AND dead_at IS NULL ORDER BY next_at LIMIT 1"
    }

    /// Guard: it is due, and no other server has taken it.
    OUTBOX_TAKE on outbox {
        both: "UPDATE outbox SET next_at = $1 WHERE tenant_id = $2 AND outbox_id = $3 AND attempts = $4 AND next_at <= $5
               AND delivered_at IS NULL AND dead_at IS NULL"
    }

    OUTBOX_DELIVERED on outbox {
        both: "UPDATE outbox SET delivered_at = $1, attempts = attempts + 1 WHERE tenant_id = $2 AND outbox_id = $3
               AND delivered_at IS NULL"
    }

    OUTBOX_FAILED on outbox {
        both: "UPDATE outbox SET attempts = attempts + 1, last_error = $1, next_at = coalesce($2, next_at), dead_at = $3
               WHERE tenant_id = $4 AND outbox_id = $5 AND delivered_at IS NULL"
    }

    /// Messages that were given up, of every kind, newest first.
    OUTBOX_DEAD on outbox {
        sqlite: "SELECT outbox_id, run_id, destination, created_at, attempts, dead_at, last_error
                 FROM outbox INDEXED BY outbox_dead
                 WHERE tenant_id = $1 AND outbox_id < $2 AND dead_at IS NOT NULL ORDER BY outbox_id DESC LIMIT $3",
        postgres: "SELECT outbox_id, run_id, destination, created_at, attempts, dead_at, last_error FROM outbox
                   WHERE tenant_id = $1 AND outbox_id < $2 AND dead_at IS NOT NULL ORDER BY outbox_id DESC LIMIT $3"
    }

    /// Guard: it was given up. It begins anew, in its old place.
    OUTBOX_REPLAY on outbox {
        both: "UPDATE outbox SET dead_at = NULL, attempts = 0, next_at = $1
               WHERE tenant_id = $2 AND outbox_id = $3 AND dead_at IS NOT NULL"
    }

    SWEEP_OUTBOX on outbox {
        both: "DELETE FROM outbox WHERE (tenant_id, outbox_id) IN
               (SELECT tenant_id, outbox_id FROM outbox WHERE tenant_id = $1 AND outbox_id < $2
                AND (delivered_at < $3 OR dead_at < $3) ORDER BY outbox_id LIMIT $4)"
    }
}
