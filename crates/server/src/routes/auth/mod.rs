//! Signing in and out.

mod login;
mod logout;
mod token;
mod ws_token;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default()
        .routes(routes!(login::login))
        .routes(routes!(logout::logout))
        .routes(routes!(token::token))
        .routes(routes!(ws_token::ws_token))
}
