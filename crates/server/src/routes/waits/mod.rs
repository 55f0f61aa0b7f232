//! Who waits for what.

mod list;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default().routes(routes!(list::list))
}
