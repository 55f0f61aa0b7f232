//! The routes: a folder for each noun, a file for each verb.

pub mod agent;
pub mod approvals;
pub mod audit;
pub mod auth;
pub mod bulk;
pub mod changes;
pub mod dead_letters;
pub mod delegations;
pub mod executions;
pub mod health;
pub mod keys;
pub mod live;
pub mod me;
pub mod metrics;
pub mod policy;
pub mod queues;
pub mod runs;
pub mod schedules;
pub mod signals;
pub mod slack;
pub mod status;
pub mod tenants;
pub mod users;
pub mod waits;
pub mod webhook_endpoints;
pub mod webhooks;
pub mod worker_identities;
pub mod workers;
pub mod workflows;

use utoipa::openapi::OpenApi;

use crate::listing::{Described, Listing};

/// The routes that need a caller.
pub(crate) fn guarded<L: Listing>() -> L {
    L::default()
        .merge(agent::routes())
        .merge(approvals::routes())
        .merge(audit::routes())
        .merge(auth::routes())
        .merge(dead_letters::routes())
        .merge(changes::routes())
        .merge(delegations::routes())
        .merge(keys::routes())
        .merge(me::routes())
        .merge(policy::routes())
        .merge(runs::routes())
        .merge(executions::routes())
        .merge(bulk::routes())
        .merge(live::routes())
        .merge(signals::routes())
        .merge(slack::routes())
        .merge(waits::routes())
        .merge(metrics::routes())
        .merge(queues::routes())
        .merge(status::routes())
        .merge(worker_identities::routes())
        .merge(workers::routes())
        .merge(tenants::routes())
        .merge(users::routes())
        .merge(schedules::routes())
        .merge(webhook_endpoints::routes())
        .merge(webhooks::routes())
        .merge(workflows::routes())
}

/// The routes that need no credential.
pub(crate) fn open<L: Listing>() -> L {
    L::default()
        .merge(health::routes())
        .merge(workflows::open())
        .merge(webhooks::open_routes())
        .merge(slack::open_routes())
}

/// What the guarded and the open routes say of themselves.
pub(crate) fn described() -> (OpenApi, OpenApi) {
    (guarded::<Described>().merge(live::sockets()).into_openapi(), open::<Described>().into_openapi())
}
