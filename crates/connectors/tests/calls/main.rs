//! Connectors against servers on loopback that stand in for the real systems and check what they are sent.

mod email;
mod example;
mod general;
mod github;
mod harness;
mod http;
mod model;
mod pagerduty;
mod reference;
mod servicenow;
mod slack;
