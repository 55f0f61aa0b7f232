//! Webhooks that come in: the addresses at which a tenant takes them, and taking them.

mod change;
mod create;
mod deliveries;
mod get;
mod list;
pub mod receive;
mod remove;
mod rotate;
pub mod view;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default()
        .routes(routes!(create::create, list::list))
        .routes(routes!(get::get, change::change, remove::remove))
        .routes(routes!(rotate::rotate))
        .routes(routes!(deliveries::deliveries))
}

/// Needs no credential: the sender proves itself by its signature.
pub fn open_routes<L: Listing>() -> L {
    L::default().routes(routes!(receive::receive))
}
