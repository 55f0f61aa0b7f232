//! People who decide in Slack: who a linked Slack user is, and the marks by which links and dialogs are known again.

use interlock_core::json::Hash;
use interlock_core::time::Timestamp;
use interlock_store::{SlackLinkRow, SlackRow};

use super::Identity;
use super::caller::{Caller, Via};
use crate::api_error::ApiError;

/// How it is known that a Slack user is a person: since when, and by whose word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlackProof {
    pub linked_at: Timestamp,
    pub linked_by: String,
    /// Since when, and from whom, the signing secret is: its maker could sign presses of any user.
    pub secret_at: Timestamp,
    pub secret_by: Option<String>,
}

impl Identity {
    /// The person whom a Slack user is linked to, unless the account is disabled or gone. Their last sign-in counts as their
    /// proof; pressing a button proves nothing new.
    pub async fn linked(&self, slack: &SlackRow, link: SlackLinkRow) -> Result<Option<Caller>, ApiError> {
        let store = self.engine().for_tenant(slack.tenant);
        let user = store.user_named(&link.person).await?;
        let Some(user) = user.filter(|user| user.disabled_at.is_none()) else { return Ok(None) };
        let proven_at = store.proven_at(user.id, self.engine().now()).await?;
        let proof = SlackProof {
            linked_at: link.linked_at,
            linked_by: link.linked_by,
            secret_at: slack.secret_at,
            secret_by: slack.secret_by.clone(),
        };
        Ok(Some(Caller {
            tenant: user.tenant,
            client: user.id.to_string().into(),
            person: Some(user.name.into()),
            roles: user.roles,
            groups: user.groups.into(),
            workspace: None,
            installation: false,
            via: Via::Slack { proven_at, proof: Box::new(proof) },
        }))
    }

    /// Under which the address for a link is kept.
    pub fn slack_token_hash(&self, token: &str) -> Hash {
        self.secret().hash("slack-link", token.as_bytes())
    }

    pub fn slack_dialog_mark(&self, bound: &str) -> String {
        self.secret().hash("slack-dialog", bound.as_bytes()).to_string()
    }
}
