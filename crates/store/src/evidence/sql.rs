use crate::sql::statements;

statements! {
    EVIDENCE_DUE_PUT on evidence_due {
        both: "INSERT INTO evidence_due (tenant_id, run_id, noted_at) VALUES ($1, $2, $3)
               ON CONFLICT (tenant_id, run_id) DO UPDATE SET noted_at = excluded.noted_at"
    }

    /// Those whose run has ended. Few rows: a run stands here from its first governed event until it is bundled.
    EVIDENCE_DUE on evidence_due {
        both: "SELECT d.tenant_id, d.run_id, d.noted_at FROM evidence_due d
               WHERE EXISTS (SELECT 1 FROM runs r WHERE r.tenant_id = d.tenant_id AND r.run_id = d.run_id
               AND r.state IS NOT NULL) OR NOT EXISTS (SELECT 1 FROM runs r WHERE r.tenant_id = d.tenant_id
               AND r.run_id = d.run_id) ORDER BY d.tenant_id, d.run_id LIMIT $1"
    }

    /// Unless it was noted again meanwhile.
    EVIDENCE_DUE_DROP on evidence_due {
        both: "DELETE FROM evidence_due WHERE tenant_id = $1 AND run_id = $2 AND noted_at <= $3"
    }

    BUNDLE_PUT on evidence_bundles {
        both: "INSERT INTO evidence_bundles (tenant_id, run_id, number, sha256, bytes, entries, made_at, body)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (tenant_id, run_id, number) DO NOTHING"
    }

    BUNDLES on evidence_bundles {
        both: "SELECT tenant_id, run_id, number, sha256, bytes, entries, made_at, body FROM evidence_bundles
               WHERE tenant_id = $1 AND run_id = $2 ORDER BY number"
    }
}
