//! Known-bad variants of the system, for the simulation to find: a checker that has never caught anything proves
//! nothing. Without the feature `planted`, which only the simulation switches on, [`is_planted`] is a constant `false`.

/// A mistake that somebody could make here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A report of an attempt that is over is taken for one of the current attempt.
    NoFence,
}

#[cfg(feature = "planted")]
mod planting {
    use super::Bug;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Puts a bug into everything that runs on this thread, or takes it out again.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.set(bug);
    }

    pub fn is_planted(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }
}

#[cfg(feature = "planted")]
pub use planting::{is_planted, plant};

#[cfg(not(feature = "planted"))]
pub const fn is_planted(_: Bug) -> bool {
    false
}
