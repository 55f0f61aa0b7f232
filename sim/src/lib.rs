//! Deterministic simulation: the real core and the real engine over the real SQLite store in memory, on one thread
//! and a clock that only the simulation moves.
//!
//! [`run_seed`] makes one world out of one number: tenants, workflows, workers, clients, people and the faults they
//! live with ([`swarm`]). They share a [`sim::Sim`]; everything they ask of the engine goes through the [`network`];
//! the [`hosts`] kill their engines and open them again. When the faults are over, a [`caretaker`] sees to it that every
//! run ends, and [`check`] says whether the promises held, throughout and at the end.

mod archive;
mod books;
mod bulk;
mod caretaker;
mod cast;
mod check;
mod client;
mod courier;
mod damage;
mod dice;
mod doubts;
mod faults;
mod given;
mod host;
mod hosts;
mod network;
mod people;
mod plans;
mod quiet;
mod seed;
mod sim;
mod sink;
mod subjects;
mod swarm;
mod tally;
mod trace;
mod triggers;
mod watcher;
mod worker;

pub use seed::{FailedSeed, PassedSeed, has_part, run_seed};
pub use swarm::{Fault, Part};
pub use tally::Counts;
