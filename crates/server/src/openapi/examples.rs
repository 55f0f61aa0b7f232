//! An example for every request and every answer, made from its schema: what must be there, with values that its names suggest.

use serde_json::{Map, Value, json};

const SCHEMAS: &str = "#/components/schemas/";
/// Deeper than any request is nested, and an end to schemas that hold themselves.
const DEPTH_MAX: usize = 12;
/// 2026-09-21, for every instant.
const INSTANT_MS: i64 = 1_790_000_000_000;

/// Texts by the name of their field.
const TEXTS: &[(&str, &str)] = &[
    ("code", "RUN_NOT_FOUND"),
    ("cron", "0 3 * * 1"),
    ("detail", "run run_019a8c2e4b7a7f10a1b2c3d4e5f60718 does not exist"),
    ("digest", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
    ("email", "ada@example.org"),
    ("handler", "payments.capture"),
    ("initiator", "system"),
    ("key", "INC-2041"),
    ("last_event_id", "7"),
    ("message", "Restart the primary database?"),
    ("password", "correct horse battery"),
    ("path", "workflow.rego"),
    ("person", "ada"),
    ("reason", "the region is being evacuated"),
    ("source", "name: order\nsteps:\n  - { id: pay, task: payments.capture }\n"),
    ("subject", "order-41931"),
    ("timezone", "Europe/Berlin"),
    ("url", "https://desk.example.org/hooks/interlock"),
    ("workflow", "order"),
    ("workspace", "default"),
];

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
    for form in content.as_object_mut().into_iter().flat_map(Map::values_mut) {
        let described = form.get("example").is_some() || form.get("examples").is_some();
        if let Some(schema) = form.get("schema").filter(|_| !described) {
            form["example"] = example("", schema, schemas, 0);
        }
    }
}

fn example(name: &str, schema: &Value, schemas: &Map<String, Value>, depth: usize) -> Value {
    if depth > DEPTH_MAX {
        return Value::Null;
    }
    let inner = |name: &str, schema: &Value| example(name, schema, schemas, depth + 1);
    if let Some(named) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix(SCHEMAS)) {
        return schemas.get(named).map_or(Value::Null, |schema| inner(name, schema));
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
            whole.extend(inner(name, part).as_object().cloned().unwrap_or_default());
        }
        return Value::Object(whole);
    }
    let choice = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
    if let Some(option) = choice.and_then(|options| options.iter().find(|option| option["type"] != "null")) {
        return inner(name, option);
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().find(|kind| **kind != "null").and_then(Value::as_str),
        kind => kind.as_str(),
    };
    match kind {
        Some("object") => object(schema, &inner),
        Some("array") => {
            let least = schema["minItems"].as_u64().unwrap_or(1).max(1);
            Value::Array((0..least).map(|_| inner(singular(name), &schema["items"])).collect())
        }
        Some("string") => Value::String(text(name, schema)),
        Some("integer") => json!(number(name, schema)),
        Some("number") => json!(0.5),
        Some("boolean") => json!(true),
        // Any value.
        _ => json!({ "order": 41931 }),
    }
}

/// All that an object must have; something of what it may have where it must have nothing.
fn object(schema: &Value, inner: &dyn Fn(&str, &Value) -> Value) -> Value {
    let fields = schema["properties"].as_object();
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let all = fields.into_iter().flatten();
    let mut shown: Vec<_> = all.filter(|(name, _)| required.contains(&name.as_str())).collect();
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

fn text(name: &str, schema: &Value) -> String {
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
    let known = TEXTS.iter().find(|(field, _)| *field == name).map(|(_, text)| (*text).to_owned());
    let mut text = match schema["format"].as_str() {
        Some("date-time") => "2026-09-21T13:33:20Z".to_owned(),
        _ => known.unwrap_or_else(|| if name.is_empty() { "text".to_owned() } else { name.to_owned() }),
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
        _ if name == "at" || name.ends_with("_at") || ["from", "before", "until", "since"].contains(&name) => {
            INSTANT_MS
        }
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
        let document: Value = serde_json::from_str(crate::openapi::text()).unwrap();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let mut seen = 0;
        let mut check = |at: &str, body: &Value| {
            for (form, content) in body["content"].as_object().into_iter().flatten() {
                let Some(schema) = content.get("schema") else { continue };
                let example = content.get("example").unwrap_or_else(|| panic!("{at} has no example as {form}"));
                assert_eq!(fault(example, schema, schemas), None, "{at}: {example}");
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
