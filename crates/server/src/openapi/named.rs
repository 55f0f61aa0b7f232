//! Names for everything that a generator of clients makes a type of. A choice of objects becomes a choice of named objects, each
//! with all its fields (`StepSpecTask`, `BackoffFixed`), and so does an object inside another one. What was said before and what is
//! said then accept the same.

use serde_json::{Map, Value, json};

const SCHEMAS: &str = "#/components/schemas/";

/// The one field that every step must have beside its kind.
const COMMON_FIELD: &str = "key";

/// An object with what tells it from the others of its choice, the most telling first.
type Variant = (Vec<(u8, String)>, Value);

/// The answer that is a document of another format: any object, as far as this description goes.
const FILE_SCHEMA: &str = "/paths/~1schema~1workflow.json/get/responses/200/content/application~1schema+json";

pub fn describe(document: &mut Value) {
    if let Some(form) = document.pointer_mut(FILE_SCHEMA) {
        *form = json!({
            "schema": { "$ref": format!("{SCHEMAS}WorkflowFileSchema") },
            "example": { "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object" },
        });
    }
    let Some(schemas) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut) else { return };
    let about = "The JSON Schema (2020-12) of a workflow file.";
    schemas.insert("WorkflowFileSchema".to_owned(), json!({ "type": "object", "description": about }));
    let before = schemas.clone();
    for (name, schema) in &before {
        let mut options = Vec::new();
        if schema.get("allOf").is_some_and(|parts| parts.as_array().is_some_and(|parts| has_choice(parts, &before))) {
            let Some(variants) = variants(schema, &before) else { continue };
            options.extend(variants.into_iter().map(|variant| add(schemas, name, variant)));
        } else if let Some(choice) = schema.get("oneOf").and_then(Value::as_array) {
            for option in choice {
                let is_inline = option.get("allOf").is_some() || is_object(option);
                match variants(option, &before).filter(|_| is_inline) {
                    Some(variants) => options.extend(variants.into_iter().map(|variant| add(schemas, name, variant))),
                    None => options.push(option.clone()),
                }
            }
        } else {
            continue;
        }
        let mut named = json!({ "oneOf": options });
        if let Some(description) = schema.get("description") {
            named["description"] = description.clone();
        }
        schemas.insert(name.clone(), named);
    }
    for name in schemas.keys().cloned().collect::<Vec<_>>() {
        let mut schema = schemas[&name].take();
        hoist(schemas, &name, &mut schema);
        schemas.insert(name, schema);
    }
}

fn has_choice(parts: &[Value], schemas: &Map<String, Value>) -> bool {
    parts.iter().any(|part| resolved(part, schemas).get("oneOf").is_some())
}

fn is_object(schema: &Value) -> bool {
    schema["type"] == "object" && schema.get("properties").is_some()
}

fn resolved<'a>(schema: &'a Value, schemas: &'a Map<String, Value>) -> &'a Value {
    let name = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix(SCHEMAS));
    name.and_then(|name| schemas.get(name)).map_or(schema, |named| resolved(named, schemas))
}

/// The objects that a schema allows, one for each way through its choices; nothing where it allows anything else.
fn variants(schema: &Value, schemas: &Map<String, Value>) -> Option<Vec<Variant>> {
    let schema = resolved(schema, schemas);
    if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
        let mut whole: Vec<Variant> = vec![(Vec::new(), json!({ "type": "object" }))];
        for part in parts {
            let part = variants(part, schemas)?;
            let with = |(labels, one): &Variant| {
                let joined = |(more, other): &Variant| ([labels.as_slice(), more].concat(), merged(one, other));
                part.iter().map(joined).collect::<Vec<_>>()
            };
            whole = whole.iter().flat_map(with).collect();
        }
        return Some(whole);
    }
    if let Some(choice) = schema.get("oneOf").and_then(Value::as_array) {
        let options: Option<Vec<Vec<Variant>>> = choice.iter().map(|option| variants(option, schemas)).collect();
        return options.map(|options| options.concat());
    }
    (schema["type"] == "object").then(|| vec![(label(schema).into_iter().collect(), schema.clone())])
}

/// What tells an object from others: the one value of a field, else the one field that it must have.
fn label(object: &Value) -> Option<(u8, String)> {
    let only = |values: &Value| match values.as_array().map(Vec::as_slice) {
        Some([Value::String(only)]) => Some(only.clone()),
        _ => None,
    };
    let mut fields = object["properties"].as_object().into_iter().flat_map(Map::values);
    let by_value = fields.find_map(|field| only(&field["enum"])).map(|value| (0, value));
    by_value.or_else(|| only(&object["required"]).map(|field| (1, field)))
}

fn merged(one: &Value, other: &Value) -> Value {
    let mut whole = one.clone();
    for (key, value) in other.as_object().into_iter().flatten() {
        match (key.as_str(), whole.get_mut(key), value) {
            ("properties", Some(Value::Object(fields)), Value::Object(more)) => fields.extend(more.clone()),
            ("required", Some(Value::Array(names)), Value::Array(more)) => {
                let new: Vec<_> = more.iter().filter(|name| !names.contains(name)).cloned().collect();
                names.extend(new);
            }
            _ => whole[key] = value.clone(),
        }
    }
    whole
}

/// Adds a variant of a schema under its name, and answers the reference to it.
fn add(schemas: &mut Map<String, Value>, of: &str, (mut labels, object): Variant) -> Value {
    labels.sort_by_key(|(weight, _)| *weight);
    // Fields that all of them must have tell nothing where a value does.
    let own = labels.iter().filter(|(weight, label)| *weight == 0 || *label != COMMON_FIELD);
    let labels: Vec<_> = own.cloned().collect();
    let name: String = labels.iter().map(|(_, label)| pascal(label)).collect();
    insert(schemas, &format!("{of}{}", if name.is_empty() { "Variant" } else { &name }), object)
}

fn insert(schemas: &mut Map<String, Value>, wanted: &str, schema: Value) -> Value {
    let mut name = wanted.to_owned();
    let mut number = 2;
    while schemas.get(&name).is_some_and(|other| *other != schema) {
        name = format!("{wanted}{number}");
        number += 1;
    }
    schemas.insert(name.clone(), schema);
    json!({ "$ref": format!("{SCHEMAS}{name}") })
}

/// Gives the objects inside a schema names of their own.
fn hoist(schemas: &mut Map<String, Value>, owner: &str, schema: &mut Value) {
    if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for (field, inner) in fields {
            hoist_one(schemas, &format!("{owner}{}", pascal(field)), inner);
        }
    }
    for word in ["oneOf", "anyOf", "allOf"] {
        for inner in schema.get_mut(word).and_then(Value::as_array_mut).into_iter().flatten() {
            // The parts of a whole are no types of their own.
            if word == "allOf" {
                hoist(schemas, owner, inner);
            } else {
                hoist_one(schemas, &format!("{owner}Item"), inner);
            }
        }
    }
    if let Some(inner) = schema.get_mut("items") {
        hoist_one(schemas, &format!("{owner}Item"), inner);
    }
}

fn hoist_one(schemas: &mut Map<String, Value>, name: &str, inner: &mut Value) {
    hoist(schemas, name, inner);
    if let Some(known) = same_names(schemas, inner) {
        *inner = json!({ "$ref": format!("{SCHEMAS}{known}") });
    }
    if is_object(inner) {
        *inner = insert(schemas, name, inner.take());
    }
}

/// The schema that lists the same words, where these are written out.
fn same_names(schemas: &Map<String, Value>, inner: &Value) -> Option<String> {
    let words = inner.get("enum").filter(|words| words.as_array().is_some_and(|words| words.len() > 1))?;
    schemas.iter().find(|(_, schema)| schema.get("enum") == Some(words)).map(|(name, _)| name.clone())
}

fn pascal(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_and_inner_objects_have_names() {
        let mut document = json!({ "components": { "schemas": {
            "Backoff": { "description": "How long.", "oneOf": [
                { "type": "string", "enum": ["ladder"] },
                { "type": "object", "required": ["fixed"], "properties": {
                    "fixed": { "type": "object", "required": ["delay"], "properties": { "delay": { "type": "integer" } } },
                } },
            ] },
            "Work": { "oneOf": [
                { "type": "object", "required": ["kind"], "properties": { "kind": { "enum": ["task"] } } },
                { "type": "object", "required": ["kind"], "properties": { "kind": { "enum": ["wait"] } } },
            ] },
            "Step": { "allOf": [
                { "$ref": "#/components/schemas/Work" },
                { "type": "object", "required": ["key"], "properties": { "key": { "type": "string" } } },
            ] },
        } } });
        describe(&mut document);
        let schemas = &document["components"]["schemas"];
        let of = |name: &str| json!({ "$ref": format!("{SCHEMAS}{name}") });
        assert_eq!(schemas["Backoff"]["oneOf"][1], of("BackoffFixed"));
        assert_eq!(schemas["BackoffFixed"]["properties"]["fixed"], of("BackoffFixedFixed"));
        assert_eq!(schemas["Step"]["oneOf"], json!([of("StepTask"), of("StepWait")]));
        assert_eq!(schemas["StepTask"]["required"], json!(["kind", "key"]));
        let mut again = document.clone();
        describe(&mut again);
        assert_eq!(again, document, "what is named stays so");
    }
}
