use crate::sql::statements;

statements! {
    HOLD_PUT on effect_holds {
        both: "INSERT INTO effect_holds (tenant_id, identity, number, run_id, receipt_id, held_at)
               VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (tenant_id, identity, number) DO NOTHING"
    }

    /// A row if HOLD_PUT would add none.
    INSPECT_HOLD on effect_holds {
        both: "SELECT 1 FROM effect_holds WHERE tenant_id = $1 AND identity = $2 AND number = $3"
    }

    HOLDS_BEFORE on effect_holds {
        both: "SELECT number, run_id, receipt_id FROM effect_holds WHERE tenant_id = $1 AND identity = $2 AND number < $3
               ORDER BY number DESC LIMIT $4"
    }
}
