//! Workers that are connected, could do a step by what they have, and are passed over all the same.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::{RunId, SessionId};
use crate::state::{FaultCheck, UnknownName, names};
use crate::time::Timestamp;

names!(
    /// Why a worker is passed over.
    SkipReason, "reason to pass a worker over", {
        /// A fault of its own: it is given no command and no run for a while.
        Errored = "errored",
        /// It was offline a moment ago: others that can take the run are asked before it.
        RecentlyOffline = "recently_offline",
        /// An operator keeps new work from it.
        Maintenance = "maintenance",
        /// It finishes what it has, and leaves.
        Draining = "draining",
        /// Its heartbeats have stopped.
        Silent = "silent",
        /// It is bound to other environments, by its certificate or by what it named when it registered.
        Environment = "environment",
        /// Its certificate does not name the network segment.
        Segment = "segment",
        /// Its certificate is for other sandbox profiles.
        Profile = "profile",
        /// Its host lacks a control that the sandbox profile requires.
        Controls = "controls",
        /// It is inside a server and serves all tenants: it runs commands only while there is one tenant.
        SeveralTenants = "several_tenants",
        /// It lacks a label that the step asks for.
        Labels = "labels",
        /// Its calls take longer to be answered than the step allows, or nobody knows how long.
        Latency = "latency",
    }
);

impl SkipReason {
    /// Whether an operator has taken the worker out of service, for a while or for good.
    pub const fn is_of_operator(self) -> bool {
        matches!(self, Self::Maintenance | Self::Draining)
    }
}

/// A worker that is passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SkippedWorker {
    pub session: SessionId,
    /// The worker's own name.
    pub worker: String,
    pub reason: SkipReason,
    /// What is known of it, for people to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The check that failed, and the run that showed it, of one that is `errored`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<FaultCheck>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl SkippedWorker {
    /// With nothing more to say than why.
    pub fn new(session: SessionId, worker: String, reason: SkipReason) -> Self {
        Self { session, worker, reason, why: None, check: None, run: None, since: None, until: None }
    }
}
