//! Approvals in Slack. [`settings`] keeps a tenant's connection, [`publish`] turns its feed into messages about approvals,
//! [`deliver`] brings them there, as [`card`] shows them, through [`api`]; [`take`] judges what comes back from Slack.
//! Nothing here decides: a press on a button becomes a vote only where every other vote does.

pub mod api;
pub mod card;
pub(crate) mod deliver;
pub(crate) mod publish;
pub mod settings;
pub mod take;

use interlock_core::ids::{ApprovalId, TenantId};
use interlock_core::json::{Hash, canonical_hash};
use interlock_core::work::notice::Notice;
use interlock_store::ApprovalRow;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Where Slack, PagerDuty and this server's own pages are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeOptions {
    /// Its Web API is below `/api`.
    pub slack_url: String,
    /// What the addresses begin with that Slack gives for answers.
    pub slack_hooks_url: String,
    pub pagerduty_url: String,
    /// How people reach this server; without it cards have no links.
    pub public_url: Option<String>,
}

impl Default for NoticeOptions {
    fn default() -> Self {
        Self {
            slack_url: "https://slack.com".to_owned(),
            slack_hooks_url: "https://hooks.slack.com".to_owned(),
            pagerduty_url: "https://events.pagerduty.com".to_owned(),
            public_url: None,
        }
    }
}

/// What exactly is approved, in one hash: whose, which run and step, and what people were shown, the action whole.
pub fn approval_digest(tenant: TenantId, row: &ApprovalRow) -> Result<String, serde_json::Error> {
    let mut shown = json!({
        "tenant": tenant,
        "run": row.run,
        "position": row.position,
        "approval": row.id,
        "message": row.message,
        "quorum": row.quorum,
        "approvers": row.approvers,
    });
    if !row.purpose.is_gate() {
        shown["purpose"] = json!(row.purpose);
    }
    if let Some(action) = &row.action {
        shown["action"] = json!(Hash::of(action.as_str().as_bytes()).to_string());
    }
    Ok(canonical_hash(&shown)?.to_string())
}

/// What a message of the outbox is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NoticePayload {
    pub approval: ApprovalId,
    /// It stands in the destination too; here it keeps the ids of two kinds apart.
    pub kind: Notice,
}

/// What a button stands for: an approval, exactly as it was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ButtonValue {
    pub approval: ApprovalId,
    pub digest: String,
}

impl ButtonValue {
    pub fn text(&self) -> String {
        format!("{}.{}", self.approval, self.digest)
    }

    pub fn parse(text: &str) -> Option<Self> {
        let (approval, digest) = text.split_once('.')?;
        Some(Self { approval: approval.parse().ok()?, digest: digest.to_owned() })
    }
}
