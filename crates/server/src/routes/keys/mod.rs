//! Keys of the caller's tenant.

mod create;
mod get;
mod list;
mod revoke;
mod rotate;
pub(crate) mod view;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default()
        .routes(routes!(create::create, list::list))
        .routes(routes!(get::get, revoke::revoke))
        .routes(routes!(rotate::rotate))
}
