//! Workers: who takes steps, from which queues, and when each was last heard of.

mod drain;
mod forget;
mod get;
mod list;
mod maintenance;
pub mod view;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default()
        .routes(routes!(list::list))
        .routes(routes!(get::get, forget::forget))
        .routes(routes!(drain::drain))
        .routes(routes!(maintenance::begin, maintenance::end))
}
