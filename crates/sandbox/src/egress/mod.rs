//! The only way out of a sandbox without a network: a socket at `/run/egress.sock` that speaks HTTP CONNECT.
//!
//! The [`Broker`] runs outside, in the worker. It connects to targets that the request names, at addresses that the rules
//! for outbound calls leave open, and copies bytes both ways.

mod broker;
mod target;

pub(crate) use broker::Broker;
pub use broker::EgressAttempt;
pub use target::{InvalidTarget, Target};
