//! The runbook surface: runs as sessions that execute a runbook for a ticket. Nothing here decides anything: every call
//! is one of the engine's own, in this surface's words ([`words`]).

mod approve;
mod create;
mod events;
mod get;
mod rollback;
mod view;
mod words;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default()
        .routes(routes!(create::create))
        .routes(routes!(get::get))
        .routes(routes!(approve::approve))
        .routes(routes!(rollback::roll_back))
        .routes(routes!(events::events))
}
