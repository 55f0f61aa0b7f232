use crate::sql::statements;

statements! {
    /// Tenants with something that is not in their log yet. Each by the last rows of its feed and its log.
    AUDIT_BEHIND on tenants {
        both: "SELECT t.tenant_id FROM tenants t WHERE t.tenant_id > $1 AND
               (coalesce((SELECT f.cursor_to FROM tenant_feed f WHERE f.tenant_id = t.tenant_id
                ORDER BY f.cursor_to DESC LIMIT 1), 0)
               > coalesce((SELECT l.feed_cursor FROM audit_logs l WHERE l.tenant_id = t.tenant_id
                ORDER BY l.number DESC LIMIT 1), 0)
               OR EXISTS (SELECT 1 FROM audit_notes n WHERE n.tenant_id = t.tenant_id))
               ORDER BY t.tenant_id LIMIT $2"
    }

    AUDIT_LOG_LAST on audit_logs {
        both: "SELECT tenant_id, number, origin, epoch, key_id, opened_at, size, last_hash, peaks, checkpoint, feed_cursor,
               sealed_at FROM audit_logs WHERE tenant_id = $1 ORDER BY number DESC LIMIT 1"
    }

    AUDIT_LOG_GET on audit_logs {
        both: "SELECT tenant_id, number, origin, epoch, key_id, opened_at, size, last_hash, peaks, checkpoint, feed_cursor,
               sealed_at FROM audit_logs WHERE tenant_id = $1 AND number = $2"
    }

    AUDIT_LOG_INSERT on audit_logs {
        both: "INSERT INTO audit_logs (tenant_id, number, origin, epoch, key_id, opened_at, size, last_hash, peaks,
               checkpoint, feed_cursor, sealed_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (tenant_id, number) DO NOTHING"
    }

    /// Guard: a block that was computed from another state of the log finds no row.
    AUDIT_LOG_ADVANCE on audit_logs {
        both: "UPDATE audit_logs SET size = $1, last_hash = $2, peaks = $3, checkpoint = $4, feed_cursor = $5, sealed_at = $6
               WHERE tenant_id = $7 AND number = $8 AND size = $9 AND last_hash = $10"
    }

    AUDIT_BLOCK_INSERT on audit_blocks {
        both: "INSERT INTO audit_blocks (tenant_id, number, last_entry, first_entry, prev_hash, bodies, salts, leaves,
               at_from, at_to, checkpoint) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
    }

    /// Those with entries from some index on.
    AUDIT_BLOCKS_FROM on audit_blocks {
        both: "SELECT number, first_entry, last_entry, prev_hash, bodies, salts, leaves, at_from, at_to, checkpoint
               FROM audit_blocks WHERE tenant_id = $1 AND number = $2 AND last_entry >= $3 ORDER BY last_entry LIMIT $4"
    }

    /// Those with entries up to some index, newest first.
    AUDIT_BLOCKS_BACK on audit_blocks {
        both: "SELECT number, first_entry, last_entry, prev_hash, bodies, salts, leaves, at_from, at_to, checkpoint
               FROM audit_blocks WHERE tenant_id = $1 AND number = $2 AND first_entry <= $3
               ORDER BY last_entry DESC LIMIT $4"
    }

    /// Those that may hold an entry of this instant. audit_blocks_at.
    AUDIT_BLOCKS_AT on audit_blocks {
        both: "SELECT number, first_entry, last_entry, prev_hash, bodies, salts, leaves, at_from, at_to, checkpoint
               FROM audit_blocks WHERE tenant_id = $1 AND at_to >= $2 AND at_from <= $2 ORDER BY at_to LIMIT $3"
    }

    AUDIT_TILE_GET on audit_tiles {
        both: "SELECT hashes FROM audit_tiles WHERE tenant_id = $1 AND number = $2 AND level = $3 AND tile = $4"
    }

    AUDIT_TILE_PUT on audit_tiles {
        both: "INSERT INTO audit_tiles (tenant_id, number, level, tile, hashes) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (tenant_id, number, level, tile) DO UPDATE SET hashes = excluded.hashes"
    }

    AUDIT_DETAILS_INSERT on audit_details {
        both: "INSERT INTO audit_details (tenant_id, number, entry, actor, details) VALUES ($1, $2, $3, $4, $5)"
    }

    AUDIT_DETAILS_SPAN on audit_details {
        both: "SELECT entry, actor, details FROM audit_details
               WHERE tenant_id = $1 AND number = $2 AND entry >= $3 AND entry <= $4 ORDER BY entry"
    }

    AUDIT_DETAILS_ERASE on audit_details {
        both: "UPDATE audit_details SET actor = NULL, details = NULL WHERE tenant_id = $1 AND number = $2 AND entry = $3"
    }

    AUDIT_SALTS_GET on audit_blocks {
        both: "SELECT first_entry, last_entry, salts FROM audit_blocks
               WHERE tenant_id = $1 AND number = $2 AND last_entry >= $3 ORDER BY last_entry LIMIT 1"
    }

    AUDIT_SALTS_PUT on audit_blocks {
        both: "UPDATE audit_blocks SET salts = $1 WHERE tenant_id = $2 AND number = $3 AND last_entry = $4"
    }

    AUDIT_NOTE_INSERT on audit_notes {
        both: "INSERT INTO audit_notes (tenant_id, note_id, at, initiator, actor, kind, subject, details)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (tenant_id, note_id) DO NOTHING"
    }

    AUDIT_NOTES on audit_notes {
        both: "SELECT tenant_id, note_id, at, initiator, actor, kind, subject, details FROM audit_notes
               WHERE tenant_id = $1 ORDER BY note_id LIMIT $2"
    }

    AUDIT_NOTE_DELETE on audit_notes {
        both: "DELETE FROM audit_notes WHERE tenant_id = $1 AND note_id = $2"
    }

    /// The rows of a run's journal with events from $3 to $4.
    AUDIT_JOURNAL on journal {
        both: "SELECT run_id, first_seq, seq, at, events, initiator, person, context_meta, done_position, done_state,
               done_attempt, done_failures, done_iteration, input, output, error, why FROM journal
               WHERE tenant_id = $1 AND run_id = $2 AND seq >= $3 AND seq <= $4 ORDER BY seq"
    }
}
