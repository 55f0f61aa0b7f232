use crate::sql::statements;

statements! {
    APPROVALS on approvals {
        both: "SELECT approval_id, run_id, position, state, quorum, approvers, message, requested_at, escalate_at,
               expires_at, resolved_at, excluded, purpose, action FROM approvals WHERE tenant_id = $1 AND state = $2
               AND approval_id > $3 ORDER BY approval_id LIMIT $4"
    }

    APPROVALS_RUN on approvals {
        both: "SELECT approval_id, run_id, position, state, quorum, approvers, message, requested_at, escalate_at,
               expires_at, resolved_at, excluded, purpose, action FROM approvals WHERE tenant_id = $1 AND run_id = $2
               ORDER BY approval_id"
    }

    APPROVAL_ONE on approvals {
        both: "SELECT approval_id, run_id, position, state, quorum, approvers, message, requested_at, escalate_at,
               expires_at, resolved_at, excluded, purpose, action FROM approvals WHERE tenant_id = $1 AND approval_id = $2"
    }

    VOTES on votes {
        both: "SELECT person, on_behalf_of, approve, notes, at FROM votes WHERE tenant_id = $1 AND approval_id = $2
               ORDER BY at, person"
    }
}
