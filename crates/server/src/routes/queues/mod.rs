//! Queues: what waits for workers.

pub mod list;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default().routes(routes!(list::list))
}
