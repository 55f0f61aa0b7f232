//! Callers that are confined to a workspace: which routes are for them.
//!
//! A key may be limited to one workspace. What belongs to a workspace (runs, their approvals and waits, bulk jobs,
//! schedules, keys that are limited to it) is filtered by each handler, and another workspace's is answered like
//! something that does not exist. What belongs to the tenant as a whole is refused here, before the handler: a confined
//! key could otherwise reach every workspace through it. A route that is in neither list is refused too, and a test
//! asks for its place.

use axum::http::StatusCode;
use interlock_core::tenant::identity::Permission;
use interlock_protocol::{
    agent, approvals, audit, bulk, changes, delegations, enrolment, executions, identity, live, operations, policy,
    runs, schedules, slack, webhooks, workflows,
};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::matrix::Line;

/// What a route is about, as far as workspaces are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Nothing that a workspace has: the caller itself, definitions that all workspaces share, public pages.
    Shared,
    /// Things of a workspace: the handler shows and touches only the caller's own.
    Workspace,
    /// The tenant as a whole.
    Tenant,
}

/// Paths of things that belong to a workspace.
const OF_WORKSPACE: &[&str] = &[
    identity::path::KEYS,
    identity::path::KEY,
    identity::path::KEY_ROTATE,
    approvals::path::APPROVALS,
    approvals::path::APPROVAL,
    approvals::path::DECISION,
    approvals::path::VOTE,
    approvals::path::APPROVE,
    runs::path::RUNS,
    runs::path::RUN,
    runs::path::STEPS,
    runs::path::EVENTS,
    runs::path::ATTEMPTS,
    runs::path::RECEIPTS,
    runs::path::OUTPUT,
    policy::path::DECISIONS,
    runs::path::PAYLOAD,
    audit::path::EVIDENCE,
    runs::path::WAITS,
    runs::path::WHY,
    runs::path::CANCEL,
    runs::path::PAUSE,
    runs::path::RESUME,
    runs::path::RETRY,
    runs::path::SKIP,
    runs::path::REASSIGN,
    runs::path::RESTART,
    runs::path::ROLLBACK,
    runs::path::LABELS,
    runs::path::RESOLVE,
    runs::path::RUN_SIGNALS,
    operations::path::STATUS,
    operations::path::STATS,
    operations::path::QUEUES,
    bulk::path::PREVIEW,
    bulk::path::BULK,
    bulk::path::JOB,
    bulk::path::FAILURES,
    live::path::SSE_RUN,
    live::path::SSE_OUTPUT,
    live::path::WS_RUN,
    live::path::WS_EXECUTION,
    executions::path::EXECUTIONS,
    executions::path::EXECUTION,
    executions::path::APPROVE,
    executions::path::ROLLBACK,
    executions::path::EVENTS,
    schedules::path::SCHEDULES,
    schedules::path::SCHEDULE,
    schedules::path::PAUSE,
    schedules::path::RESUME,
    schedules::path::TRIGGER,
    schedules::path::NEXT,
];

/// Paths of what all workspaces share, and may read.
const SHARED: &[&str] = &[
    identity::path::TENANTS,
    identity::path::TENANT,
    workflows::path::WORKFLOWS,
    workflows::path::WORKFLOW,
    workflows::path::VERSIONS,
    workflows::path::VERSION,
    policy::path::POLICY,
    policy::path::VERSIONS,
    policy::path::FILES,
];
/// The caller's own, and checks that change nothing.
const OWN: &[&str] = &[
    identity::path::LOGOUT,
    identity::path::WS_TOKEN,
    identity::path::ME,
    audit::path::KEY,
    workflows::path::VALIDATE,
    workflows::path::PLAN,
    policy::path::EVAL,
];

/// Paths of what belongs to the tenant as a whole. Signals by key and workers reach every workspace.
const OF_TENANT: &[&str] = &[
    identity::path::TENANTS,
    identity::path::TENANT,
    identity::path::USERS,
    identity::path::USER,
    identity::path::USER_PASSWORD,
    identity::path::USER_INVITE,
    changes::path::CHANGES,
    changes::path::CHANGE,
    changes::path::DECISION,
    delegations::path::DELEGATIONS,
    delegations::path::DELEGATION,
    slack::path::SLACK,
    slack::path::LINKS,
    slack::path::LINK,
    audit::path::AUDIT,
    audit::path::CHECKPOINT,
    audit::path::ERASURES,
    "/metrics",
    operations::path::WORKERS,
    enrolment::path::IDENTITIES,
    enrolment::path::IDENTITY,
    operations::path::WORKER,
    operations::path::WORKER_DRAIN,
    operations::path::WORKER_MAINTENANCE,
    live::path::SSE_FEED,
    live::path::FEED,
    live::path::WS_FEED,
    runs::path::SIGNALS,
    policy::path::POLICY,
    policy::path::VERSIONS,
    policy::path::REPLAY,
    policy::path::TESTS,
    workflows::path::WORKFLOWS,
    workflows::path::WORKFLOW,
    workflows::path::DISABLE,
    workflows::path::ENABLE,
    webhooks::path::INBOUND,
    webhooks::path::INBOUND_ONE,
    webhooks::path::INBOUND_ROTATE,
    webhooks::path::INBOUND_DELIVERIES,
    webhooks::path::OUTBOUND,
    webhooks::path::OUTBOUND_ONE,
    webhooks::path::OUTBOUND_ROTATE,
    webhooks::path::OUTBOUND_ENABLE,
    webhooks::path::OUTBOUND_DISABLE,
    webhooks::path::OUTBOUND_DELIVERIES,
    webhooks::path::OUTBOUND_REPLAY,
    webhooks::path::DEAD_LETTERS,
    webhooks::path::DEAD_LETTERS_REPLAY,
    enrolment::path::RENEW,
    agent::path::REGISTER,
    agent::path::HEARTBEAT,
    agent::path::POLL,
    agent::path::COMPLETE,
    agent::path::EFFECTS,
    agent::path::OUTCOMES,
    agent::path::OUTPUT,
    agent::path::ASSIGNMENTS,
    agent::path::UNREGISTER,
    agent::path::CHANNEL,
    agent::path::BROKER,
];

/// The scope of a route, where it is in one of the lists.
pub fn listed(line: &Line) -> Option<Scope> {
    let shared = line.needs == Permission::Public
        || OWN.contains(&line.path)
        || line.method == "GET" && SHARED.contains(&line.path);
    if shared {
        return Some(Scope::Shared);
    }
    if OF_WORKSPACE.contains(&line.path) {
        return Some(Scope::Workspace);
    }
    OF_TENANT.contains(&line.path).then_some(Scope::Tenant)
}

/// Refuses a caller that is confined to a workspace where the route is about the tenant as a whole, or in no list.
pub fn check(caller: &Caller, line: &Line) -> Result<(), ApiError> {
    let Some(workspace) = &caller.workspace else { return Ok(()) };
    match listed(line) {
        Some(Scope::Shared | Scope::Workspace) => Ok(()),
        Some(Scope::Tenant) | None => Err(refused(workspace)),
    }
}

/// Also for sockets, whose caller may be known only after the guard.
pub fn refused(workspace: &str) -> ApiError {
    denied(format!(
        "this key is limited to workspace `{workspace}`, and this is about the whole tenant; use a key without a workspace"
    ))
}

/// A plan in the request is none of the tenant's applied workflows.
pub fn plan_refused(workspace: &str) -> ApiError {
    denied(format!(
        "this key is limited to workspace `{workspace}`, and starts the tenant's workflows only: give `workflow` instead of `plan`"
    ))
}

fn denied(detail: String) -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, "PERMISSION_DENIED", detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::MATRIX;

    #[test]
    fn every_route_has_a_scope() {
        for line in MATRIX {
            let scope = listed(line);
            assert!(scope.is_some(), "{} {}: name its scope in one of the lists above", line.method, line.path);
        }
        for path in OF_WORKSPACE.iter().chain(SHARED).chain(OWN).chain(OF_TENANT) {
            assert!(MATRIX.iter().any(|line| line.path == *path), "{path} is no route any more");
        }
    }

    #[test]
    fn what_changes_shared_definitions_is_the_tenants() {
        for line in MATRIX.iter().filter(|line| line.needs == Permission::Define && line.path.contains("/workflows")) {
            assert_eq!(listed(line), Some(Scope::Tenant), "{} {}", line.method, line.path);
        }
    }
}
