//! Approvals in Slack: a tenant's connection, which person a Slack user is, and what people press there.

mod dialog;
mod get;
mod interactions;
mod links;
mod presser;
mod put;
mod remove;
mod unlink;
mod view;
mod vote;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default()
        .routes(routes!(get::get, put::put, remove::remove))
        .routes(routes!(links::links))
        .routes(routes!(unlink::unlink))
}

/// Slack proves itself by its signature.
pub fn open_routes<L: Listing>() -> L {
    L::default().routes(routes!(interactions::interactions))
}
