//! What goes over the wire, and nothing else: no server, no database, no clock.
//!
//! [`agent`] holds the calls of a worker, [`transport::Transport`] is the trait through which it makes them, wherever
//! the engine is. [`problem::Problem`] is how every refusal looks on the wire. [`body`] reads the few messages whose
//! JSON needs care.

pub mod agent;
pub mod body;
pub mod code;
pub mod problem;
pub mod transport;
