use crate::sql::statements;

statements! {
    DECISION_PUT on decisions {
        both: "INSERT INTO decisions (tenant_id, decision_id, run_id, position, iteration, attempt, operation, verdict, tier,
               action, bundle, evaluator, input, answer, shadow, at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"
    }

    /// decisions_by_run.
    DECISIONS_OF_RUN on decisions {
        both: "SELECT run_id, at, bundle, evaluator, input, answer, shadow, tier, decision_id, position, iteration, attempt,
               operation, verdict, action FROM decisions WHERE tenant_id = $1 AND run_id = $2 ORDER BY decision_id LIMIT $3"
    }

    /// The primary key: ids begin with the instant.
    DECISIONS_SINCE on decisions {
        both: "SELECT run_id, at, bundle, evaluator, input, answer, shadow, tier, decision_id, position, iteration, attempt,
               operation, verdict, action FROM decisions WHERE tenant_id = $1 AND decision_id > $2 ORDER BY decision_id LIMIT $3"
    }
}
