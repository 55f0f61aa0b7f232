//! How requests can be refused. `docs/reference/errors.md` is the one list of codes: it is read here, so that what the
//! description promises and what the page says cannot differ.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use interlock_protocol::problem::{PROBLEM_JSON, Problem};
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::schema::{AllOfBuilder, Components, ObjectBuilder, Ref};
use utoipa::openapi::{ContentBuilder, RefOr, Response, ResponseBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

const ERRORS: &str = include_str!("../../../../docs/reference/errors.md");

/// The codes of each status, with when they come.
type Codes = BTreeMap<u16, BTreeMap<&'static str, &'static str>>;

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

/// Who may ask, as far as refusals are concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Guarded,
    /// Open to everybody.
    Open,
}

/// Adds the refusals that follow from an operation's shape to those that it names itself.
pub fn add(operation: &mut Operation, kind: Kind) {
    let parameters = operation.parameters.iter().flatten().filter_map(|parameter| match parameter {
        RefOr::T(parameter) => Some(parameter),
        RefOr::Ref(_) => None,
    });
    let (mut in_path, mut in_query, mut conditional) = (false, false, false);
    for parameter in parameters {
        // A version in the query is looked up like one in the path.
        in_path |= matches!(parameter.parameter_in, ParameterIn::Path) || parameter.name == "version";
        in_query |= matches!(parameter.parameter_in, ParameterIn::Query);
        conditional |= parameter.name.eq_ignore_ascii_case("if-match");
    }
    let is_agent = operation.tags.iter().flatten().any(|tag| tag == "agent");
    let mut statuses: Vec<u16> = Vec::new();
    if kind == Kind::Guarded {
        statuses.extend([400, 401, 403, 429, 503]);
    }
    if in_path {
        statuses.push(404);
    }
    if in_query {
        statuses.push(422);
    }
    if operation.request_body.is_some() {
        statuses.extend([400, 404, 408, 409, 413, 415, 422]);
    }
    if conditional {
        statuses.push(412);
    }
    if is_agent {
        statuses.push(410);
    }
    let responses = &mut operation.responses.responses;
    statuses.extend(responses.keys().filter_map(|status| status.parse::<u16>().ok()).filter(|status| *status >= 400));
    for status in statuses.into_iter().filter(|status| CODES.contains_key(status)) {
        responses.insert(status.to_string(), RefOr::Ref(Ref::from_response_name(component(status))));
    }
}

fn component(status: u16) -> String {
    format!("Problem{status}")
}

/// Adds the refusals themselves: one response a status, whose `code` is one of the list.
pub fn describe(components: &mut Components) {
    components.schemas.insert(Problem::name().into_owned(), Problem::schema());
    for (status, codes) in &*CODES {
        components.schemas.insert(component(*status), RefOr::T(schema(codes)));
        components.responses.insert(component(*status), RefOr::T(response(*status, codes)));
    }
}

/// A problem whose code is one of these.
fn schema(codes: &BTreeMap<&'static str, &'static str>) -> Schema {
    let code = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(codes.keys().copied()));
    let schema = AllOfBuilder::new()
        .item(Ref::from_schema_name(Problem::name().into_owned()))
        .item(ObjectBuilder::new().schema_type(Type::Object).property("code", code.build()))
        .build();
    Schema::AllOf(schema)
}

fn response(status: u16, codes: &BTreeMap<&'static str, &'static str>) -> Response {
    let described: Vec<_> = codes.iter().map(|(code, when)| format!("- `{code}`: {when}")).collect();
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(component(status)))).build();
    ResponseBuilder::new().description(described.join("\n")).content(PROBLEM_JSON, content).build()
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
