//! People of the caller's tenant.

mod change;
mod create;
mod get;
mod invite;
mod list;
mod password;
pub(crate) mod view;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default()
        .routes(routes!(create::create, list::list))
        .routes(routes!(get::get, change::change))
        .routes(routes!(password::set))
        .routes(routes!(invite::invite))
}
