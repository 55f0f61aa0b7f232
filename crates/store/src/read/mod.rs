//! Reads, by what they are for: [`load`] for `decide`, [`ready`] for dispatch, [`timers`] for the loops, [`lists`]
//! for people, [`feed`] for streams, [`workflows`] for definitions, [`health`] and [`check`] for operators, [`identity`] for the
//! question who asks, [`usage`] for the question what a run waits for.

mod check;
mod feed;
mod health;
mod identity;
mod lists;
mod load;
mod outbox;
mod ready;
mod subjects;
mod timers;
mod triggers;
mod usage;
mod workflows;

pub(crate) use load::PlanCache;
