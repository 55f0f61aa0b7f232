use crate::sql::statements;

statements! {
    /// Fences and locks: no row where the attempt is not the one that runs. Two servers with chunks of the same attempt come one
    /// after the other. run_live_pkey, output_heads_pkey.
    OUTPUT_BEGIN on output_heads {
        both: "INSERT INTO output_heads (tenant_id, run_id, position, attempt, next_seq, bytes, status_bytes, cut, began_at,
               last_at)
               SELECT l.tenant_id, l.run_id, l.position, l.attempt, 1, 0, 0, 0, $1, $1 FROM run_live l
               WHERE l.tenant_id = $2 AND l.run_id = $3 AND l.branch = 0 AND l.position = $4 AND l.attempt = $5
               AND l.step_state = 'running'
               ON CONFLICT (tenant_id, run_id, position, attempt) DO UPDATE SET last_at = excluded.last_at
               RETURNING next_seq, bytes, status_bytes, cut"
    }

    OUTPUT_PUT on output {
        both: "INSERT INTO output (tenant_id, run_id, position, attempt, stream_seq, chunk_type, data, at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
    }

    OUTPUT_ADVANCE on output_heads {
        both: "UPDATE output_heads SET next_seq = $1, bytes = $2, status_bytes = $3, cut = $4
               WHERE tenant_id = $5 AND run_id = $6 AND position = $7 AND attempt = $8"
    }

    /// The attempt that a run's step is at. run_live_pkey.
    OUTPUT_CURRENT on run_live {
        both: "SELECT attempt FROM run_live WHERE tenant_id = $1 AND run_id = $2 AND branch = 0 AND position = $3"
    }

    OUTPUT_HEADS on output_heads {
        both: "SELECT position, attempt, next_seq, bytes, cut, began_at, last_at FROM output_heads
               WHERE tenant_id = $1 AND run_id = $2 ORDER BY position, attempt LIMIT $3"
    }

    /// A step's chunks behind a place, whatever their attempt. output_pkey.
    OUTPUT_AFTER on output {
        both: "SELECT attempt, stream_seq, chunk_type, data, at FROM output WHERE tenant_id = $1 AND run_id = $2
               AND position = $3 AND (attempt, stream_seq) > ($4, $5) ORDER BY attempt, stream_seq LIMIT $6"
    }

    /// Those of one attempt. output_pkey.
    OUTPUT_OF_ATTEMPT on output {
        both: "SELECT attempt, stream_seq, chunk_type, data, at FROM output WHERE tenant_id = $1 AND run_id = $2
               AND position = $3 AND attempt = $4 AND stream_seq > $5 ORDER BY stream_seq LIMIT $6"
    }
}
