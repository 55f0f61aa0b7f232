//! Runs that are made from an ended one: by `retry`, by `restart` from a step, or to undo it. What people agreed to in the
//! old run permits nothing in the new one.

use std::sync::Arc;

use super::super::case::{Case, Opening, cancel};
use super::people::Caller;
use super::play::Play;
use crate::decide::{Resumed, Undoes, resume, undo};
use crate::run::change::Context;
use crate::state::{Initiator, StepState};

/// How a new run is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Successor {
    Retry,
    RestartFrom(u32),
    UndoFrom(u32),
}

impl Successor {
    pub fn all(ended: &Play) -> impl Iterator<Item = Self> + use<> {
        let forward = ended.case.run.forward_len() as u32;
        let from_each = move |how: fn(u32) -> Self| (0..forward).map(how);
        std::iter::once(Self::Retry).chain(from_each(Self::RestartFrom)).chain(from_each(Self::UndoFrom))
    }

    /// The new run, begun; nothing where it is refused.
    pub fn of(self, ended: &Play, caller: Caller) -> Option<Play> {
        let run = &ended.case.run;
        let resumed = match self {
            Self::Retry => resume(run, None),
            Self::RestartFrom(position) => resume(run, Some(position)),
            Self::UndoFrom(position) => undo(run, position),
        };
        let Resumed { inherited, starters, named, .. } = resumed.ok()?;
        let undoes = match self {
            Self::UndoFrom(from) => Some(Undoes { from, reason: "wrong order".into() }),
            _ => None,
        };
        let by = caller.context(Initiator::Operator);
        let opening = Opening {
            answers: ended.case.answers.clone(),
            judge: Arc::clone(&ended.case.judge),
            inherited,
            starters,
            named,
            undoes,
            by: by.clone(),
            run: 2,
            ..Opening::of((*run.plan).clone())
        };
        Some(ended.continued_by(opening, &by))
    }
}

impl Play {
    /// The ways in which the run can end from where it stands: as it is, canceled, or gone on with until it has.
    pub fn endings(&self) -> Vec<(&'static str, Self)> {
        let mut canceled = self.clone();
        let _ = canceled.ask(cancel(false), Context::operator("operator"));
        if canceled.case.run.current().state() == StepState::Running {
            let _ = canceled.ask(canceled.case.lease_expired(), Context::SYSTEM);
        }
        let mut finished = self.clone();
        finished.go_on();
        if finished.broken.is_none() && finished.is_at_last_step() {
            finished.claim().complete();
        }
        let ways = [("ended", self.clone()), ("canceled", canceled), ("gone on", finished)];
        let has_ended = |play: &Self| play.broken.is_none() && play.case.run.state.is_terminal();
        ways.into_iter().filter(|(_, play)| has_ended(play)).collect()
    }

    /// The run that this opening begins, watched from its first change on.
    fn continued_by(&self, opening: Opening, by: &Context) -> Self {
        let case: Case = opening.start();
        let mut ledger = self.ledger.of_successor(by);
        let broken = ledger.enter_start(&case, by).err();
        Self { case, ledger, broken }
    }
}
