//! What `run show` tells of permission: what the policy has said of the run's steps, and who has agreed to what.

use interlock_core::ids::RunId;
use interlock_core::state::ApprovalState;
use interlock_core::text::visible::visible;
use interlock_core::time::Timestamp;
use interlock_policy::PolicyDecision;
use interlock_protocol::approvals::{ApprovalList, ApprovalView, path as approvals};
use interlock_protocol::policy::{DecisionList, DecisionView, path as policy};
use interlock_protocol::runs::StepView;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::{Call, Client, fill};
use crate::output::span;
use crate::output::tell::fallen_vote;

/// What the policy has said of a step, other than that it may go on unasked.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct StepRuling {
    pub step: String,
    pub verdict: String,
    pub rules: Vec<String>,
}

#[derive(Default, Serialize)]
pub struct Permission {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rulings: Vec<StepRuling>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<ApprovalView>,
}

impl Permission {
    /// A caller who may see the run but not its decisions or approvals gets the rest.
    pub async fn of(client: &Client, run: RunId) -> anyhow::Result<Self> {
        let decided = client.get(fill(policy::DECISIONS, &[("run", &run)]));
        let decided: Option<DecisionList> = unless_refused(decided).await?;
        let asked: Option<ApprovalList> =
            unless_refused(client.get(approvals::APPROVALS).query("run", Some(run))).await?;
        let rulings = decided.map(|list| rulings(&list.decisions)).unwrap_or_default();
        Ok(Self { rulings, approvals: asked.map(|list| list.approvals).unwrap_or_default() })
    }

    /// As lines, each with its name.
    pub fn lines(&self, steps: &[StepView], now: Timestamp) -> Vec<(&'static str, String)> {
        let ruled = self.rulings.iter().map(|StepRuling { step, verdict, rules }| {
            let by = if rules.is_empty() { String::new() } else { format!(", by {}", visible(&rules.join("; "))) };
            ("policy", format!("{}: {}{by}", visible(step), verdict.replace('_', " ")))
        });
        let asked = self.approvals.iter().map(|approval| {
            let step = steps.iter().find(|step| step.position == approval.position).map_or("?", |step| &*step.key);
            ("approval", format!("{}: {}", visible(step), told(approval, now)))
        });
        ruled.chain(asked).collect()
    }
}

async fn unless_refused<T: DeserializeOwned>(call: Call<'_>) -> anyhow::Result<Option<T>> {
    match call.send::<T>().await {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.status(), Some(403 | 404)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What was not allowed unasked, each step's verdict once for the same rules.
fn rulings(decisions: &[DecisionView]) -> Vec<StepRuling> {
    let mut all: Vec<StepRuling> = Vec::new();
    for decision in decisions.iter().filter(|decision| decision.verdict != "allow") {
        let answer = decision.answer.as_ref().and_then(|answer| answer.decode::<PolicyDecision>().ok());
        let rules = answer.map(|answer| answer.reasons.iter().map(ToString::to_string).collect()).unwrap_or_default();
        let ruling = StepRuling { step: decision.step.clone(), verdict: decision.verdict.clone(), rules };
        if !all.contains(&ruling) {
            all.push(ruling);
        }
    }
    all
}

/// Where an approval stands, and whose words have brought it there.
fn told(approval: &ApprovalView, now: Timestamp) -> String {
    let words: Vec<String> = approval
        .votes
        .iter()
        .map(|vote| {
            let word = if vote.approve { "yes" } else { "no" };
            let whose =
                vote.on_behalf_of.as_deref().map_or_else(String::new, |whose| format!(" for {}", visible(whose)));
            let notes = vote.notes.as_deref().map_or_else(String::new, |notes| format!(" ({})", visible(notes)));
            format!("{word} from {}{whose}{notes}", visible(&vote.person))
        })
        .collect();
    let mut text = approval.state.as_str().to_owned();
    if approval.state == ApprovalState::Requested {
        let from = match approval.approvers.as_slice() {
            [] => "any person with the role approver".to_owned(),
            groups => groups.join(" or "),
        };
        let given = approval.votes.iter().filter(|vote| vote.approve).count();
        text = format!("open, {given} of {} from {}", approval.quorum, visible(&from));
    } else if let Some(at) = approval.resolved_at {
        text = format!("{text}, {}", span::away(at, now));
    }
    let fallen = approval.fallen.iter().map(fallen_vote);
    let words: Vec<String> = words.into_iter().chain(fallen).collect();
    if !words.is_empty() {
        text = format!("{text}: {}", words.join(", "));
    }
    // Why people were asked: the rules of the policy, or the gate's own message.
    match approval.message.as_deref() {
        Some(asked) => format!("{text} ({})", visible(asked)),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(state: &str, votes: &serde_json::Value) -> ApprovalView {
        serde_json::from_value(json!({
            "approval": interlock_core::ids::ApprovalId::from_bytes([1; 16]), "run_id": RunId::from_bytes([2; 16]),
            "workflow": "w", "position": 1, "state": state, "purpose": "gate", "digest": "d", "quorum": 2,
            "approvers": ["sre"], "excluded": [], "votes": votes, "requested_at": 1_000, "expires_at": 9_000,
        }))
        .unwrap()
    }

    #[test]
    fn an_approval_says_where_it_stands_and_who_has_brought_it_there() {
        let yes = json!([{ "person": "ada", "approve": true, "at": 2_000 }]);
        assert_eq!(told(&asked("requested", &yes), Timestamp(3_000)), "open, 1 of 2 from sre: yes from ada");
        let no =
            json!([{ "person": "bo", "approve": false, "notes": "not\ntoday", "on_behalf_of": "cy", "at": 2_000 }]);
        let rejected = told(&asked("rejected", &no), Timestamp(3_000));
        assert!(rejected.starts_with("rejected: no from bo for cy (not"), "{rejected}");
        assert!(!rejected.contains('\n'), "{rejected}");
        let asked = ApprovalView { message: Some("two_keys: it destroys".into()), ..asked("approved", &yes) };
        let told = told(&asked, Timestamp(3_000));
        assert_eq!(told, "approved: yes from ada (two_keys: it destroys)", "the rule that asked is named");
    }
}
