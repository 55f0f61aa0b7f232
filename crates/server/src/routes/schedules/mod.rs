//! Schedules: make them, look at them, let them rest.

mod create;
mod get;
mod list;
mod next;
mod pause;
mod remove;
mod resume;
mod trigger;
mod view;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default()
        .routes(routes!(create::create, list::list))
        .routes(routes!(get::get, remove::remove))
        .routes(routes!(pause::pause))
        .routes(routes!(resume::resume))
        .routes(routes!(trigger::trigger))
        .routes(routes!(next::next))
}
