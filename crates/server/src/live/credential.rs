//! Whether the credential that opened a stream may still read it. A stream lasts for hours, and a credential may be
//! revoked in the meantime: it is looked at again at every heartbeat. Where that is not possible, because the store does not
//! answer, the stream tells nothing until it is.

use std::time::Duration;

use interlock_core::tenant::identity::Permission;
use interlock_protocol::live::{Control, limits};
use tokio::time::{Instant, sleep_until};

use crate::identity::{Caller, Identity};

/// How soon a credential is looked at again that could not be looked at.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// What a look at a credential has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialCheck {
    Counts,
    /// It was taken back, has expired, or may read less than before.
    Over,
    /// The store does not answer.
    Unknown,
}

/// The credential of an open stream.
pub struct Credential {
    identity: Identity,
    caller: Caller,
    due: Instant,
    is_known: bool,
}

impl Credential {
    pub fn new(identity: Identity, caller: Caller) -> Self {
        Self { identity, caller, due: next(), is_known: true }
    }

    /// When it is to be looked at again.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Whether it has to be looked at before anything more is told.
    pub fn is_due(&self) -> bool {
        !self.is_known || self.due <= Instant::now()
    }

    /// Looks at it where that is due. After a look that was not possible the next one waits for a while.
    pub async fn check(&mut self) -> CredentialCheck {
        if !self.is_due() {
            return CredentialCheck::Counts;
        }
        sleep_until(self.due).await;
        match self.identity.renewed(&self.caller).await {
            Ok(Some(caller)) => {
                (self.due, self.is_known) = (next(), true);
                let narrower = caller.workspace != self.caller.workspace;
                let reads = caller.may(Permission::Read);
                self.caller = caller;
                if narrower || !reads { CredentialCheck::Over } else { CredentialCheck::Counts }
            }
            Ok(None) => CredentialCheck::Over,
            Err(error) => {
                tracing::debug!(code = error.code(), "the credential of a live stream could not be looked at");
                (self.due, self.is_known) = (Instant::now() + AGAIN_AFTER, false);
                CredentialCheck::Unknown
            }
        }
    }

    /// What a stream says before it closes for this.
    pub fn refusal() -> Control {
        let detail = "the credential of this stream was revoked, has expired or may no longer read; use another one";
        Control::Refused { code: "UNAUTHORIZED".to_owned(), detail: detail.to_owned() }
    }
}

fn next() -> Instant {
    Instant::now() + limits::HEARTBEAT.as_duration()
}
