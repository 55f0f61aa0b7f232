//! Who is asked: for the whole workflow, and at a gate.

use interlock_core::plan::OnDenial;
use interlock_core::plan::rules::ValidationMode;
use interlock_core::time::Millis;

use crate::diagnostic::Report;
use crate::node::{Node, Value};
use crate::shape::{At, Defs, Name, Shape, TextTemplate, record};

record! {
    /// Who is asked, when, and what follows. Gates take from here what they do not say themselves.
    "`approval`" ApprovalBlock {
        /// When people are asked: `per_step` where omitted in production or above blast radius medium, else
        /// none in workflows without a profile, `critical_only` in others. The policy asks by it.
        mode: Option<At<ValidationMode>>,
        /// Groups whose members may decide; every person with the role `approver` where omitted.
        approvers: Vec<At<Name>>,
        /// How many different people must approve; 1 where omitted.
        quorum: Option<At<u32>>,
        /// What a rejection leads to: `fail`, or `pause` for an operator's directive. `fail` where omitted, `pause` for
        /// workflows with commands.
        on_reject: Option<OnDenial>,
        /// What an expired approval leads to: `fail`, or `pause`. Nothing expires into an approval.
        on_expiry: Option<OnDenial>,
        /// When a reminder goes out; 10 minutes in production, else 30 minutes where omitted.
        escalate_after: Option<At<Millis>>,
        /// When an open approval expires; 24 hours where omitted.
        expires_after: Option<At<Millis>>,
    }
}

record! {
    /// A gate: the run goes on when people have approved.
    "an approval" Gate {
        /// What people are asked, as they will read it.
        message: Option<TextTemplate>,
        /// Groups whose members may decide; the workflow's where omitted.
        approvers: Vec<At<Name>>,
        /// How many different people must approve; the workflow's, else 1, where omitted.
        quorum: Option<At<u32>>,
        /// What a rejection leads to; the workflow's rule where omitted.
        on_reject: Option<OnDenial>,
        /// What an expired approval leads to; the workflow's rule where omitted.
        on_expiry: Option<OnDenial>,
        /// When a reminder goes out; the workflow's where omitted.
        escalate_after: Option<At<Millis>>,
        /// When the approval expires; the workflow's, else 24 hours, where omitted.
        expires_after: Option<At<Millis>>,
    }
}

/// A gate, which may be written as nothing but its message.
#[derive(Debug, Clone)]
pub struct Approval(pub Gate);

impl Shape for Approval {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        let Value::Text(_) = node.value else { return Gate::read(node, report).map(Self) };
        let gate = Gate {
            span: node.span,
            message: Some(TextTemplate::read(node, report)?),
            approvers: Vec::new(),
            quorum: None,
            on_reject: None,
            on_expiry: None,
            escalate_after: None,
            expires_after: None,
        };
        Some(Self(gate))
    }

    fn schema(defs: &mut Defs) -> serde_json::Value {
        serde_json::json!({ "oneOf": [{ "type": "string" }, Gate::schema(defs)] })
    }
}
