//! The permission matrix: every route, what it needs, and where a request to it may name something that has an owner.
//!
//! The guard looks a request up here by its method and its route pattern and refuses what it does not find. The tests
//! walk the same table: every route with every role, and every id position with another tenant's id. A new route needs
//! a line here.

use std::collections::HashMap;
use std::sync::LazyLock;

use interlock_core::tenant::identity::Permission;
use interlock_protocol::{
    agent, approvals, audit, bulk, changes, delegations, enrolment, executions, identity, live, operations, policy,
    runs, schedules, slack, webhooks, workflows,
};

use crate::identity::oidc;
use crate::{limits, pages};

/// Where in a request an id can stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdPosition {
    /// A `{name}` in the route.
    Path(&'static str),
    Query(&'static str),
    /// A field of the JSON body, by its JSON pointer.
    Body(&'static str),
    /// A place in a list that goes on.
    Cursor(&'static str),
    Header(&'static str),
}

/// What is named there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thing {
    Tenant,
    Run,
    /// A workflow, by its name.
    Workflow,
    /// A version of the workflow in the same request.
    Version,
    /// A worker session.
    Session,
    /// A bulk job.
    Job,
    Approval,
    /// A right to decide that was lent.
    Delegation,
    /// A change that a second admin must agree to.
    Change,
    Key,
    /// A worker that may enrol, or has.
    WorkerIdentity,
    /// A person's account.
    User,
    /// The step of the run in the same request: it has no owner but the run's.
    Step,
    /// A payload of the run in the same request, likewise.
    Payload,
    Schedule,
    /// An address at which webhooks come in.
    Inbound,
    /// An address that is told of events.
    Outbound,
    /// A message to such an address.
    Message,
    /// The address that a sender knows; its signature says whose it is.
    Address,
    /// The same for Slack.
    SlackAddress,
    /// A person who is linked to a Slack user, by their name.
    Person,
}

/// One route.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    pub method: &'static str,
    /// As axum matches it.
    pub path: &'static str,
    pub needs: Permission,
    pub ids: &'static [(IdPosition, Thing)],
}

impl Line {
    /// Whether the answer goes on as events happen.
    pub fn is_stream(&self) -> bool {
        [live::path::SSE_RUN, live::path::SSE_FEED, live::path::SSE_OUTPUT, agent::path::CHANNEL].contains(&self.path)
    }

    /// The longest body that a request of this route may have. Who has not proven anything gets little.
    pub fn body_bytes_max(&self) -> usize {
        match self.needs {
            Permission::Public if [webhooks::path::INBOUND_ONE, slack::path::INTERACTIONS].contains(&self.path) => {
                limits::WEBHOOK_BODY_BYTES_MAX
            }
            Permission::Public => limits::PUBLIC_BODY_BYTES_MAX,
            _ => limits::BODY_BYTES_MAX,
        }
    }
}

const fn line(
    method: &'static str,
    path: &'static str,
    needs: Permission,
    ids: &'static [(IdPosition, Thing)],
) -> Line {
    Line { method, path, needs, ids }
}

const OF_RUN: &[(IdPosition, Thing)] = &[(IdPosition::Path("run"), Thing::Run)];
const OF_STEP: &[(IdPosition, Thing)] =
    &[(IdPosition::Path("run"), Thing::Run), (IdPosition::Path("step"), Thing::Step)];
const OF_EXECUTION: &[(IdPosition, Thing)] = &[(IdPosition::Path("session_id"), Thing::Run)];
const OF_PAYLOAD: &[(IdPosition, Thing)] =
    &[(IdPosition::Path("run"), Thing::Run), (IdPosition::Path("sha256"), Thing::Payload)];
const OF_WORKFLOW: &[(IdPosition, Thing)] = &[(IdPosition::Path("workflow"), Thing::Workflow)];
const OF_JOB: &[(IdPosition, Thing)] = &[(IdPosition::Path("job"), Thing::Job)];
const OF_ATTEMPT: &[(IdPosition, Thing)] = &[
    (IdPosition::Path("session"), Thing::Session),
    (IdPosition::Body("/tenant"), Thing::Tenant),
    (IdPosition::Body("/run"), Thing::Run),
];
const OF_TENANT: &[(IdPosition, Thing)] = &[(IdPosition::Path("tenant"), Thing::Tenant)];
const OF_KEY: &[(IdPosition, Thing)] = &[(IdPosition::Path("key"), Thing::Key)];
const OF_WORKER_IDENTITY: &[(IdPosition, Thing)] = &[(IdPosition::Path("identity"), Thing::WorkerIdentity)];
const OF_USER: &[(IdPosition, Thing)] = &[(IdPosition::Path("user"), Thing::User)];
const OF_APPROVAL: &[(IdPosition, Thing)] = &[(IdPosition::Path("approval"), Thing::Approval)];
const OF_DELEGATION: &[(IdPosition, Thing)] = &[(IdPosition::Path("delegation"), Thing::Delegation)];
const OF_CHANGE: &[(IdPosition, Thing)] = &[(IdPosition::Path("change"), Thing::Change)];
const OF_SCHEDULE: &[(IdPosition, Thing)] = &[(IdPosition::Path("schedule"), Thing::Schedule)];
const OF_INBOUND: &[(IdPosition, Thing)] = &[(IdPosition::Path("endpoint"), Thing::Inbound)];
const OF_OUTBOUND: &[(IdPosition, Thing)] = &[(IdPosition::Path("endpoint"), Thing::Outbound)];
/// The change that a request carries out, on the routes that [`crate::two_keys`] may keep for a second admin.
const CARRIED: (IdPosition, Thing) = (IdPosition::Header(changes::CHANGE_HEADER), Thing::Change);
const UNDER_TWO_KEYS: &[(IdPosition, Thing)] = &[CARRIED];
const TENANT_UNDER_TWO_KEYS: &[(IdPosition, Thing)] = &[(IdPosition::Path("tenant"), Thing::Tenant), CARRIED];
const KEY_UNDER_TWO_KEYS: &[(IdPosition, Thing)] = &[(IdPosition::Path("key"), Thing::Key), CARRIED];
const USER_UNDER_TWO_KEYS: &[(IdPosition, Thing)] = &[(IdPosition::Path("user"), Thing::User), CARRIED];
const SESSION_IN_BODY: &[(IdPosition, Thing)] = &[(IdPosition::Body("/session"), Thing::Session)];

pub static MATRIX: &[Line] = {
    use Permission::{Administer, Define, Install, Known, Operate, Public, Read, Vote, Work};
    &[
        line("GET", "/healthz", Public, &[]),
        line("GET", "/readyz", Public, &[]),
        line("GET", workflows::path::SCHEMA, Public, &[]),
        line("GET", "/openapi.json", Public, &[]),
        line("GET", "/docs", Public, &[]),
        line("GET", "/docs/page.css", Public, &[]),
        line("GET", "/docs/page.js", Public, &[]),
        line("GET", pages::path::ROOT, Public, &[]),
        line("GET", pages::path::SETUP, Public, &[]),
        line("POST", pages::path::SETUP, Public, &[]),
        line("GET", pages::path::LOGIN, Public, &[]),
        line("POST", pages::path::LOGIN, Public, &[]),
        line("POST", pages::path::LOGOUT, Public, &[]),
        line("GET", pages::path::ACCOUNT, Public, &[]),
        line("GET", pages::path::SLACK_LINK, Public, &[]),
        line("POST", pages::path::SLACK_LINK, Public, &[]),
        line("GET", pages::path::STYLE, Public, &[]),
        line("GET", oidc::path::START, Public, &[]),
        line("GET", oidc::path::CALLBACK, Public, &[]),
        line("GET", pages::path::CLI, Public, &[]),
        line("POST", pages::path::CLI, Public, &[]),
        line("POST", identity::path::LOGIN, Public, &[]),
        line("POST", identity::path::TOKEN, Public, &[]),
        line("POST", identity::path::LOGOUT, Known, &[]),
        line("POST", identity::path::WS_TOKEN, Known, &[]),
        line("GET", identity::path::ME, Known, &[]),
        line("GET", identity::path::TENANTS, Read, &[]),
        line("POST", identity::path::TENANTS, Install, &[]),
        line("GET", identity::path::TENANT, Read, OF_TENANT),
        line("PATCH", identity::path::TENANT, Administer, TENANT_UNDER_TWO_KEYS),
        line("GET", enrolment::path::IDENTITIES, Administer, &[(IdPosition::Cursor("after"), Thing::WorkerIdentity)]),
        line("POST", enrolment::path::IDENTITIES, Administer, UNDER_TWO_KEYS),
        line("DELETE", enrolment::path::IDENTITY, Administer, OF_WORKER_IDENTITY),
        line("POST", enrolment::path::ENROL, Public, &[]),
        line("POST", enrolment::path::RENEW, Work, &[]),
        line("GET", identity::path::KEYS, Administer, &[(IdPosition::Cursor("after"), Thing::Key)]),
        line("POST", identity::path::KEYS, Administer, UNDER_TWO_KEYS),
        line("GET", identity::path::KEY, Administer, OF_KEY),
        line("DELETE", identity::path::KEY, Administer, OF_KEY),
        line("POST", identity::path::KEY_ROTATE, Administer, KEY_UNDER_TWO_KEYS),
        line("GET", identity::path::USERS, Administer, &[(IdPosition::Cursor("after"), Thing::User)]),
        line("POST", identity::path::USERS, Administer, UNDER_TWO_KEYS),
        line("GET", identity::path::USER, Administer, OF_USER),
        line("PATCH", identity::path::USER, Administer, USER_UNDER_TWO_KEYS),
        line("POST", identity::path::USER_PASSWORD, Known, USER_UNDER_TWO_KEYS),
        line("POST", identity::path::USER_INVITE, Administer, USER_UNDER_TWO_KEYS),
        line(
            "GET",
            approvals::path::APPROVALS,
            Read,
            &[(IdPosition::Query("run"), Thing::Run), (IdPosition::Cursor("after"), Thing::Approval)],
        ),
        line("GET", approvals::path::APPROVAL, Read, OF_APPROVAL),
        line("POST", approvals::path::DECISION, Vote, OF_APPROVAL),
        line("POST", approvals::path::VOTE, Vote, OF_APPROVAL),
        line(
            "POST",
            approvals::path::APPROVE,
            Vote,
            &[(IdPosition::Path("run"), Thing::Run), (IdPosition::Body("/approval"), Thing::Approval)],
        ),
        line("GET", changes::path::CHANGES, Administer, &[(IdPosition::Cursor("after"), Thing::Change)]),
        line("GET", changes::path::CHANGE, Administer, OF_CHANGE),
        line("POST", changes::path::DECISION, Administer, OF_CHANGE),
        line("GET", delegations::path::DELEGATIONS, Read, &[(IdPosition::Cursor("after"), Thing::Delegation)]),
        line("POST", delegations::path::DELEGATIONS, Known, UNDER_TWO_KEYS),
        line("GET", delegations::path::DELEGATION, Read, OF_DELEGATION),
        line("DELETE", delegations::path::DELEGATION, Known, OF_DELEGATION),
        line("GET", slack::path::SLACK, Administer, &[]),
        line("PUT", slack::path::SLACK, Administer, UNDER_TWO_KEYS),
        line("DELETE", slack::path::SLACK, Administer, &[]),
        line("GET", slack::path::LINKS, Administer, &[(IdPosition::Cursor("after"), Thing::Person)]),
        line("DELETE", slack::path::LINK, Known, &[(IdPosition::Path("person"), Thing::Person)]),
        line("POST", slack::path::INTERACTIONS, Public, &[(IdPosition::Path("connection"), Thing::SlackAddress)]),
        line("POST", runs::path::RUNS, Operate, &[(IdPosition::Body("/workflow"), Thing::Workflow)]),
        line("GET", runs::path::RUNS, Read, &[(IdPosition::Cursor("after"), Thing::Run)]),
        line("GET", runs::path::RUN, Read, OF_RUN),
        line("GET", runs::path::STEPS, Read, OF_RUN),
        line("GET", runs::path::EVENTS, Read, OF_RUN),
        line("GET", runs::path::ATTEMPTS, Read, OF_RUN),
        line("GET", runs::path::RECEIPTS, Read, OF_RUN),
        line("GET", runs::path::OUTPUT, Read, OF_STEP),
        line("GET", live::path::SSE_OUTPUT, Read, OF_STEP),
        line("GET", policy::path::DECISIONS, Read, OF_RUN),
        line("GET", runs::path::PAYLOAD, Read, OF_PAYLOAD),
        line("GET", audit::path::EVIDENCE, Read, OF_RUN),
        line("GET", audit::path::AUDIT, Read, &[(IdPosition::Query("run"), Thing::Run)]),
        line("GET", audit::path::CHECKPOINT, Read, &[]),
        line("POST", audit::path::ERASURES, Administer, &[]),
        line("GET", audit::path::KEY, Known, &[]),
        line("GET", runs::path::WAITS, Read, &[(IdPosition::Cursor("after"), Thing::Run)]),
        line("POST", bulk::path::PREVIEW, Read, &[]),
        line("POST", bulk::path::BULK, Operate, &[]),
        line("GET", bulk::path::BULK, Read, &[(IdPosition::Cursor("after"), Thing::Job)]),
        line("GET", bulk::path::JOB, Read, OF_JOB),
        line("GET", bulk::path::FAILURES, Read, OF_JOB),
        line("GET", "/metrics", Read, &[]),
        line("GET", operations::path::STATUS, Read, &[]),
        line("GET", operations::path::STATS, Read, &[]),
        line("GET", operations::path::QUEUES, Read, &[]),
        line("GET", operations::path::WORKERS, Read, &[]),
        line("DELETE", operations::path::WORKER, Operate, &[(IdPosition::Path("session"), Thing::Session)]),
        line("POST", operations::path::WORKER_DRAIN, Operate, &[(IdPosition::Path("session"), Thing::Session)]),
        line("POST", operations::path::WORKER_MAINTENANCE, Operate, &[(IdPosition::Path("session"), Thing::Session)]),
        line("DELETE", operations::path::WORKER_MAINTENANCE, Operate, &[(IdPosition::Path("session"), Thing::Session)]),
        line("GET", operations::path::WORKER, Read, &[(IdPosition::Path("session"), Thing::Session)]),
        line("GET", runs::path::WHY, Read, OF_RUN),
        line("GET", live::path::SSE_RUN, Read, OF_RUN),
        line("GET", live::path::SSE_FEED, Read, &[]),
        line("GET", live::path::FEED, Read, &[]),
        line("GET", live::path::WS_RUN, Read, OF_RUN),
        line("GET", live::path::WS_EXECUTION, Read, OF_RUN),
        line("GET", live::path::WS_FEED, Read, &[]),
        line("POST", runs::path::CANCEL, Operate, OF_RUN),
        line("POST", runs::path::PAUSE, Operate, OF_RUN),
        line("POST", runs::path::RESUME, Operate, OF_RUN),
        line("POST", runs::path::RETRY, Operate, OF_RUN),
        line("POST", runs::path::SKIP, Operate, OF_RUN),
        line("POST", runs::path::REASSIGN, Operate, OF_RUN),
        line("POST", runs::path::RESTART, Operate, OF_RUN),
        line("POST", runs::path::ROLLBACK, Operate, OF_RUN),
        line("GET", runs::path::ROLLBACK, Read, OF_RUN),
        line("PATCH", runs::path::LABELS, Operate, OF_RUN),
        line("POST", runs::path::RESOLVE, Operate, OF_STEP),
        line("POST", runs::path::RUN_SIGNALS, Operate, OF_RUN),
        line("POST", runs::path::SIGNALS, Operate, &[]),
        line("POST", executions::path::EXECUTIONS, Operate, &[(IdPosition::Body("/runbook_id"), Thing::Workflow)]),
        line("GET", executions::path::EXECUTION, Read, OF_EXECUTION),
        line("POST", executions::path::APPROVE, Vote, OF_EXECUTION),
        line("POST", executions::path::ROLLBACK, Operate, OF_EXECUTION),
        line("GET", executions::path::EVENTS, Read, OF_EXECUTION),
        line("POST", workflows::path::WORKFLOWS, Define, &[]),
        line("GET", workflows::path::WORKFLOWS, Read, &[(IdPosition::Cursor("after"), Thing::Workflow)]),
        line("PUT", workflows::path::WORKFLOW, Define, OF_WORKFLOW),
        line("GET", workflows::path::WORKFLOW, Read, OF_WORKFLOW),
        line("GET", workflows::path::VERSIONS, Read, OF_WORKFLOW),
        line(
            "GET",
            workflows::path::VERSION,
            Read,
            &[(IdPosition::Path("workflow"), Thing::Workflow), (IdPosition::Path("version"), Thing::Version)],
        ),
        line("POST", workflows::path::DISABLE, Define, OF_WORKFLOW),
        line("POST", workflows::path::ENABLE, Define, OF_WORKFLOW),
        line("POST", workflows::path::VALIDATE, Read, &[]),
        line("POST", workflows::path::PLAN, Read, &[(IdPosition::Body("/workflow"), Thing::Workflow)]),
        line("GET", policy::path::POLICY, Read, &[]),
        line("PATCH", policy::path::POLICY, Administer, UNDER_TWO_KEYS),
        line("GET", policy::path::VERSIONS, Read, &[]),
        line("POST", policy::path::VERSIONS, Administer, &[]),
        line("GET", policy::path::FILES, Read, &[]),
        line("POST", policy::path::EVAL, Define, &[]),
        line("POST", policy::path::REPLAY, Administer, &[]),
        line("POST", policy::path::TESTS, Administer, &[]),
        line("POST", schedules::path::SCHEDULES, Define, &[]),
        line("GET", schedules::path::SCHEDULES, Read, &[]),
        line("GET", schedules::path::SCHEDULE, Read, OF_SCHEDULE),
        line("DELETE", schedules::path::SCHEDULE, Define, OF_SCHEDULE),
        line("POST", schedules::path::PAUSE, Define, OF_SCHEDULE),
        line("POST", schedules::path::RESUME, Define, OF_SCHEDULE),
        line("POST", schedules::path::TRIGGER, Operate, OF_SCHEDULE),
        line("GET", schedules::path::NEXT, Read, OF_SCHEDULE),
        line("POST", webhooks::path::INBOUND, Define, &[]),
        line("GET", webhooks::path::INBOUND, Read, &[]),
        line("POST", webhooks::path::INBOUND_ONE, Public, &[(IdPosition::Path("endpoint"), Thing::Address)]),
        line("GET", webhooks::path::INBOUND_ONE, Read, OF_INBOUND),
        line("PATCH", webhooks::path::INBOUND_ONE, Define, OF_INBOUND),
        line("DELETE", webhooks::path::INBOUND_ONE, Define, OF_INBOUND),
        line("POST", webhooks::path::INBOUND_ROTATE, Define, OF_INBOUND),
        line("GET", webhooks::path::INBOUND_DELIVERIES, Read, OF_INBOUND),
        line("GET", webhooks::path::DEAD_LETTERS, Read, &[(IdPosition::Cursor("before"), Thing::Message)]),
        line(
            "POST",
            webhooks::path::DEAD_LETTERS_REPLAY,
            Operate,
            &[(IdPosition::Body("/message_id"), Thing::Message)],
        ),
        line("POST", webhooks::path::OUTBOUND, Define, &[]),
        line("GET", webhooks::path::OUTBOUND, Read, &[]),
        line("GET", webhooks::path::OUTBOUND_ONE, Read, OF_OUTBOUND),
        line("DELETE", webhooks::path::OUTBOUND_ONE, Define, OF_OUTBOUND),
        line("POST", webhooks::path::OUTBOUND_ROTATE, Define, OF_OUTBOUND),
        line("POST", webhooks::path::OUTBOUND_ENABLE, Define, OF_OUTBOUND),
        line("POST", webhooks::path::OUTBOUND_DISABLE, Define, OF_OUTBOUND),
        line(
            "GET",
            webhooks::path::OUTBOUND_DELIVERIES,
            Read,
            &[(IdPosition::Path("endpoint"), Thing::Outbound), (IdPosition::Cursor("before"), Thing::Message)],
        ),
        line(
            "POST",
            webhooks::path::OUTBOUND_REPLAY,
            Operate,
            &[(IdPosition::Path("endpoint"), Thing::Outbound), (IdPosition::Body("/delivery_id"), Thing::Message)],
        ),
        line("POST", agent::path::REGISTER, Work, &[(IdPosition::Body("/tenant"), Thing::Tenant)]),
        line(
            "POST",
            agent::path::HEARTBEAT,
            Work,
            &[
                (IdPosition::Body("/session"), Thing::Session),
                (IdPosition::Body("/held/0/tenant"), Thing::Tenant),
                (IdPosition::Body("/held/0/run"), Thing::Run),
                (IdPosition::Body("/keeps/0/tenant"), Thing::Tenant),
                (IdPosition::Body("/keeps/0/run"), Thing::Run),
            ],
        ),
        line("POST", agent::path::POLL, Work, SESSION_IN_BODY),
        line("POST", agent::path::COMPLETE, Work, OF_ATTEMPT),
        line("POST", agent::path::EFFECTS, Work, OF_ATTEMPT),
        line("POST", agent::path::OUTCOMES, Work, OF_ATTEMPT),
        line("POST", agent::path::OUTPUT, Work, OF_ATTEMPT),
        line("POST", agent::path::ASSIGNMENTS, Work, OF_ATTEMPT),
        line("POST", agent::path::UNREGISTER, Work, SESSION_IN_BODY),
        // What its frames name stands in the lines above, which they go past.
        line("GET", agent::path::CHANNEL, Work, &[]),
        line("POST", agent::path::BROKER, Work, &[]),
    ]
};

static BY_ROUTE: LazyLock<HashMap<(&str, &str), &Line>> =
    LazyLock::new(|| MATRIX.iter().map(|line| ((line.method, line.path), line)).collect());

/// The line of a route. `HEAD` is answered where `GET` is.
pub fn find(method: &str, path: &str) -> Option<&'static Line> {
    let method = if method == "HEAD" { "GET" } else { method };
    BY_ROUTE.get(&(method, path)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_one_route_and_names_its_places() {
        assert_eq!(BY_ROUTE.len(), MATRIX.len(), "a route stands there twice");
        for line in MATRIX {
            let named: Vec<_> = line.path.split('{').skip(1).map(|rest| rest.split('}').next().unwrap()).collect();
            let listed: Vec<_> = line
                .ids
                .iter()
                .filter_map(|(place, _)| match place {
                    IdPosition::Path(name) => Some(*name),
                    _ => None,
                })
                .collect();
            assert_eq!(named, listed, "{} {}: every {{name}} of the route is an id position", line.method, line.path);
            let public = line.needs == Permission::Public;
            let open = line.ids.iter().all(|(_, thing)| matches!(thing, Thing::Address | Thing::SlackAddress));
            assert!(!public || open, "{}: whose ids?", line.path);
        }
    }
}
