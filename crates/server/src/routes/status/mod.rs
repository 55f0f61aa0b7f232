//! How everything stands, on one screen.

mod problems;
mod show;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default().routes(routes!(show::show))
}
