use crate::sql::statements;

statements! {
    RECEIPTS on receipts {
        both: "SELECT run_id, receipt_id, position, iteration, attempt, effect_key, effect, state, request, response, intent_at,
               outcome_at, late, unsettled, bundle FROM receipts WHERE tenant_id = $1 AND run_id = $2 ORDER BY receipt_id"
    }

    RECEIPT_KEYED on receipts {
        both: "SELECT run_id, receipt_id, position, iteration, attempt, effect_key, effect, state, request, response, intent_at,
               outcome_at, late, unsettled, bundle FROM receipts WHERE tenant_id = $1 AND effect_key = $2"
    }

    RECEIPT_SETTLE on receipts {
        both: "UPDATE receipts SET state = $1, response = $2, outcome_at = $3, late = 1
               WHERE tenant_id = $4 AND effect_key = $5 AND receipt_id = $6 AND run_id = $7
               AND (state = 'intent' OR state = 'in_doubt')"
    }
}
