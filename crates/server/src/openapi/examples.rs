//! An example for every request and every answer, made from its schema: what must be there, with values that its names suggest.

use serde_json::{Map, Value, json};

const SCHEMAS: &str = "#/components/schemas/";
/// Deeper than any request is nested, and an end to schemas that hold themselves.
const DEPTH_MAX: usize = 12;
/// 2026-09-21, for every instant.
const INSTANT_MS: i64 = 1_790_000_000_000;

/// Texts by the name of their field, or of their schema and their field where the field alone does not tell.
const TEXTS: &[(&str, &str)] = &[
    ("ApprovalTask.status", "pending"),
    ("BrokerTicket.channel", "worker-1"),
    ("ChangeView.state", "requested"),
    ("CreateKey.name", "deploy-bot"),
    ("CreateTenant.name", "acme"),
    ("CreateWorkerIdentity.name", "worker-1"),
    ("DecisionView.action", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
    ("Enrol.token", "ile_one-time-token"),
    ("Envelope.event", "session.completed"),
    ("EventView.type", "session.completed"),
    ("Execution.status", "executing"),
    ("ExecutionStatus.status", "executing"),
    ("ExecutionStep.name", "restart"),
    ("ExecutionStep.status", "completed"),
    ("Health.status", "ok"),
    ("InboundView.name", "github"),
    ("KeyView.name", "deploy-bot"),
    ("NewInbound.name", "github"),
    ("NewSchedule.name", "nightly"),
    ("OutboundDelivery.event", "session.completed"),
    ("PolicyDifference.step", "0"),
    ("PolicyTest.name", "test_small_refunds_need_nobody"),
    ("Problem.type", "urn:interlock:problem:RUN_NOT_FOUND"),
    ("ScheduleView.description", "At 03:00, on Monday"),
    ("ScheduleView.name", "nightly"),
    ("StatusProblem.text", "2 runs wait for a person"),
    ("StepApproved.status", "executing"),
    ("TenantView.name", "acme"),
    ("Trigger.type", "api"),
    ("Upcoming.name", "nightly"),
    ("WaitView.type", "carrier.picked_up"),
    ("WorkerIdentityView.name", "worker-1"),
    ("active_hash", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
    ("admin_key", "ilk_the-text-of-the-key"),
    ("after", "needs_approval"),
    ("algorithm", "Ed25519"),
    ("answers", "interlock:answers:worker-1"),
    ("approved_by", "grace"),
    ("approver", "grace"),
    ("argv", "systemctl"),
    ("asked_by", "ada"),
    ("asks", "sre"),
    ("authorities", "-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n"),
    ("before", "allow"),
    ("begins", "ilk_4f2a"),
    ("bundle", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
    ("by", "payments.refund"),
    ("calls", "interlock:calls"),
    ("candidates", "restart-database"),
    ("capabilities", "docker"),
    ("certificate", "-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n"),
    ("channel", "C0123456789"),
    ("checkpoint", "interlock.example.org/ten_019a8c2e4b7a7f10a1b2c3d4e5f60718/1\n7\n…\n"),
    ("client", "deploy-bot"),
    ("code", "RUN_NOT_FOUND"),
    ("created_by", "ada"),
    ("credential_id", "db-primary"),
    ("credentials", "db-primary"),
    ("cron", "0 3 * * 1"),
    ("data", "3 of 7 files copied\n"),
    ("delegate", "grace"),
    ("delegator", "ada"),
    ("delivery", "github:72d3162e-cc78-11e3-81ab-4c9367dc0958"),
    ("description", "Orders of the web shop"),
    ("destination", "webhook:whk_019a8c2e4b7a7f10a1b2c3d4e5f60718"),
    ("detail", "run run_019a8c2e4b7a7f10a1b2c3d4e5f60718 does not exist"),
    ("digest", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
    ("does", "calls payments.capture"),
    ("email", "ada@example.org"),
    ("environment", "production"),
    ("evaluator", "rego"),
    ("event", "pull_request"),
    ("excluded", "ada"),
    ("expected", "running"),
    ("explained", "Nobody is asked: the refund is below 100."),
    ("failed", "filter"),
    ("field", "amount"),
    ("file", "order.yaml"),
    ("flag", "worker_broker.enabled"),
    ("from", "pay"),
    ("group", "sre"),
    ("handler", "payments.capture"),
    ("hash", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
    ("hashes", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
    ("id", "7"),
    ("initiator", "system"),
    ("interactions_url", "https://interlock.example.org/api/v1/slack/interactions/ten_019a8c2e"),
    ("key", "INC-2041"),
    ("key_id", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
    ("kind", "task"),
    ("last_event_id", "7"),
    ("link", "https://interlock.example.org/invite?token=the-text-of-the-token"),
    ("linked_by", "ada"),
    ("local", "2026-09-21T15:33:20+02:00"),
    ("maker", "ada"),
    ("message", "Restart the primary database?"),
    ("message_id", "msg_019a8c2e4b7a7f10a1b2c3d4e5f60718"),
    ("method", "POST"),
    ("name", "ada"),
    ("next_since", "7"),
    ("note", "applied by hand"),
    ("on", "github: pull_request"),
    ("one_with", "sre"),
    ("operation", "github.merge_pull_request"),
    ("origin", "interlock.example.org/ten_019a8c2e4b7a7f10a1b2c3d4e5f60718/1"),
    ("outcome", "passed"),
    ("password", "correct horse battery"),
    ("path", "workflow.rego"),
    ("person", "ada"),
    ("plan_hash", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
    ("problem", "the store does not answer"),
    ("profile", "container"),
    ("public_key", "-----BEGIN PUBLIC KEY-----\n…\n-----END PUBLIC KEY-----\n"),
    ("queue", "default"),
    ("reason", "the region is being evacuated"),
    ("rejected_by", "grace"),
    ("request", "-----BEGIN CERTIFICATE REQUEST-----\n…\n-----END CERTIFICATE REQUEST-----\n"),
    ("runbook_id", "restart-database"),
    ("secret", "whsec_the-text-of-the-secret"),
    ("segment", "dmz"),
    ("severity", "warning"),
    ("sha256", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
    ("shown_once", "key"),
    ("signal", "carrier.picked_up"),
    ("source", "name: order\nsteps:\n  - { id: pay, task: payments.capture }\n"),
    ("source_hash", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
    ("starter", "ada"),
    ("state", "requested"),
    ("status", "executing"),
    ("step", "pay"),
    ("subject", "order-41931"),
    ("summary", "grace approved `ok`."),
    ("takes", "greet"),
    ("team", "payments"),
    ("template", "stripe:charge:{order}"),
    ("tenant_name", "acme"),
    ("text", "3 of 7 files copied\n"),
    ("ticket", "the-sealed-ticket"),
    ("ticket_id", "INC-2041"),
    ("tier", "high"),
    ("timestamp", "2026-09-21T13:33:20.000Z"),
    ("timezone", "Europe/Berlin"),
    ("title", "Run not found"),
    ("token", "the-text-of-the-token"),
    ("type", "carrier.picked_up"),
    ("url", "https://desk.example.org/hooks/interlock"),
    ("user", "U0123456789"),
    ("utc", "2026-09-21T13:33:20Z"),
    ("variable", "PATH"),
    ("verdict", "allow"),
    ("verifier_key", "interlock.example.org+9f86d081+AQ…"),
    ("why", "it changed nothing"),
    ("worker", "host-1:4711"),
    ("workflow", "order"),
    ("workspace", "default"),
    ("would", "run"),
];

/// What a text without a line above is shown as; a test finds it.
const UNKNOWN: &str = "…";

/// Instants that are named by what lies on the other side of them.
const BOUNDARIES: &[&str] = &["before", "created_before", "created_from", "from", "since", "until"];

/// Bodies that are no JSON, or any.
const PLAIN: &[(&str, &str)] = &[
    ("application/json", "{\"action\": \"opened\"}"),
    ("application/x-www-form-urlencoded", "payload=%7B%22type%22%3A%22block_actions%22%7D"),
    ("text/html", "<!doctype html><title>Evidence</title>"),
    ("text/plain", "3 of 7 files copied\n"),
];

/// Fields that are shown although an object may be without them: they are what people come for.
const SHOWN: &[&str] = &["inputs", "labels", "reason", "subject"];

pub fn describe(document: &mut Value) {
    let schemas = document["components"]["schemas"].as_object().cloned().unwrap_or_default();
    let contents = document["paths"].as_object_mut().into_iter().flat_map(Map::values_mut).flat_map(|item| {
        let operations = item.as_object_mut().into_iter().flat_map(Map::values_mut).filter(|part| part.is_object());
        operations.flat_map(|operation| {
            let Some(operation) = operation.as_object_mut() else { return Vec::new() };
            let (mut bodies, mut answers) = (Vec::new(), Vec::new());
            for (word, part) in operation.iter_mut() {
                match word.as_str() {
                    "requestBody" => bodies.extend(part.get_mut("content")),
                    "responses" => {
                        let all = part.as_object_mut().into_iter().flat_map(Map::values_mut);
                        answers.extend(all.filter_map(|answer| answer.get_mut("content")));
                    }
                    _ => {}
                }
            }
            bodies.into_iter().chain(answers).collect()
        })
    });
    for content in contents {
        add(content, &schemas);
    }
    let shared = document["components"]["responses"].as_object_mut();
    let shared = shared.into_iter().flat_map(Map::values_mut).filter_map(|answer| answer.get_mut("content"));
    for content in shared {
        add(content, &schemas);
    }
}

/// Adds an example to each form of a body that has none.
fn add(content: &mut Value, schemas: &Map<String, Value>) {
    for (media_type, form) in content.as_object_mut().into_iter().flatten() {
        let described = form.get("example").is_some() || form.get("examples").is_some();
        let plain = PLAIN.iter().find(|(known, _)| known == media_type).map(|(_, text)| *text);
        if let Some(schema) = form.get("schema").filter(|_| !described) {
            let nameless = FieldName { owner: "", field: "" };
            let plain = plain.filter(|_| schema["type"] == "string");
            form["example"] = plain.map_or_else(|| example(nameless, schema, schemas, 0), |plain| json!(plain));
        }
    }
}

/// A field, and the named schema that it is of.
#[derive(Clone, Copy)]
struct FieldName<'a> {
    owner: &'a str,
    field: &'a str,
}

fn example(name: FieldName<'_>, schema: &Value, schemas: &Map<String, Value>, depth: usize) -> Value {
    if depth > DEPTH_MAX {
        return Value::Null;
    }
    let FieldName { owner, field } = name;
    let inner = |field: &str, schema: &Value| example(FieldName { owner, field }, schema, schemas, depth + 1);
    if let Some(named) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix(SCHEMAS)) {
        let name = FieldName { owner: named, field };
        return schemas.get(named).map_or(Value::Null, |schema| example(name, schema, schemas, depth + 1));
    }
    for word in ["example", "default", "const"] {
        if let Some(value) = schema.get(word).filter(|value| !value.is_null()) {
            return value.clone();
        }
    }
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    if let Some(parts) = schema["allOf"].as_array() {
        let mut whole = Map::new();
        for part in parts {
            whole.extend(inner(field, part).as_object().cloned().unwrap_or_default());
        }
        return Value::Object(whole);
    }
    let choice = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
    if let Some(option) = choice.and_then(|options| options.iter().find(|option| option["type"] != "null")) {
        return inner(field, option);
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().find(|kind| **kind != "null").and_then(Value::as_str),
        kind => kind.as_str(),
    };
    match kind {
        Some("object") => object(schema, &inner),
        Some("array") => {
            let least = schema["minItems"].as_u64().unwrap_or(1).max(1);
            Value::Array((0..least).map(|_| inner(singular(field), &schema["items"])).collect())
        }
        Some("string") => Value::String(text(name, schema)),
        Some("integer") => json!(number(field, schema)),
        Some("number") => json!(0.5),
        Some("boolean") => json!(true),
        // Any value.
        _ => json!({ "order": 41931 }),
    }
}

/// All that an object must have, and what is [`SHOWN`]; something of what it may have where that is nothing.
fn object(schema: &Value, inner: &dyn Fn(&str, &Value) -> Value) -> Value {
    let fields = schema["properties"].as_object();
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let all = fields.into_iter().flatten();
    let is_shown = |name: &str| required.contains(&name) || SHOWN.contains(&name);
    let mut shown: Vec<_> = all.filter(|(name, _)| is_shown(name)).collect();
    if shown.is_empty() {
        shown.extend(fields.into_iter().flatten().take(1));
    }
    let mut object: Map<String, Value> =
        shown.into_iter().map(|(name, field)| (name.clone(), inner(name, field))).collect();
    if let Some(more) = schema.get("additionalProperties").filter(|more| more.is_object() && fields.is_none()) {
        object.insert("team".to_owned(), inner("team", more));
    }
    Value::Object(object)
}

fn singular(name: &str) -> &str {
    name.strip_suffix('s').unwrap_or(name)
}

fn text(name: FieldName<'_>, schema: &Value) -> String {
    // An id: `^run_[0-9a-fA-F]{32}$`.
    if let Some(prefix) = schema["pattern"].as_str().and_then(|pattern| pattern.strip_prefix('^')) {
        let end = prefix.find('[').unwrap_or(prefix.len());
        if prefix.ends_with("{32}$") {
            return format!("{}019a8c2e4b7a7f10a1b2c3d4e5f60718", &prefix[..end]);
        }
        if prefix.ends_with("{64}$") {
            return format!("{}9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", &prefix[..end]);
        }
    }
    let FieldName { owner, field } = name;
    let of_schema = TEXTS.iter().find(|(known, _)| known.split_once('.') == Some((owner, field)));
    let by_field = || TEXTS.iter().find(|(known, _)| *known == field);
    // One of a list.
    let by_plural = || TEXTS.iter().find(|(known, _)| known.strip_suffix('s') == Some(field));
    let known = of_schema.or_else(by_field).or_else(by_plural);
    let mut text = match schema["format"].as_str() {
        Some("date-time") => "2026-09-21T13:33:20Z".to_owned(),
        _ => known.map_or(UNKNOWN, |(_, text)| *text).to_owned(),
    };
    let least = schema["minLength"].as_u64().unwrap_or(0) as usize;
    while text.len() < least {
        text.push('x');
    }
    text
}

fn number(name: &str, schema: &Value) -> i64 {
    let wanted = match name {
        "status" => 404,
        _ if name == "at" || name.ends_with("_at") || BOUNDARIES.contains(&name) => INSTANT_MS,
        _ if name.ends_with("_ms") => 60_000,
        _ => 1,
    };
    let bounded = wanted.max(schema["minimum"].as_i64().unwrap_or(i64::MIN));
    bounded.min(schema["maximum"].as_i64().unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESPONSES: &str = "#/components/responses/";

    /// What is wrong with a value, as far as the description says.
    fn fault(value: &Value, schema: &Value, schemas: &Map<String, Value>) -> Option<String> {
        if let Some(named) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix(SCHEMAS)) {
            return fault(value, &schemas[named], schemas).map(|what| format!("{named}: {what}"));
        }
        if let Some(values) = schema["enum"].as_array() {
            return (!values.contains(value)).then(|| format!("{value} is none of {values:?}"));
        }
        let mut parts = schema["allOf"].as_array().into_iter().flatten();
        if let Some(what) = parts.find_map(|part| fault(value, part, schemas)) {
            return Some(what);
        }
        for word in ["oneOf", "anyOf"] {
            let Some(options) = schema[word].as_array() else { continue };
            if !options.iter().any(|option| fault(value, option, schemas).is_none()) {
                return Some(format!("{value} is none of the choices"));
            }
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            kind => kind.as_str().into_iter().collect(),
        };
        let is = |kind: &&str| match *kind {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            _ => value.is_null(),
        };
        if !kinds.is_empty() && !kinds.iter().any(is) {
            return Some(format!("{value} is no {kinds:?}"));
        }
        let object = value.as_object()?;
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if let Some(missing) = required.into_iter().find(|name| !object.contains_key(*name)) {
            return Some(format!("`{missing}` is missing in {value}"));
        }
        object.iter().find_map(|(name, inner)| match schema["properties"].get(name) {
            Some(field) => fault(inner, field, schemas).map(|what| format!("{name}: {what}")),
            None if schema["additionalProperties"] == false => Some(format!("`{name}` is no field")),
            None => None,
        })
    }

    #[test]
    fn every_request_and_answer_has_an_example_that_fits() {
        let document = crate::openapi::copy();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let mut seen = 0;
        let mut check = |at: &str, body: &Value| {
            for (form, content) in body["content"].as_object().into_iter().flatten() {
                let Some(schema) = content.get("schema") else { continue };
                let example = content.get("example").unwrap_or_else(|| panic!("{at} has no example as {form}"));
                assert_eq!(fault(example, schema, schemas), None, "{at}: {example}");
                let unknown = example.to_string().contains(&format!("\"{UNKNOWN}\""));
                assert!(!unknown, "{at}: add the field that is shown as {UNKNOWN} to TEXTS: {example:#}");
                seen += 1;
            }
        };
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                check(&format!("the request {method} {path}"), &operation["requestBody"]);
                for (status, answer) in operation["responses"].as_object().into_iter().flatten() {
                    let shared = answer["$ref"].as_str().and_then(|reference| reference.strip_prefix(RESPONSES));
                    let answer = shared.map_or(answer, |name| &document["components"]["responses"][name]);
                    check(&format!("{method} {path} {status}"), answer);
                }
            }
        }
        assert!(seen > 300, "{seen}");
    }
}
