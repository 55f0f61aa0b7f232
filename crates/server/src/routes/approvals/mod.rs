//! Approvals: the tenant's open approvals, and people's votes on them.

mod approve;
mod decide;
mod get;
mod inbox;
mod list;
mod may_decide;
pub mod pick;
pub mod repeat;
pub mod view;
pub mod vote;
pub mod voter;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default()
        .routes(routes!(list::list))
        .routes(routes!(get::get))
        .routes(routes!(decide::decide))
        .routes(routes!(vote::vote))
        .routes(routes!(approve::approve))
}
