use crate::sql::statements;

/// Approvals with what their runs say of themselves.
macro_rules! approvals {
    ($rest:literal) => {
        concat!(
            "SELECT a.approval_id, a.run_id, r.workflow, r.subject, a.position, a.state, a.quorum, a.approvers, a.message,
             a.requested_at, a.escalate_at, a.expires_at, a.resolved_at, a.excluded, a.purpose, a.action, a.present_state,
             a.and_from FROM approvals a JOIN runs r ON r.tenant_id = a.tenant_id AND r.run_id = a.run_id WHERE a.tenant_id = $1 AND ",
            $rest
        )
    };
}

statements! {
    // Lists take the same arguments: $2 state, $3 workflow, $4 subject, $5 workspace (each '' for any), $6 asked since, $7 due
    // before, $8 the quorum at least; then the place and the limit.

    APPROVALS on approvals {
        both: approvals!(
            "a.state = $2 AND ($3 = '' OR r.workflow = $3) AND ($4 = '' OR r.subject = $4) AND ($5 = '' OR r.workspace = $5)
             AND a.requested_at >= $6 AND coalesce(a.escalate_at, a.requested_at) < $7 AND a.quorum >= $8
             AND a.approval_id > $9 ORDER BY a.approval_id LIMIT $10"
        )
    }

    /// Sorted: the index on states leaves what is open, which is little. Decided approvals are not listed by when they
    /// were due.
    APPROVALS_DUE on approvals {
        both: approvals!(
            "a.state = $2 AND ($3 = '' OR r.workflow = $3) AND ($4 = '' OR r.subject = $4) AND ($5 = '' OR r.workspace = $5)
             AND a.requested_at >= $6 AND coalesce(a.escalate_at, a.requested_at) < $7 AND a.quorum >= $8
             AND (coalesce(a.escalate_at, a.requested_at), a.approval_id) > ($9, $10)
             ORDER BY coalesce(a.escalate_at, a.requested_at), a.approval_id LIMIT $11"
        )
    }

    APPROVALS_RUN on approvals {
        both: approvals!("a.run_id = $2 ORDER BY a.approval_id")
    }

    APPROVAL_ONE on approvals {
        both: approvals!("a.approval_id = $2")
    }

    /// What was read first stays.
    APPROVAL_PRESENT_STATE on approvals {
        both: "UPDATE approvals SET present_state = $1 WHERE tenant_id = $2 AND approval_id = $3 AND present_state IS NULL"
    }

    VOTES on votes {
        both: "SELECT person, on_behalf_of, approve, notes, at FROM votes WHERE tenant_id = $1 AND approval_id = $2
               ORDER BY at, person"
    }
}
