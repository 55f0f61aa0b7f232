//! Workflows: apply files, look at what is there.

mod apply;
mod disable;
mod etag;
mod get;
mod list;
mod plan;
mod schema;
mod validate;
mod version;
mod versions;
mod view;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default()
        .routes(routes!(apply::apply, list::list))
        .routes(routes!(apply::put, get::get))
        .routes(routes!(versions::versions))
        .routes(routes!(version::version))
        .routes(routes!(validate::validate))
        .routes(routes!(plan::plan))
        .routes(routes!(disable::disable))
        .routes(routes!(disable::enable))
}

/// The schema for editors. It needs no credential.
pub fn open<L: Listing>() -> L {
    L::default().routes(routes!(schema::schema))
}
