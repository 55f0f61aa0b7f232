//! Webhooks that go out: the addresses that are told of a tenant's events, and what was sent there.

mod create;
mod deliveries;
mod disable;
mod enable;
mod get;
mod list;
mod remove;
mod replay;
mod rotate;
mod view;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default()
        .routes(routes!(create::create, list::list))
        .routes(routes!(get::get, remove::remove))
        .routes(routes!(rotate::rotate))
        .routes(routes!(enable::enable))
        .routes(routes!(disable::disable))
        .routes(routes!(deliveries::deliveries))
        .routes(routes!(replay::replay))
}
