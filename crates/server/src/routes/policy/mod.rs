//! Policy: the rules that actions are held against, their versions, and what others would have decided.

mod ask;
mod change;
mod files;
mod replay;
mod show;
mod tests;
mod versions;
mod view;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default()
        .routes(routes!(show::show, change::change))
        .routes(routes!(versions::list, versions::add))
        .routes(routes!(files::files))
        .routes(routes!(ask::eval))
        .routes(routes!(replay::replay))
        .routes(routes!(tests::run))
}
