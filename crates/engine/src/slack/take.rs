//! Taking what Slack sends when a user presses a button: the signature is checked over the raw bytes before anything is
//! read.

use std::collections::BTreeMap;

use interlock_boxed::boxed;
use interlock_core::ids::SlackId;
use interlock_core::trigger::webhook::{slack, slack_interaction};
use interlock_store::SlackRow;

pub use interlock_core::trigger::webhook::slack_interaction::{Interaction, Press, Presser};

use crate::error::EngineError;
use crate::parts::Slack;
use crate::webhooks::receive::ReceiveError;

/// A request to a connection's address. Header names are lower-case.
#[derive(Clone)]
pub struct SlackRequest {
    pub connection: SlackId,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Slack {
    /// What a user has done in Slack, and whose connection it came by. A sender that cannot sign learns nothing.
    #[boxed]
    pub async fn take(&self, request: &SlackRequest) -> Result<(SlackRow, Interaction), ReceiveError> {
        let row = self.0.0.store.slack_at(request.connection).await?.ok_or(ReceiveError::Unknown)?;
        let now = self.0.now();
        let previous = row.secrets.previous.as_ref().filter(|(_, until)| *until > now).map(|(sealed, _)| sealed);
        let sealed = std::iter::once(&row.secrets.current).chain(previous);
        let secrets = sealed.map(|sealed| self.open(&row, sealed)).collect::<Result<Vec<String>, _>>()?;
        slack::verify(&secrets, &request.headers, &request.body, now)?;
        // A disabled tenant has no addresses.
        match self.0.tenants().check_enabled(row.tenant).await {
            Err(EngineError::TenantDisabled) => return Err(ReceiveError::Unknown),
            enabled => enabled?,
        }
        let interaction = slack_interaction::read(&request.body)?;
        Ok((row, interaction))
    }
}
