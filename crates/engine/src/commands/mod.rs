//! What can be asked of the engine, one verb a file.

pub mod announce;
pub mod apply;
pub mod assign;
pub mod bulk;
pub mod complete;
pub mod control;
mod dedupe;
pub mod effect;
mod holder;
mod label;
mod late;
pub mod messages;
pub mod once;
pub(crate) mod output;
pub(crate) mod process;
pub(crate) mod repeated;
pub mod restore;
pub mod resume;
mod retry;
mod settle;
pub mod signal;
pub mod start;
pub mod start_workflow;
pub mod subject;
pub mod throttle;
pub mod ticket;
pub mod undo;
pub mod vote;

use interlock_core::ids::{ApprovalId, RunId};
use interlock_core::run::approval::Purpose;
use interlock_core::run::{Phase, Run};
use interlock_core::state::{ApprovalState, RunState};

/// Where a run stands after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunStatus {
    pub run: RunId,
    pub state: RunState,
    pub version: u64,
    /// The votes that a directive still needs before it is carried out.
    pub needs: Option<VotesNeeded>,
}

/// A directive that other people have to agree to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VotesNeeded {
    pub approval: ApprovalId,
    pub approved: u32,
    pub needed: u32,
}

impl VotesNeeded {
    fn of(run: &Run) -> Option<Self> {
        let Phase::WaitingApproval(open) = &run.current().phase else { return None };
        let is_open = open.purpose == Purpose::Skip && open.state == ApprovalState::Requested;
        let approved = open.approved_by().len() as u32;
        is_open.then_some(Self { approval: open.id, approved, needed: open.quorum })
    }
}

impl RunStatus {
    pub(crate) fn of(run: &Run) -> Self {
        let needs = if run.state.is_terminal() { None } else { VotesNeeded::of(run) };
        Self { run: run.id, state: run.state, version: run.version, needs }
    }
}
