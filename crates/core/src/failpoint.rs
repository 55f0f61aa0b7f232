//! Named places around an effect at which a test ends the process, so that a crash is met at each of them and not only
//! where chance puts it. Without the feature `failpoints`, which only the command line's tests switch on, [`reached`] does
//! nothing and nothing of this is left in the binary.
//!
//! ```text
//! worker-before-intent → (server-before-intent → commit → server-after-intent) → worker-after-intent → worker-before-send
//!   → connector-before-call | command-before-start | program-before-start → the effect → …-after → worker-after-send
//!   → (server-before-outcome → commit → server-after-outcome) → worker-after-outcome → worker-before-report
//!   → (server-before-completion → commit → server-after-completion) → worker-after-report
//! ```

use std::fmt;
use std::str::FromStr;

use crate::state::{UnknownName, names};

names!(
    /// A place at which a process can be ended.
    Failpoint, "failpoint", {
        WorkerBeforeIntent = "worker-before-intent",
        WorkerAfterIntent = "worker-after-intent",
        /// The lease was looked at, and the effect is about to be performed.
        WorkerBeforeSend = "worker-before-send",
        /// The effect was performed, and only the worker knows it.
        WorkerAfterSend = "worker-after-send",
        WorkerAfterOutcome = "worker-after-outcome",
        WorkerBeforeReport = "worker-before-report",
        WorkerAfterReport = "worker-after-report",
        /// Right before the first byte.
        ConnectorBeforeCall = "connector-before-call",
        ConnectorAfterCall = "connector-after-call",
        CommandBeforeStart = "command-before-start",
        /// The command runs in its sandbox.
        CommandStarted = "command-started",
        CommandAfterEnd = "command-after-end",
        ProgramBeforeStart = "program-before-start",
        ProgramAfterEnd = "program-after-end",
        ServerBeforeIntent = "server-before-intent",
        ServerAfterIntent = "server-after-intent",
        ServerBeforeOutcome = "server-before-outcome",
        ServerAfterOutcome = "server-after-outcome",
        ServerBeforeCompletion = "server-before-completion",
        ServerAfterCompletion = "server-after-completion",
    }
);

/// Whether this build has failpoints.
pub const ENABLED: bool = cfg!(feature = "failpoints");

#[cfg(feature = "failpoints")]
mod armed {
    use std::sync::OnceLock;

    use super::Failpoint;

    static HOOK: OnceLock<fn(Failpoint)> = OnceLock::new();

    /// Calls this function at every failpoint from now on. The first one stays.
    pub fn arm(hook: fn(Failpoint)) {
        let _ = HOOK.set(hook);
    }

    pub fn reached(failpoint: Failpoint) {
        if let Some(hook) = HOOK.get() {
            hook(failpoint);
        }
    }
}

#[cfg(feature = "failpoints")]
pub use armed::{arm, reached};

#[cfg(not(feature = "failpoints"))]
pub const fn arm(_: fn(Failpoint)) {}

#[cfg(not(feature = "failpoints"))]
pub const fn reached(_: Failpoint) {}
