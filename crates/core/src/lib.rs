//! The pure domain of Interlock.
//!
//! [`run::Run`] is the state of one run. [`decide`] takes it with a command, what was found out beforehand, and the
//! instant, and answers with a [`change::ChangeSet`] or a [`rejection::Rejection`]. Nothing in here reads a clock,
//! draws a random number, waits, or talks to anything: the same inputs give the same answer.

pub mod action;
pub mod approval;
pub mod bulk;
pub mod caps;
pub mod change;
pub mod cloudevent;
pub mod decide;
pub mod destination;
pub mod event;
pub mod identity;
pub mod ids;
pub mod json;
pub mod keys;
pub mod limits;
pub mod machine;
mod meaning;
pub mod nearest;
pub mod plan;
pub mod planted;
pub mod project;
pub mod receipt;
pub mod rejection;
pub mod retry;
pub mod rules;
pub mod run;
pub mod schedule;
pub mod state;
pub mod stricter;
pub mod tenant;
pub mod tier;
pub mod time;
pub mod trace;
pub mod trigger;
pub mod unasked;
pub mod visible;
pub mod webhook;
pub mod why;
pub mod work;
