//! The worker against an engine in memory, in paused time: nothing sleeps, and every fault is one that a test asked
//! for. Local programs and HTTP are tested against the real thing.

mod connectors;
mod credentials;
mod drain;
mod effects;
mod fake;
#[expect(dead_code, reason = "a Vault that other tests ask for more")]
#[path = "../../../credentials/tests/credentials/harness.rs"]
mod harness;
mod http;
mod output;
mod programs;
mod sessions;
#[expect(dead_code, reason = "a Vault that other tests ask for more")]
#[path = "../../../credentials/tests/credentials/simulator.rs"]
mod simulator;
mod tasks;
