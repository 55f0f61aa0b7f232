//! What a policy answers: a [`PolicyDecision`], or [`Undecided`], which performs nothing.

use std::fmt;

use interlock_core::plan::tier::Tier;
use regorus::Value;
use serde::{Deserialize, Serialize};

use crate::limits;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Allow,
    NeedsApproval,
    Deny,
}

impl Verdict {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::NeedsApproval => "needs_approval",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What one rule says about an action, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyReason {
    pub rule: String,
    pub text: String,
    /// What it is about: a credential, a program, an environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
}

impl PolicyReason {
    fn is_odd(&self) -> bool {
        let length = self.rule.len() + self.text.len() + self.about.as_ref().map_or(0, String::len);
        self.rule.is_empty() || length > limits::REASON_BYTES_MAX
    }
}

impl fmt::Display for PolicyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.text)?;
        self.about.iter().try_for_each(|about| write!(f, " ({about})"))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyDecision {
    pub verdict: Verdict,
    pub reasons: Vec<PolicyReason>,
    pub tier: Tier,
    /// What an approval must fulfil; there where one is needed.
    pub obligations: Option<Obligations>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Obligations {
    /// How many different people must agree; two for two keys.
    pub quorum: u32,
    /// Groups whose members may decide; every person with the role where empty.
    pub approvers: Vec<String>,
    /// Who may not decide.
    pub exclude: Vec<Excluded>,
    /// Whether the tenant's setting may let people approve what they started.
    pub self_approval: bool,
    pub escalate_after_s: u64,
    pub expires_after_s: u64,
    pub scope: Scope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Excluded {
    /// The person who started the run, or owns the key that did.
    Starter,
    /// The author of the workflow version.
    Author,
}

/// What one approval covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Step,
    /// All that the step's phase does.
    Phase,
}

impl PolicyDecision {
    /// The answer that a policy gave. Anything that is not exactly of this shape is none.
    pub(crate) fn of_value(value: &Value) -> Result<Self, Undecided> {
        let text =
            bounded_json(value).ok_or(Undecided::Answer { what: "it is too large, or holds what is no JSON" })?;
        let answer: Self = serde_json::from_str(&text)
            .map_err(|_| Undecided::Answer { what: "it does not have the fields of a decision" })?;
        answer.checked()
    }

    /// Refuses what is well-formed and makes no sense, and puts the reasons in an order of their own.
    pub(crate) fn checked(mut self) -> Result<Self, Undecided> {
        let wrong = |what| Err(Undecided::Answer { what });
        let asks = self.verdict == Verdict::NeedsApproval;
        if self.reasons.is_empty() || self.reasons.len() > limits::REASONS_MAX {
            return wrong("it has no reasons, or too many");
        }
        if self.reasons.iter().any(PolicyReason::is_odd) {
            return wrong("a reason has no rule, or its text is too long");
        }
        match &self.obligations {
            None if asks => return wrong("it needs approval and does not say whose"),
            Some(_) if !asks => return wrong("it has obligations and needs no approval"),
            Some(due) if due.quorum == 0 || due.quorum > limits::QUORUM_MAX => {
                return wrong("its quorum makes no sense");
            }
            Some(due) if due.approvers.len() > limits::GROUPS_MAX => return wrong("it names too many groups"),
            Some(due) if due.expires_after_s == 0 => return wrong("its approval would expire at once"),
            _ => {}
        }
        self.reasons.sort();
        Ok(self)
    }
}

/// The JSON text of a value, unless it is longer than an answer can be. A small value may stand in itself many times over.
fn bounded_json(value: &Value) -> Option<String> {
    let mut text = String::new();
    write_json(value, &mut text)?;
    Some(text)
}

fn write_json(value: &Value, out: &mut String) -> Option<()> {
    if out.len() > limits::ANSWER_BYTES_MAX {
        return None;
    }
    match value {
        Value::Array(items) => write_list(items.iter(), out)?,
        Value::Set(items) => write_list(items.iter(), out)?,
        Value::Object(fields) => {
            out.push('{');
            for (index, (key, field)) in fields.iter_sorted().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.push_str(&serde_json::to_string(key.as_string().ok()?.as_ref()).ok()?);
                out.push(':');
                write_json(field, out)?;
            }
            out.push('}');
        }
        Value::String(text) if text.len() > limits::ANSWER_BYTES_MAX => return None,
        Value::Undefined => return None,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => out.push_str(&value.to_json_str().ok()?),
    }
    Some(())
}

fn write_list<'a>(items: impl Iterator<Item = &'a Value>, out: &mut String) -> Option<()> {
    out.push('[');
    for (index, item) in items.enumerate() {
        out.push_str(if index > 0 { "," } else { "" });
        write_json(item, out)?;
    }
    out.push(']');
    Some(())
}

/// Why there is no decision. Nothing is performed then. The texts hold nothing of the input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Undecided {
    #[error("the policy gives no answer: `data.interlock.decision` is undefined for this input")]
    Undefined,
    #[error("the policy's answer cannot be used: {what}")]
    Answer { what: &'static str },
    #[error("the policy took more than {max} steps; make it do less, or look values up instead of searching them")]
    Work { max: u64 },
    #[error("the policy took longer than {millis} ms")]
    Time { millis: u128 },
    #[error("`{function}` in the policy was given too much: {what}")]
    TooMuch { function: &'static str, what: &'static str },
    #[error("the policy failed{at}: an operation was given what it cannot work with, or a rule has two values")]
    Failed {
        /// " at file:line", where it is known.
        at: String,
    },
    #[error("the input is {bytes} bytes long, the limit is {max}")]
    Input { bytes: usize, max: usize },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(verdict: Verdict, obligations: Option<Obligations>) -> PolicyDecision {
        let reasons = vec![PolicyReason { rule: "r".into(), text: "t".into(), about: None }];
        PolicyDecision { verdict, reasons, tier: Tier::Low, obligations }
    }

    fn due(quorum: u32) -> Obligations {
        let (approvers, exclude) = (Vec::new(), vec![Excluded::Starter]);
        let (escalate_after_s, expires_after_s) = (600, 86_400);
        Obligations {
            quorum,
            approvers,
            exclude,
            self_approval: false,
            escalate_after_s,
            expires_after_s,
            scope: Scope::Step,
        }
    }

    #[test]
    fn an_approval_says_whose_and_nothing_else_does() {
        assert!(decision(Verdict::Allow, None).checked().is_ok());
        assert!(decision(Verdict::NeedsApproval, Some(due(2))).checked().is_ok());
        assert!(decision(Verdict::NeedsApproval, None).checked().is_err());
        assert!(decision(Verdict::Allow, Some(due(1))).checked().is_err());
        assert!(decision(Verdict::NeedsApproval, Some(due(0))).checked().is_err());
        assert!(decision(Verdict::NeedsApproval, Some(due(11))).checked().is_err());
    }

    #[test]
    fn a_decision_has_reasons() {
        let mut none = decision(Verdict::Deny, None);
        none.reasons.clear();
        assert!(none.checked().is_err());
    }
}
