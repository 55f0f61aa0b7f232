//! Commands over states. A [`case::Case`] is a run with its clock; every command that it accepts is held against the
//! [`invariants`] and its rows are [`fold`]ed back into a run, so that the tables here need only say what is special.

mod approve;
pub(super) mod arrows;
mod assign;
mod cancel;
mod case;
mod claim;
mod complete;
mod control;
mod doubt;
mod effect;
mod fold;
mod gated;
mod guard;
mod invariants;
mod judge;
mod lost;
mod matrix;
mod moves;
mod plans;
mod property;
mod repeat;
mod resume;
mod rollback;
mod start;
mod subject;
mod terminal;
mod undo;
mod wait;
mod why;
