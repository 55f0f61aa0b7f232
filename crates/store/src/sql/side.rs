//! Rows beside the run's own, in the same commit. Guards are written so that a refusal is "no row", never an error.

use super::statements;

statements! {
    /// Guard.
    IDEMPOTENCY_INSERT on idempotency {
        both: "INSERT INTO idempotency (tenant_id, client, key, source, request_hash, state, run_id, created_at, updated_at,
               expires_at, response) VALUES ($1, $2, $3, $4, $5, 'completed', $6, $7, $7, $8, $9)
               ON CONFLICT (tenant_id, client, key) DO NOTHING"
    }

    /// Guard: no other run holds the subject, and no earlier run waits for it.
    SUBJECT_TAKE on subjects {
        sqlite: "INSERT INTO subjects (tenant_id, subject, run_id) SELECT ?1, ?2, ?3
                 WHERE NOT EXISTS (SELECT 1 FROM subject_queue q WHERE q.tenant_id = ?1 AND q.subject = ?2
                 AND q.run_id < ?4)
                 ON CONFLICT (tenant_id, subject) DO UPDATE SET run_id = excluded.run_id
                 WHERE subjects.run_id = excluded.run_id",
        postgres: "INSERT INTO subjects (tenant_id, subject, run_id) SELECT $1::bytea, $2::text, $3::bytea
                   WHERE NOT EXISTS (SELECT 1 FROM subject_queue q WHERE q.tenant_id = $1 AND q.subject = $2
                   AND q.run_id < $4)
                   ON CONFLICT (tenant_id, subject) DO UPDATE SET run_id = excluded.run_id
                   WHERE subjects.run_id = excluded.run_id"
    }

    /// Guard: there is room.
    SUBJECT_QUEUE on subject_queue {
        sqlite: "INSERT INTO subject_queue (tenant_id, subject, run_id, cancels, queued_at) SELECT ?1, ?2, ?3, ?4, ?5
                 WHERE (SELECT count(*) FROM subject_queue q WHERE q.tenant_id = ?1 AND q.subject = ?2) < ?6",
        postgres: "INSERT INTO subject_queue (tenant_id, subject, run_id, cancels, queued_at)
                   SELECT $1::bytea, $2::text, $3::bytea, $4::bigint, $5::bigint
                   WHERE (SELECT count(*) FROM subject_queue q WHERE q.tenant_id = $1 AND q.subject = $2) < $6"
    }

    QUEUE_LEAVE on subject_queue {
        both: "DELETE FROM subject_queue WHERE tenant_id = $1 AND subject = $2 AND run_id = $3"
    }

    SUBJECT_FREE on subjects {
        both: "DELETE FROM subjects WHERE tenant_id = $1 AND subject = $2 AND run_id = $3"
    }

    STEP_ADD on steps_added {
        both: "INSERT INTO steps_added (tenant_id, run_id, position, spec) VALUES ($1, $2, $3, $4)
               ON CONFLICT (tenant_id, run_id, position) DO UPDATE SET spec = excluded.spec"
    }

    WAIT_OPEN on waits {
        both: "INSERT INTO waits (tenant_id, run_id, position, type, key, accept_from, opened_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7)
               ON CONFLICT (tenant_id, run_id, branch, position) DO UPDATE SET type = excluded.type,
               key = excluded.key, accept_from = excluded.accept_from, opened_at = excluded.opened_at"
    }

    WAIT_CLOSE on waits {
        both: "DELETE FROM waits WHERE tenant_id = $1 AND run_id = $2 AND position = $3"
    }

    /// Guard.
    SIGNAL_CONSUME on signals {
        both: "UPDATE signals SET consumed_by = $1, consumed_step = $2, consumed_at = $3
               WHERE tenant_id = $4 AND signal_id = $5 AND consumed_by IS NULL"
    }

    /// Guard: the run has not heard it.
    SIGNAL_HEAR on signals_heard {
        both: "INSERT INTO signals_heard (tenant_id, run_id, signal_id, position, at) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (tenant_id, run_id, signal_id) DO NOTHING"
    }

    APPROVAL_PUT on approvals {
        both: "INSERT INTO approvals (tenant_id, approval_id, run_id, position, state, quorum, approvers, message,
               on_reject, on_expiry, requested_at, escalate_at, expires_at, resolved_at, excluded, purpose, action, and_from)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
               ON CONFLICT (tenant_id, approval_id) DO UPDATE SET state = excluded.state,
               escalate_at = excluded.escalate_at, expires_at = excluded.expires_at,
               resolved_at = coalesce(approvals.resolved_at, excluded.resolved_at)"
    }

    /// Guard.
    VOTE_INSERT on votes {
        both: "INSERT INTO votes (tenant_id, approval_id, person, approve, notes, at, on_behalf_of)
               VALUES ($1, $2, $3, $4, $5, $6, $7)
               ON CONFLICT (tenant_id, approval_id, person) DO NOTHING"
    }

    VOTE_DROP on votes {
        both: "DELETE FROM votes WHERE tenant_id = $1 AND approval_id = $2 AND person = $3"
    }

    /// Guard, by the unique (tenant_id, name): the account is as it was read. PostgreSQL keeps others from changing it before the
    /// commit, and votes of the same person do not wait for each other. SQLite, with one writer, counts only what is written.
    ACCOUNT_CHECK on users {
        sqlite: "UPDATE users SET roles = $1 WHERE tenant_id = $2 AND name = $3 AND roles = $1 AND groups = $4
                 AND disabled_at IS NULL",
        postgres: "SELECT 1 FROM users WHERE roles = $1 AND tenant_id = $2 AND name = $3 AND groups = $4
                   AND disabled_at IS NULL FOR SHARE"
    }

    /// Guard: no other run continues this one.
    SUCCESSOR_INSERT on successors {
        both: "INSERT INTO successors (tenant_id, run_id, continued_by) VALUES ($1, $2, $3)
               ON CONFLICT (tenant_id, run_id) DO NOTHING"
    }

    /// Guard: the key of another receipt refuses it; the receipt itself moves on, along the arrows of its machine. An
    /// intent may take over a receipt whose effect is known not to have happened, which leaves the next one an intent to
    /// find; or one of an effect that may be repeated. Everything else is told by the run that has the intent.
    RECEIPT_PUT on receipts {
        both: "INSERT INTO receipts (tenant_id, receipt_id, run_id, position, iteration, attempt, effect_key, effect, state,
               request, response, intent_at, outcome_at, late, unsettled,
               bundle)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
               ON CONFLICT (tenant_id, effect_key) DO UPDATE SET state = excluded.state, attempt = excluded.attempt,
               run_id = excluded.run_id, position = excluded.position, iteration = excluded.iteration,
               effect = excluded.effect, request = excluded.request, response = excluded.response, intent_at = excluded.intent_at, outcome_at = excluded.outcome_at,
               late = excluded.late, unsettled = excluded.unsettled, bundle = excluded.bundle
               WHERE receipts.receipt_id = excluded.receipt_id AND CASE WHEN excluded.state = 'intent'
               THEN receipts.state = 'failed' OR (receipts.state IN ('intent', 'in_doubt') AND receipts.effect <> 'unsafe')
               WHEN excluded.state = 'in_doubt' THEN receipts.run_id = excluded.run_id AND receipts.state = 'intent'
               ELSE receipts.run_id = excluded.run_id AND receipts.state IN ('intent', 'in_doubt') END"
    }

    OUTBOX_INSERT on outbox {
        both: "INSERT INTO outbox (tenant_id, outbox_id, run_id, destination, payload, created_at, next_at, place)
               VALUES ($1, $2, $3, $4, $5, $6, $6, $7)"
    }

    ATTR_INSERT on run_attrs {
        both: "INSERT INTO run_attrs (tenant_id, name, value, run_id) VALUES ($1, $2, $3, $4)
               ON CONFLICT (tenant_id, name, value, run_id) DO NOTHING"
    }

    // Which guard refused, on the slow path.

    INSPECT_IDEMPOTENCY on idempotency {
        both: "SELECT 1 FROM idempotency WHERE tenant_id = $1 AND client = $2 AND key = $3"
    }

    /// Who is in the way of this run: the holder, else the first of those who wait and came earlier, else NULL.
    INSPECT_SUBJECT on subjects {
        both: "SELECT coalesce((SELECT s.run_id FROM subjects s WHERE s.tenant_id = $1 AND s.subject = $2),
               (SELECT q.run_id FROM subject_queue q WHERE q.tenant_id = $1 AND q.subject = $2 AND q.run_id < $3
               ORDER BY q.run_id LIMIT 1))"
    }

    /// A row if the queue is full.
    INSPECT_QUEUE on subject_queue {
        both: "SELECT 1 WHERE (SELECT count(*) FROM subject_queue q WHERE q.tenant_id = $1 AND q.subject = $2) >= $3"
    }

    INSPECT_SIGNAL on signals {
        both: "SELECT 1 FROM signals WHERE tenant_id = $1 AND signal_id = $2 AND consumed_by IS NULL"
    }

    INSPECT_HEARD on signals_heard {
        both: "SELECT 1 FROM signals_heard WHERE tenant_id = $1 AND run_id = $2 AND signal_id = $3"
    }

    INSPECT_VOTE on votes {
        both: "SELECT 1 FROM votes WHERE tenant_id = $1 AND approval_id = $2 AND person = $3"
    }

    INSPECT_ACCOUNT on users {
        both: "SELECT 1 FROM users WHERE tenant_id = $1 AND name = $2 AND roles = $3 AND groups = $4 AND disabled_at IS NULL"
    }

    /// A row if RECEIPT_PUT would change none: its condition, the other way round.
    INSPECT_RECEIPT on receipts {
        both: "SELECT 1 FROM receipts WHERE tenant_id = $1 AND effect_key = $2 AND NOT (receipt_id = $3
               AND CASE WHEN $4 = 'intent' THEN state = 'failed' OR (state IN ('intent', 'in_doubt') AND effect <> 'unsafe')
               WHEN $4 = 'in_doubt' THEN run_id = $5 AND state = 'intent'
               ELSE run_id = $5 AND state IN ('intent', 'in_doubt') END)"
    }

    INSPECT_SUCCESSOR on successors {
        both: "SELECT continued_by FROM successors WHERE tenant_id = $1 AND run_id = $2"
    }
}
