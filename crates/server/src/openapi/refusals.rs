//! How requests can be refused. `docs/reference/errors.md` is the one list of codes: it is read here, so that what the
//! description promises and what the page says cannot differ.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::http::StatusCode;
use interlock_protocol::problem::{PROBLEM_JSON, Problem};
use serde_json::json;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::schema::{AllOfBuilder, Components, ObjectBuilder, Ref};
use utoipa::openapi::{ContentBuilder, RefOr, Response, ResponseBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::codes;
use crate::limits;

const ERRORS: &str = include_str!("../../../../docs/reference/errors.md");

/// Codes, with when they come.
type CodesOfStatus = BTreeMap<&'static str, &'static str>;
type Codes = BTreeMap<u16, CodesOfStatus>;

/// Rows like ``| `RUN_NOT_FOUND` | 404 | no such run in this tenant |``. Those without a status are of steps.
static CODES: LazyLock<Codes> = LazyLock::new(|| {
    let mut codes = Codes::new();
    for row in ERRORS.lines().filter_map(|line| line.strip_prefix("| `")) {
        // A description may begin or end with a word in backquotes, which belong to it.
        let mut cells = row.split(" | ").map(|cell| cell.trim_matches([' ', '|']));
        let (Some(code), Some(status), Some(when)) = (cells.next(), cells.next(), cells.next()) else { continue };
        if let Ok(status) = status.parse() {
            codes.entry(status).or_default().insert(code.trim_matches('`'), when);
        }
    }
    codes
});

/// The one refusal without a problem: the connection answers it, before there is a request.
const HEAD_TOO_LONG: &str = "HeadTooLong";

/// Who may ask, as far as refusals are concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Guarded,
    /// Needs no credential.
    Open,
}

/// Adds the refusals that follow from an operation's shape to those that it names itself, with the codes that are its own.
pub fn add(operation: &mut Operation, (method, path): (&str, &str), kind: Kind) {
    let parameters = operation.parameters.iter().flatten().filter_map(|parameter| match parameter {
        RefOr::T(parameter) => Some(parameter),
        RefOr::Ref(_) => None,
    });
    let (mut in_path, mut in_query) = (false, false);
    for parameter in parameters {
        // A version in the query is looked up like one in the path.
        in_path |= matches!(parameter.parameter_in, ParameterIn::Path) || parameter.name == "version";
        in_query |= matches!(parameter.parameter_in, ParameterIn::Query);
    }
    let mut statuses: Vec<u16> = Vec::new();
    if kind == Kind::Guarded {
        statuses.extend([400, 401, 403, 429, 500, 503]);
    }
    if in_path {
        statuses.push(404);
    }
    if in_query {
        statuses.push(422);
    }
    if operation.request_body.is_some() {
        statuses.extend([400, 404, 408, 413, 415, 422]);
    }
    let responses = &mut operation.responses.responses;
    statuses.extend(responses.keys().filter_map(|status| status.parse::<u16>().ok()).filter(|status| *status >= 400));
    let own = codes::of(method, path);
    statuses.extend(
        CODES.iter().filter(|(_, codes)| own.iter().any(|code| codes.contains_key(code))).map(|(status, _)| *status),
    );
    for status in statuses {
        let Some(all) = CODES.get(&status) else { continue };
        let of_all = among(all, codes::OF_ALL);
        let mut possible = among(all, own);
        let answer = if !possible.is_empty() {
            possible.extend(of_all);
            RefOr::T(response(status, &possible))
        } else if of_all.is_empty() {
            // A handler names the status, and `codes.txt` no code of it: a test finds that.
            continue;
        } else {
            RefOr::Ref(Ref::from_response_name(component_of_all(status)))
        };
        responses.insert(status.to_string(), answer);
    }
    let too_long = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.as_str().to_owned();
    responses.insert(too_long, RefOr::Ref(Ref::from_response_name(HEAD_TOO_LONG)));
}

/// Those of a status's codes that are in a list.
fn among(all: &CodesOfStatus, list: &[&str]) -> CodesOfStatus {
    all.iter().filter(|(code, _)| list.contains(code)).map(|(code, when)| (*code, *when)).collect()
}

/// The schema of a problem with this status.
fn component(status: u16) -> String {
    format!("Problem{status}")
}

/// The response of an operation that has no codes of its own for the status.
fn component_of_all(status: u16) -> String {
    format!("Refused{status}")
}

/// Adds the refusals themselves: one schema a status, whose `code` is one of the list, and the answers that operations share.
pub fn describe(components: &mut Components) {
    components.schemas.insert(Problem::name().into_owned(), Problem::schema());
    let described = format!(
        "The head of the request, its address and headers, is longer than {} KiB. There is no body, and the connection is closed.",
        limits::HEAD_BYTES_MAX >> 10
    );
    components.responses.insert(HEAD_TOO_LONG.to_owned(), RefOr::T(Response::new(described)));
    for (status, listed) in &*CODES {
        components.schemas.insert(component(*status), RefOr::T(schema(listed)));
        let of_all = among(listed, codes::OF_ALL);
        if !of_all.is_empty() {
            components.responses.insert(component_of_all(*status), RefOr::T(response(*status, &of_all)));
        }
    }
}

/// A problem whose code is one of these.
fn schema(codes: &CodesOfStatus) -> Schema {
    let code = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(codes.keys().copied()));
    let schema = AllOfBuilder::new()
        .item(Ref::from_schema_name(Problem::name().into_owned()))
        .item(ObjectBuilder::new().schema_type(Type::Object).property("code", code.build()))
        .build();
    Schema::AllOf(schema)
}

fn response(status: u16, codes: &CodesOfStatus) -> Response {
    let described: Vec<_> = codes.iter().map(|(code, when)| format!("- `{code}`: {when}")).collect();
    let first = codes.iter().next().map(|(code, when)| json!(Problem::new(status, code, *when)));
    let schema = Ref::from_schema_name(component(status));
    let content = ContentBuilder::new().schema(Some(schema)).example(first).build();
    let listed: Vec<_> = codes.keys().copied().collect();
    let extensions = ExtensionsBuilder::new().add("x-codes", listed).build();
    ResponseBuilder::new()
        .description(described.join("\n"))
        .content(PROBLEM_JSON, content)
        .extensions(Some(extensions))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read() {
        assert!(CODES[&404].contains_key("RUN_NOT_FOUND"));
        assert!(CODES[&409].contains_key("IDEMPOTENCY_EXPIRED"));
        assert!(!CODES.values().any(|codes| codes.contains_key("STEP_TIMEOUT")), "codes of steps are no refusals");
        assert!(CODES.keys().all(|status| (400..600).contains(status)));
    }
}
