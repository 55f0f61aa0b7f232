//! What the engine has acknowledged. Whatever stands here must be true at the end, whatever went wrong in between.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::ids::{ApprovalId, OutboundId, RunId, SignalId, TenantId};
use interlock_core::work::AttemptRef;
use tokio::time::Instant;

use crate::bulk::AckedJob;
use crate::triggers::receivers::ArrivedEvent;
use crate::triggers::senders::AckedDelivery;

#[derive(Clone, Default)]
pub struct Books {
    /// Runs by the key they were started with.
    pub starts: BTreeMap<(TenantId, String), RunId>,
    /// When a client was first told that a run has been started.
    pub started: BTreeMap<(TenantId, RunId), Instant>,
    /// Every run that a client or a person was told of.
    pub runs: BTreeSet<(TenantId, RunId)>,
    pub signals: Vec<AckedSignal>,
    pub votes: Vec<AckedVote>,
    pub cancels: BTreeSet<(TenantId, RunId)>,
    pub jobs: Vec<AckedJob>,
    /// Reports of workers that were answered with success.
    pub reports: BTreeMap<AttemptRef, ReportKind>,
    /// Who was handed an attempt.
    pub handed: BTreeMap<AttemptRef, interlock_core::ids::SessionId>,
    /// Questions that tasks sent out when they began to wait.
    pub questions: BTreeSet<String>,
    /// Questions that reached the outside.
    pub delivered: BTreeSet<String>,
    /// Webhooks and signals that start runs, by their sender's id.
    pub deliveries: BTreeMap<(TenantId, String), AckedDelivery>,
    /// Events that reached an endpoint, in the order of their arrival.
    pub arrived: BTreeMap<(TenantId, OutboundId), Vec<ArrivedEvent>>,
}

#[derive(Debug, Clone)]
pub struct AckedSignal {
    pub tenant: TenantId,
    pub signal_type: String,
    pub key: String,
    /// Known of those that were sent as signals.
    pub id: Option<SignalId>,
    /// When its sender began to send it.
    pub sent_at: Instant,
    pub broadcast: bool,
}

#[derive(Debug, Clone)]
pub struct AckedVote {
    pub tenant: TenantId,
    pub run: RunId,
    pub approval: ApprovalId,
    pub person: String,
    pub approve: bool,
}

/// What a worker reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportKind {
    Completed,
    Waiting,
    Failed,
}
