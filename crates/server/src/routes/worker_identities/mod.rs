//! Workers that enrol by a token: who may, who has, and who no longer may.

mod create;
mod list;
mod revoke;
mod view;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default().routes(routes!(create::create)).routes(routes!(list::list)).routes(routes!(revoke::revoke))
}
