//! The API's own description: OpenAPI 3.1, generated from the handlers and the wire types.
//!
//! Handlers say what they take and what a success looks like; [`document`] adds what is the same everywhere: who may
//! ask ([`BEARER`]), and how requests of this shape can be refused ([`refusals`]). A copy of it stands in
//! `docs/reference/openapi.json`; that is what the server has inside and serves at `/openapi.json`, with a page for people
//! at `/docs`.

mod bounds;
pub mod codes;
mod examples;
mod named;
mod page;
pub(crate) mod queries;
mod refusals;
mod requests;

use std::sync::LazyLock;

use axum::Router;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use axum::routing::get;
use interlock_core::ids::ChangeId;
use interlock_core::tenant::identity::Permission;
use interlock_protocol::changes::CHANGE_HEADER;
use serde_json::Value;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, Info, License, OpenApi, PathItem, Ref, RefOr, Required, Schema, SecurityRequirement, Tag,
};
use utoipa::{Number, ToSchema as _};

pub(crate) use bounds::query_bytes_max;

use crate::embedded::Embedded;
use crate::matrix::{self, IdPosition, Thing};
use crate::parameters::BOUNDS;
use crate::routes;
use crate::state::AppState;

/// The name under which the description speaks of the token.
const BEARER: &str = "bearer";

const TAGS: &[(&str, &str)] = &[
    ("runs", "Start runs, look at them, direct them."),
    ("executions", "Runs as sessions of a runbook: tickets, steps by number, the states of that surface."),
    ("operations", "How everything stands: workers, queues, and all of it at one glance."),
    ("live", "Events as they happen: WebSocket, server-sent events, polling."),
    ("workflows", "Apply workflow files, look at what is there."),
    ("bulk", "One action on many runs: look first, then act on exactly what was seen."),
    ("signals", "Messages that wake waiting runs, and the waits themselves."),
    ("approvals", "The tenant's approvals, and people's votes on them."),
    ("changes", "Changes of the policy or of who has access that a second admin must agree to."),
    ("delegations", "A person's right to decide on approvals, delegated to another person for a time."),
    ("slack", "Approvals in Slack: the connection, and which person a Slack user is."),
    ("policy", "The rules that actions are held against, and what they have decided."),
    ("audit", "What has happened, in a tamper-evident log, and the evidence of single runs."),
    ("auth", "Signing in and out, and tokens."),
    ("tenants", "Tenants: the isolation boundary that owns all other things."),
    ("keys", "API keys of the tenant."),
    ("worker identities", "Workers that enrol by a one-time token, and have certificates from then on."),
    ("users", "People of the tenant."),
    ("schedules", "Cron schedules that start workflows."),
    ("webhooks", "Inbound webhook endpoints, which start workflows."),
    ("webhook-endpoints", "Outbound webhook endpoints, to which events are sent."),
    ("dead-letters", "Messages whose delivery was given up."),
    ("agent", "The calls of workers. Every one of them is safe to repeat."),
    ("health", "Health checks and metrics."),
];

const ABOUT: &str = "Durable execution with governance. JSON in, JSON out. Instants are Unix milliseconds, spans are \
    milliseconds, ids carry a prefix (`run_…`). Limits of texts count bytes of UTF-8, so \
    a text may have fewer characters than its `maxLength` and be refused. Every refusal is a problem document (RFC 9457) \
    with a `code` for programs; those that an operation answers with stand with each status (`x-codes`).";

/// The description of the whole API.
pub fn document() -> OpenApi {
    let (mut document, open) = routes::described();
    for (route, operation) in routed(&mut document) {
        declare_change(operation, route);
        refusals::add(operation, route, refusals::Kind::Guarded);
        operation.security.get_or_insert_with(|| vec![SecurityRequirement::new::<_, [&str; 0], _>(BEARER, [])]);
    }
    declare_open(&mut document);
    let mut open = open;
    for (route, operation) in routed(&mut open) {
        refusals::add(operation, route, refusals::Kind::Open);
        operation.security = Some(vec![]);
    }
    document.merge(open);
    for operation in operations(&mut document) {
        name(operation);
        bound(operation);
    }
    let mut info = Info::new("Interlock", env!("CARGO_PKG_VERSION"));
    info.description = Some(ABOUT.to_owned());
    info.license = Some(License::new("Apache-2.0"));
    document.info = info;
    let tag = |(name, about): &(&str, &str)| {
        let mut tag = Tag::new(*name);
        tag.description = Some((*about).to_owned());
        tag
    };
    document.tags = Some(TAGS.iter().map(tag).collect());
    let mut components = document.components.take().unwrap_or_else(|| ComponentsBuilder::new().build());
    refusals::describe(&mut components);
    components.add_security_scheme(BEARER, SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    document.components = Some(components);
    document
}

/// Signing in needs no token: among the guarded routes, those that the permission matrix makes public ask for none.
fn declare_open(document: &mut OpenApi) {
    for ((method, path), operation) in routed(document) {
        if matrix::find(method, path).is_some_and(|line| line.needs == Permission::Public) {
            operation.security = Some(vec![]);
        }
    }
}

/// The header by which a request names the change that it carries out, where the permission matrix has it.
fn declare_change(operation: &mut Operation, (method, path): (&str, &str)) {
    let named = (IdPosition::Header(CHANGE_HEADER), Thing::Change);
    let takes_it = matrix::find(method, path).is_some_and(|line| line.ids.contains(&named));
    if !takes_it {
        return;
    }
    let about = "The change that this request carries out, once a second admin has agreed to it.";
    let parameter = ParameterBuilder::new()
        .name(CHANGE_HEADER)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(about))
        .schema(Some(Ref::from_schema_name(ChangeId::name().into_owned())));
    operation.parameters.get_or_insert_default().push(RefOr::T(parameter.build()));
}

/// `start` of the runs is `runs_start`: handlers are named by their verb alone.
fn name(operation: &mut Operation) {
    let noun = operation.tags.as_ref().and_then(|tags| tags.first()).cloned().unwrap_or_default();
    operation.operation_id = operation.operation_id.take().map(|verb| format!("{noun}_{verb}"));
}

/// Says of the numbers of a query what is checked of them.
fn bound(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        let RefOr::T(parameter) = parameter else { continue };
        let bounds = BOUNDS.iter().find(|(name, ..)| *name == parameter.name);
        if let (Some((_, least, greatest)), Some(RefOr::T(Schema::Object(object)))) = (bounds, &mut parameter.schema) {
            object.minimum = Some(Number::UInt(*least));
            object.maximum = Some(Number::UInt(*greatest));
        }
    }
}

fn operations(document: &mut OpenApi) -> impl Iterator<Item = &mut Operation> {
    routed(document).map(|(_, operation)| operation)
}

/// The operations with their methods and paths.
fn routed(document: &mut OpenApi) -> impl Iterator<Item = ((&'static str, &str), &mut Operation)> {
    document.paths.paths.iter_mut().flat_map(|(path, item)| {
        let PathItem { get, put, post, delete, patch, .. } = item;
        let methods = [("GET", get), ("PUT", put), ("POST", post), ("DELETE", delete), ("PATCH", patch)];
        let path = path.as_str();
        methods.into_iter().filter_map(move |(method, operation)| Some(((method, path), operation.as_mut()?)))
    })
}

/// The description as text, made once, by the tests alone: a server serves the copy of it that it was built with.
pub fn text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let mut value = serde_json::to_value(document()).unwrap_or_default();
        loosen(&mut value);
        requests::describe(&mut value);
        named::describe(&mut value);
        requests::close_choices(&mut value);
        bounds::describe(&mut value);
        examples::describe(&mut value);
        format!("{value:#}")
    });
    &TEXT
}

/// The copy in the reference, which the tests of the routes hold against [`text`]. Whoever makes the description needs
/// all routes for it: with them, the unit tests would take more than a minute longer to build.
#[cfg(test)]
fn copy() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/openapi.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// An optional payload is described as one of "any value" and "null", which null itself would be twice.
fn loosen(node: &mut Value) {
    match node {
        Value::Object(map) => {
            map.values_mut().for_each(loosen);
            let optional = map.get("oneOf").and_then(Value::as_array).is_some_and(|options| {
                options.iter().any(|option| option.get("type").and_then(Value::as_str) == Some("null"))
            });
            if optional && let Some(options) = map.remove("oneOf") {
                map.insert("anyOf".to_owned(), options);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(loosen),
        _ => {}
    }
}

/// Where the description and its page are served. They describe the API and are no part of it.
pub fn routes() -> Router<AppState> {
    Router::new()
        .route("/openapi.json", get(serve))
        .route("/docs", get(page::html))
        .route("/docs/page.css", get(page::css))
        .route("/docs/page.js", get(page::js))
}

/// The copy in the reference, which the tests hold to be what [`text`] makes.
static COPY: Embedded = Embedded::new(include_bytes!(concat!(env!("OUT_DIR"), "/openapi.json.gz")));

async fn serve(headers: HeaderMap) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")], COPY.answer(&headers))
}
