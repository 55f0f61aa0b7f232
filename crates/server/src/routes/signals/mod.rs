//! Messages from outside.

pub mod event;
pub mod send;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default().routes(routes!(send::send))
}
