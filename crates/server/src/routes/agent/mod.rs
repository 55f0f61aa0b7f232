//! The calls of workers. Every one of them is safe to repeat.

mod assignment;
pub mod broker;
pub mod calls;
pub mod channel;
mod complete;
mod enrol;
mod heartbeat;
mod intent;
mod outcome;
mod output;
mod poll;
mod register;
mod renew;
mod unregister;

use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default()
        .routes(routes!(enrol::enrol))
        .routes(routes!(renew::renew))
        .routes(routes!(channel::channel))
        .routes(routes!(broker::broker))
        .merge(calls())
}

/// What a session is held by, each by itself, as a frame of the [`channel`], or over the [`broker`].
fn calls<L: Listing>() -> L {
    L::default()
        .routes(routes!(register::register))
        .routes(routes!(heartbeat::heartbeat))
        .routes(routes!(poll::poll))
        .routes(routes!(complete::complete))
        .routes(routes!(intent::intent))
        .routes(routes!(outcome::outcome))
        .routes(routes!(output::output))
        .routes(routes!(assignment::assignment))
        .routes(routes!(unregister::unregister))
}
