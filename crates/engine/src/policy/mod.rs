//! Policy in force: which rules a tenant has, and what they say about an action before it happens.
//!
//! - [`rules`]: the bundle of a tenant, read from the store and held against it.
//! - [`standing`]: answers that hold for every run of a workflow version, so that ungoverned work is not asked about twice.
//! - [`ruling`]: the decision on one action, made off the async threads.
//! - [`predict()`]: what it would be, for a run that does not exist yet.
//! - [`undoing`]: what it would be, for a rollback that is not ordered yet.
//! - [`standing_replay`]: what other rules would say to steps that are allowed in every run.
//! - [`bundles`]: versions that are given, put in force, tried beside the one in force, and held against what was decided.

pub mod bundles;
mod predict;
mod rules;
mod ruling;
mod standing;
mod standing_replay;
mod undoing;

use std::fmt;
use std::sync::Arc;

use interlock_core::governance::judge::Judge;

pub use interlock_policy::limits::{DATA_BYTES_MAX, MODULES_MAX};
pub use predict::predict;
pub(crate) use rules::Rules;
pub(crate) use ruling::{KnownRuling, NotJudged};
pub(crate) use standing::StandingLeave;
pub use standing_replay::{ReplayedStanding, StandingDifference};

/// Who decides on actions.
#[derive(Clone, Default)]
pub enum JudgedBy {
    /// The tenant's policy, or the shipped one.
    #[default]
    Policy,
    /// Something else, in tests and simulations.
    Judge(Arc<dyn Judge>),
}

impl fmt::Debug for JudgedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy => f.write_str("Policy"),
            Self::Judge(judge) => judge.fmt(f),
        }
    }
}
