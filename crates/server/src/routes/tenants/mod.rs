//! Tenants. A caller with charge of the installation sees them all; every other caller its own.

mod change;
mod create;
mod get;
mod list;
pub(crate) mod view;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default().routes(routes!(create::create, list::list)).routes(routes!(get::get, change::change))
}
