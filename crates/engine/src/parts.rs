//! The parts of an engine. Each is a handle on the same engine that can do one thing, so that a caller holds what it needs
//! and nothing else. [`Engine`] hands them out.

use crate::Engine;

macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident, $accessor:ident;)+) => {
        $(
            $(#[$doc])*
            #[derive(Clone)]
            pub struct $name(pub(crate) Engine);
        )+

        impl Engine {
            $(
                $(#[$doc])*
                pub fn $accessor(&self) -> $name {
                    $name(self.clone())
                }
            )+
        }
    };
}

parts! {
    /// Runs: they are started, directed, voted on and ended.
    Runs, runs;
    /// What workers say and ask: sessions, polls, reports, effects.
    Workers, workers;
    /// Workflow versions.
    Workflows, workflows;
    /// The rules that actions are held against.
    Policies, policies;
    /// Signals from outside.
    Signals, signals;
    /// Runs that start by the clock.
    Schedules, schedules;
    /// Webhooks, in and out.
    Webhooks, webhooks;
    /// Approvals in Slack.
    Slack, slack;
    /// Requests that are carried out once, however often they come.
    Requests, requests;
    /// Events, as they happen.
    Events, events;
    /// The audit log and evidence bundles.
    Audit, audit;
    /// Tenants and whether they are enabled.
    Tenants, tenants;
    /// How the engine is doing.
    EngineHealth, health;
}
