//! The tenant's audit log, and the evidence of runs.

mod checkpoint;
mod erase;
mod evidence;
mod key;
mod list;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default()
        .routes(routes!(list::list))
        .routes(routes!(checkpoint::checkpoint))
        .routes(routes!(erase::erase))
        .routes(routes!(key::key))
        .routes(routes!(evidence::evidence))
}
