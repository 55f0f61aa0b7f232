//! The worker against an engine in memory, in paused time: nothing sleeps, and every fault is one that a test asked
//! for. Local programs and HTTP are tested against the real thing.

mod connectors;
mod credentials;
mod drain;
mod effects;
mod fake;
mod http;
mod output;
mod programs;
mod sessions;
mod tasks;
