//! The live stream: events to many watchers, each event read and encoded once.
//!
//! [`hub::Hub`] keeps a [`channel::Channel`] for each run, or tenant, that is watched: one pump reads what is new
//! from the engine's feed, encodes it ([`frame::Frame`]) and keeps the newest frames. A
//! [`subscription::Subscription`] is one watcher's place: it replays from the store what is older than those frames,
//! then takes shared frames at the pace of its own socket. Nothing is queued for a watcher; one that takes the kept frames
//! more slowly than they go is told to resync. [`socket`] and [`events`] are the two ways onto the wire.

mod admit;
mod channel;
mod credential;
mod cursor;
mod envelope;
mod events;
mod frame;
mod hub;
mod names;
mod output;
mod socket;
mod subscription;

pub use admit::{Admission, verify_token};
pub use credential::Credential;
pub use cursor::{ahead, cursor, place, place_or_since};
pub use envelope::enveloped;
pub use events::stream;
pub use hub::Hub;
pub use output::stream_output;
pub use socket::{Socket, WatcherMessage, close_code, serve};

use interlock_core::ids::{RunId, TenantId};

/// What is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    Run(TenantId, RunId),
    /// The same run in the envelopes of the runbook surface.
    Execution(TenantId, RunId),
    Tenant(TenantId),
}

impl Topic {
    pub const fn tenant(self) -> TenantId {
        let (Self::Run(tenant, _) | Self::Execution(tenant, _) | Self::Tenant(tenant)) = self;
        tenant
    }
}

/// Bounds of the streams.
pub mod limits {
    use std::time::Duration;

    /// Watchers of one server, whatever they watch.
    pub const SUBSCRIBERS_MAX: usize = 10_000;
    /// Watchers of one tenant, unless the operator says otherwise: half, so that no tenant has all places.
    pub const STREAMS_PER_TENANT_MAX: usize = SUBSCRIBERS_MAX / 2;
    /// WebSockets that have not said yet who they are.
    pub const UNKNOWN_SOCKETS_MAX: usize = 1_000;
    /// The newest frames of a topic that are kept for all its watchers, by number and by size.
    pub const KEPT_FRAMES_MAX: usize = 1_024;
    pub const KEPT_BYTES_MAX: usize = 1 << 20;
    /// What is added to them at once: half, so that a watcher who takes them finds the other half still there.
    pub const PUSH_BYTES_MAX: usize = KEPT_BYTES_MAX / 2;
    /// Frames that one write takes.
    pub const BATCH_FRAMES_MAX: usize = 256;
    /// Events that a watcher who is behind reads from the store at a time; all that the server holds for it alone.
    pub const REPLAY_EVENTS_MAX: usize = 128;
    /// A watcher that takes longer than this for what it is given, and falls behind what is kept meanwhile, is slow.
    pub const SLOW_AFTER: Duration = Duration::from_secs(1);
    /// How long the last frames of a WebSocket may take.
    pub const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
    /// A socket that takes nothing for this long is given up.
    pub const SEND_TIMEOUT: Duration = Duration::from_secs(20);
    /// With many watchers, wake-ups are spaced by this much for each of them, up to the longest pause: a burst of
    /// events becomes one write per watcher.
    pub const PAUSE_PER_WATCHER: Duration = Duration::from_micros(500);
    pub const PAUSE_MAX: Duration = Duration::from_millis(500);
    /// Nor are they all woken at the same instant, which would keep the engine waiting until all of them have written:
    /// for each of them the time over which they are spread grows by this much, up to the longest.
    pub const SPREAD_PER_WATCHER: Duration = Duration::from_micros(200);
    pub const SPREAD_MAX: Duration = Duration::from_millis(200);
    /// Into so many parts that time is divided.
    pub const SPREAD_PARTS: usize = 64;

    const _: () =
        assert!(interlock_engine::feed::EVENTS_READ_MAX * 2 <= KEPT_FRAMES_MAX, "one read is half of what is kept");
}
