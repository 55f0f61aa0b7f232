//! Messages of every kind that were given up: to be looked at, and to be sent again.

mod list;
mod replay;

pub use list::MessagePage;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default().routes(routes!(list::list)).routes(routes!(replay::replay))
}
