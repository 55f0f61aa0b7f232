use crate::sql::statements;

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

    SWEEP_SLOTS on schedule_slots {
        both: "DELETE FROM schedule_slots WHERE (tenant_id, schedule_id, slot_at) IN
               (SELECT tenant_id, schedule_id, slot_at FROM schedule_slots WHERE at < $1 AND state <> 'queued'
                ORDER BY at LIMIT $2)"
    }
}
