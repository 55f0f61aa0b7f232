//! Runs: start them, look at them, direct them.

mod attempts;
mod cancel;
mod decisions;
pub mod events;
pub mod filter;
mod get;
mod label;
mod list;
pub mod output;
mod pause;
mod payload;
mod reassign;
mod receipts;
mod resolve;
mod restart;
mod resume;
mod retry;
mod rollback;
mod searchable;
mod signal;
mod skip;
mod skipped;
mod start;
mod stats;
mod steps;
pub mod view;
pub mod why;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default()
        .routes(routes!(start::start, list::list))
        .routes(routes!(get::get))
        .routes(routes!(stats::stats))
        .routes(routes!(steps::steps))
        .routes(routes!(events::events))
        .routes(routes!(attempts::attempts))
        .routes(routes!(receipts::receipts))
        .routes(routes!(output::output))
        .routes(routes!(decisions::decisions))
        .routes(routes!(payload::payload))
        .routes(routes!(why::why))
        .routes(routes!(cancel::cancel))
        .routes(routes!(pause::pause))
        .routes(routes!(resume::resume))
        .routes(routes!(retry::retry))
        .routes(routes!(skip::skip))
        .routes(routes!(reassign::reassign))
        .routes(routes!(restart::restart))
        .routes(routes!(rollback::roll_back, rollback::preview))
        .routes(routes!(label::label))
        .routes(routes!(resolve::resolve))
        .routes(routes!(signal::signal))
}
