//! Changes that a second admin must agree to ([`crate::two_keys`]).

mod decide;
mod get;
mod list;
mod view;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default().routes(routes!(list::list)).routes(routes!(get::get)).routes(routes!(decide::decide))
}
