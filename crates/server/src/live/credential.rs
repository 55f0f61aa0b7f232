//! Whether the credential that opened a stream may still read it. A stream lasts for hours, and a credential may be
//! revoked in the meantime: it is looked at again at every heartbeat.

use interlock_core::tenant::identity::Permission;
use interlock_protocol::live::{Control, limits};
use tokio::time::Instant;

use crate::identity::{Caller, Identity};

/// The credential of an open stream.
pub struct Credential {
    identity: Identity,
    caller: Caller,
    due: Instant,
}

impl Credential {
    pub fn new(identity: Identity, caller: Caller) -> Self {
        Self { identity, caller, due: next() }
    }

    /// When it is to be looked at again.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Whether it has been taken back. A store that cannot be read takes nothing back: it has no events to show either.
    pub async fn is_revoked(&mut self) -> bool {
        self.due = next();
        match self.identity.renewed(&self.caller).await {
            Ok(Some(caller)) => {
                let narrower = caller.workspace != self.caller.workspace;
                let reads = caller.may(Permission::Read);
                self.caller = caller;
                narrower || !reads
            }
            Ok(None) => true,
            Err(error) => {
                tracing::debug!(code = error.code(), "the credential of a live stream could not be looked at");
                false
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
