use interlock_core::ids::{ApprovalId, RunId, SlackId, TenantId};
use interlock_core::json::Hash;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::work::notice::Notice;

use crate::secrets::Secrets;

/// A tenant's connection to Slack. Tokens and secrets are sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlackRow {
    pub tenant: TenantId,
    pub id: SlackId,
    pub team: String,
    pub enterprise: Option<String>,
    pub channel: String,
    pub escalation_channel: Option<String>,
    pub bot_token: String,
    /// With which Slack signs what it sends.
    pub secrets: Secrets,
    pub pagerduty_key: Option<String>,
    /// How long each rung of the ladder waits for the next: in production, and elsewhere.
    pub rung_prod: Millis,
    pub rung_other: Millis,
    /// Where it stands in the tenant's feed.
    pub fed_to: u64,
    pub fed_at: Timestamp,
    pub created_at: Timestamp,
    pub created_by: Option<String>,
    /// When and by whom the team, the token or the signing secret were given.
    pub secret_at: Timestamp,
    pub secret_by: Option<String>,
}

/// A user of Slack. The enterprise is empty outside of an Enterprise organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlackUser {
    pub enterprise: String,
    pub team: String,
    pub user: String,
}

/// Which person a Slack user is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlackLinkRow {
    pub tenant: TenantId,
    pub who: SlackUser,
    /// By their name, which never changes.
    pub person: String,
    pub linked_at: Timestamp,
    pub linked_by: String,
}

/// A one-time link by which a signed-in person confirms that a Slack user is them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlackLinkRequestRow {
    pub tenant: TenantId,
    pub token_hash: Hash,
    pub who: SlackUser,
    /// The Slack user's name in Slack, shown to the person who is to confirm the link.
    pub slack_name: String,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// An approval that people are told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalCardRow {
    pub tenant: TenantId,
    pub approval: ApprovalId,
    pub run: RunId,
    /// How many rungs of the ladder were reached.
    pub rung: u32,
    /// When the next one is, unless there is none.
    pub rung_at: Option<Timestamp>,
}

/// A message about an approval. Without a `ts` its post was begun, and what became of it is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeRow {
    pub kind: Notice,
    pub begun_at: Timestamp,
    pub channel: Option<String>,
    pub ts: Option<String>,
}
