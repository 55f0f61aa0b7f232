//! Payloads beside the database: who refers to them.

use super::statements;

statements! {
    PAYLOAD_KEEP on payloads {
        both: "INSERT INTO payloads (tenant_id, owner, sha256, bytes, kept_at, sweeping)
               VALUES ($1, $2, $3, $4, $5, 0)
               ON CONFLICT (tenant_id, owner, sha256) DO UPDATE SET kept_at = excluded.kept_at"
    }

    PAYLOAD_SWEEPING on payloads {
        both: "SELECT 1 FROM payloads WHERE tenant_id = $1 AND sha256 = $2 AND sweeping = 1 LIMIT 1"
    }

    PAYLOAD_BYTES on payloads {
        both: "SELECT bytes FROM payloads WHERE tenant_id = $1 AND owner = $2 AND sha256 = $3"
    }

    /// All of them by object, page by page, each with what its owner is: 1 a run, 2 a signal, 0 nobody (any more). Owners are
    /// looked up one by one: an EXISTS may be answered by reading all runs.
    PAYLOADS_AFTER on payloads {
        both: "SELECT p.tenant_id, p.sha256, p.owner, p.bytes, p.sweeping, CASE
               WHEN (SELECT 1 FROM runs r WHERE r.tenant_id = p.tenant_id AND r.run_id = p.owner) = 1 THEN 1
               WHEN (SELECT 1 FROM signals s WHERE s.tenant_id = p.tenant_id AND s.signal_id = p.owner) = 1 THEN 2
               ELSE 0 END FROM payloads p WHERE (p.tenant_id, p.sha256, p.owner) > ($1, $2, $3)
               ORDER BY p.tenant_id, p.sha256, p.owner LIMIT $4"
    }

    /// Reads all of them, for whoever is about to do so anyway.
    PAYLOADS_TOTAL on payloads {
        both: "SELECT count(*), CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM payloads"
    }

    /// Those whose owner is gone, or never came to be: oldest first, and none that may still be on its way.
    PAYLOADS_UNOWNED on payloads {
        both: "SELECT p.tenant_id, p.owner, p.sha256 FROM payloads p WHERE p.kept_at < $1 AND (p.sweeping = 1
               OR (NOT EXISTS (SELECT 1 FROM runs r WHERE r.tenant_id = p.tenant_id AND r.run_id = p.owner)
               AND NOT EXISTS (SELECT 1 FROM signals s WHERE s.tenant_id = p.tenant_id AND s.signal_id = p.owner)))
               ORDER BY p.kept_at LIMIT $2"
    }

    PAYLOAD_SHARED on payloads {
        both: "SELECT 1 FROM payloads WHERE tenant_id = $1 AND sha256 = $2 AND owner <> $3 LIMIT 1"
    }

    PAYLOAD_NEEDED on payloads {
        both: "SELECT 1 FROM payloads WHERE tenant_id = $1 AND sha256 = $2 AND sweeping = 0 LIMIT 1"
    }

    PAYLOAD_DROP on payloads {
        both: "DELETE FROM payloads WHERE tenant_id = $1 AND owner = $2 AND sha256 = $3 AND kept_at < $4"
    }

    PAYLOAD_MARK on payloads {
        both: "UPDATE payloads SET sweeping = 1 WHERE tenant_id = $1 AND owner = $2 AND sha256 = $3 AND kept_at < $4"
    }

    PAYLOAD_FORGET on payloads {
        both: "DELETE FROM payloads WHERE tenant_id = $1 AND sha256 = $2 AND sweeping = 1"
    }
}
