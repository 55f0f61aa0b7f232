//! Which arrows of the step's machine `decide` walks, and which nobody has walked.

use std::cell::RefCell;

use crate::machine::step::StepEvent;
use crate::state::{StepKind, StepState};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrow {
    pub position: u32,
    pub kind: StepKind,
    pub from: StepState,
    pub event: StepEvent,
    pub to: StepState,
}

thread_local! {
    static WALKED: RefCell<Vec<Arrow>> = const { RefCell::new(Vec::new()) };
}

/// Called by the draft for every arrow that it takes.
pub fn walk(arrow: Arrow) {
    WALKED.with_borrow_mut(|walked| walked.push(arrow));
}

/// The arrows taken on this thread since the last call.
pub fn take() -> Vec<Arrow> {
    WALKED.take()
}
