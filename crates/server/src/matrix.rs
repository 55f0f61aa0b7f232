//! The permission matrix: every route, what it needs, and where a request to it may name something that has an owner.
//!
//! The guard looks a request up here by its method and its route pattern and refuses what it does not find. The tests
//! walk the same table: every route with every role, and every id position with another tenant's id. Whoever adds a
//! route adds its line.

use std::collections::HashMap;
use std::sync::LazyLock;

use interlock_core::identity::Permission;
use interlock_protocol::{agent, live, runs, workflows};

/// Where a request can name something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A `{name}` in the route.
    Path(&'static str),
    Query(&'static str),
    /// A field of the JSON body, by its JSON pointer.
    Body(&'static str),
    /// A place in a list that goes on.
    Cursor(&'static str),
    Header(&'static str),
    /// The first frame of a WebSocket.
    Frame(&'static str),
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
    /// The step of the run in the same request: it has no owner but the run's.
    Step,
}

/// One route.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    pub method: &'static str,
    /// As axum matches it.
    pub path: &'static str,
    pub needs: Permission,
    pub ids: &'static [(Place, Thing)],
}

const fn line(method: &'static str, path: &'static str, needs: Permission, ids: &'static [(Place, Thing)]) -> Line {
    Line { method, path, needs, ids }
}

const OF_RUN: &[(Place, Thing)] = &[(Place::Path("run"), Thing::Run)];
const OF_WORKFLOW: &[(Place, Thing)] = &[(Place::Path("workflow"), Thing::Workflow)];
const OF_ATTEMPT: &[(Place, Thing)] = &[
    (Place::Path("session"), Thing::Session),
    (Place::Body("/tenant"), Thing::Tenant),
    (Place::Body("/run"), Thing::Run),
];
const SESSION_IN_BODY: &[(Place, Thing)] = &[(Place::Body("/session"), Thing::Session)];

pub static MATRIX: &[Line] = {
    use Permission::{Define, Operate, Public, Read, Work};
    &[
        line("GET", "/healthz", Public, &[]),
        line("GET", "/readyz", Public, &[]),
        line("GET", workflows::path::SCHEMA, Public, &[]),
        line("POST", runs::path::RUNS, Operate, &[(Place::Body("/workflow"), Thing::Workflow)]),
        line("GET", runs::path::RUNS, Read, &[(Place::Cursor("after"), Thing::Run)]),
        line("GET", runs::path::RUN, Read, OF_RUN),
        line("GET", runs::path::STEPS, Read, OF_RUN),
        line("GET", runs::path::EVENTS, Read, OF_RUN),
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
        line("POST", runs::path::RESTART, Operate, OF_RUN),
        line("POST", runs::path::ROLLBACK, Operate, OF_RUN),
        line(
            "POST",
            runs::path::RESOLVE,
            Operate,
            &[(Place::Path("run"), Thing::Run), (Place::Path("step"), Thing::Step)],
        ),
        line("POST", runs::path::RUN_SIGNALS, Operate, OF_RUN),
        line("POST", runs::path::SIGNALS, Operate, &[]),
        line("POST", workflows::path::WORKFLOWS, Define, &[]),
        line("GET", workflows::path::WORKFLOWS, Read, &[(Place::Cursor("after"), Thing::Workflow)]),
        line("PUT", workflows::path::WORKFLOW, Define, OF_WORKFLOW),
        line("GET", workflows::path::WORKFLOW, Read, OF_WORKFLOW),
        line("GET", workflows::path::VERSIONS, Read, OF_WORKFLOW),
        line(
            "GET",
            workflows::path::VERSION,
            Read,
            &[(Place::Path("workflow"), Thing::Workflow), (Place::Path("version"), Thing::Version)],
        ),
        line("POST", workflows::path::DISABLE, Define, OF_WORKFLOW),
        line("POST", workflows::path::ENABLE, Define, OF_WORKFLOW),
        line("POST", workflows::path::VALIDATE, Read, &[]),
        line("POST", agent::path::REGISTER, Work, &[(Place::Body("/tenant"), Thing::Tenant)]),
        line(
            "POST",
            agent::path::HEARTBEAT,
            Work,
            &[
                (Place::Body("/session"), Thing::Session),
                (Place::Body("/held/0/tenant"), Thing::Tenant),
                (Place::Body("/held/0/run"), Thing::Run),
            ],
        ),
        line("POST", agent::path::POLL, Work, SESSION_IN_BODY),
        line("POST", agent::path::COMPLETE, Work, OF_ATTEMPT),
        line("POST", agent::path::EFFECTS, Work, OF_ATTEMPT),
        line("POST", agent::path::OUTCOMES, Work, OF_ATTEMPT),
        line("POST", agent::path::UNREGISTER, Work, SESSION_IN_BODY),
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
                    Place::Path(name) => Some(*name),
                    _ => None,
                })
                .collect();
            assert_eq!(named, listed, "{} {}: every {{name}} of the route is an id position", line.method, line.path);
            assert!(line.needs != Permission::Public || line.ids.is_empty(), "{}: whose ids?", line.path);
        }
    }
}
