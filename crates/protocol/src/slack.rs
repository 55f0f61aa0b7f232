//! What is asked and answered about approvals in Slack: a tenant's connection, and which person a Slack user is.

use std::fmt;

use interlock_core::ids::SlackId;
use interlock_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where the calls live.
pub mod path {
    pub const SLACK: &str = "/api/v1/slack";
    pub const LINKS: &str = "/api/v1/slack/links";
    pub const LINK: &str = "/api/v1/slack/links/{person}";
    pub const INTERACTIONS: &str = "/api/v1/slack/interactions/{connection}";
}

/// A tenant's connection to Slack. Nothing shows its secrets again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlackView {
    pub connection: SlackId,
    /// Slack's own id of the workspace.
    pub team: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enterprise: Option<String>,
    /// Where people are asked.
    pub channel: String,
    /// Where the second rung tells of an approval that is not decided in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation_channel: Option<String>,
    /// The third rung pages the person on call.
    pub pagerduty: bool,
    /// How long each rung waits for the next, in seconds: in production, and elsewhere.
    pub rung_prod_s: u64,
    pub rung_other_s: u64,
    /// The Request URL to write into the Slack app, under Interactivity.
    pub interactions_url: String,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// When and by whom the team, the token or the signing secret were given last.
    pub secrets_given_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets_given_by: Option<String>,
}

/// What the connection is to be. Secrets and spans that are left out stay as they are; a new connection needs both the token
/// and the secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutSlackConnection {
    /// Slack's own id of the workspace: `T…`.
    pub team: String,
    /// Of the Enterprise organization that the workspace belongs to: `E…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enterprise: Option<String>,
    /// Slack's own id of the channel: `C…`.
    pub channel: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation_channel: Option<String>,
    /// `xoxb-…`, with the scopes `chat:write` and `users:read`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bot_token: Option<String>,
    /// The app's signing secret. The one before counts for another day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing_secret: Option<String>,
    /// Of an integration with PagerDuty's Events API v2; an empty one takes it away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pagerduty_routing_key: Option<String>,
    /// 600 unless it was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung_prod_s: Option<u64>,
    /// 1800 unless it was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung_other_s: Option<u64>,
}

/// Shows none of its secrets.
impl fmt::Debug for PutSlackConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PutSlackConnection")
            .field("team", &self.team)
            .field("channel", &self.channel)
            .finish_non_exhaustive()
    }
}

/// Which person a Slack user is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlackLinkView {
    pub person: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enterprise: Option<String>,
    pub team: String,
    /// Slack's own id of the user: `U…`.
    pub user: String,
    pub linked_at: Timestamp,
    pub linked_by: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlackLinkList {
    pub links: Vec<SlackLinkView>,
    /// Pass it as `after` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<String>,
}
