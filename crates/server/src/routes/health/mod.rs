//! Health checks, which need no credential: they say nothing about what the server holds.

mod live;
pub mod ready;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default().routes(routes!(live::live)).routes(routes!(ready::ready))
}
