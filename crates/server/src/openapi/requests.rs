//! What the types of requests do not say by themselves: which fields exclude each other, and that further fields are
//! refused where a body is read by hand ([`interlock_protocol::body`]). How long their texts may be is declared by
//! [`bounds`](super::bounds).

use serde_json::{Value, json};

/// Schema, and the fields of which a request has exactly one.
const EITHER: &[(&str, &[&str])] = &[("StartRun", &["workflow", "plan"])];

/// Schemas of one object, or of a choice of objects, that take no further fields.
const CLOSED: &[&str] =
    &["WorkerHello", "Report", "EffectIntent", "EffectOutcome", "OutputBatch", "ReportedOutcome", "NewToken"];

/// Choices of a plan whose objects take no further fields. They are closed once each has a name and all its fields
/// ([`named`](super::named)).
const CLOSED_CHOICES: &[&str] = &["StepSpec", "RollbackSpec", "Undo", "Backoff"];

pub fn describe(document: &mut Value) {
    close(&mut document["components"]["schemas"]);
    let schemas = &mut document["components"]["schemas"];
    for (schema, fields) in EITHER {
        if let Some(schema) = schemas.get_mut(*schema).and_then(Value::as_object_mut) {
            let whole = Value::Object(std::mem::take(schema));
            if let Some(description) = whole.get("description") {
                schema.insert("description".to_owned(), description.clone());
            }
            schema.insert("oneOf".to_owned(), fields.iter().map(|own| with_one(&whole, own, fields)).collect());
        }
    }
}

/// Says of the objects of a plan's choices, and of those inside them, that they take no further fields.
pub fn close_choices(document: &mut Value) {
    let Some(schemas) = document["components"]["schemas"].as_object_mut() else { return };
    let mut objects: Vec<String> = Vec::new();
    for choice in CLOSED_CHOICES {
        let options = schemas.get(*choice).and_then(|choice| choice["oneOf"].as_array()).into_iter().flatten();
        objects.extend(options.filter_map(name_of).map(str::to_owned));
    }
    for (name, schema) in schemas {
        // An object inside another one is called by the name of that one, and then its own.
        if schema["type"] == "object" && objects.iter().any(|object| name.starts_with(object.as_str())) {
            schema["additionalProperties"] = json!(false);
        }
    }
}

/// The name that a reference to a schema leads to.
fn name_of(reference: &Value) -> Option<&str> {
    reference["$ref"].as_str().and_then(|reference| reference.rsplit('/').next())
}

/// An object that has this one of some fields, and none of the others.
fn with_one(whole: &Value, own: &str, fields: &[&str]) -> Value {
    let mut one = whole.clone();
    if let Some(properties) = one["properties"].as_object_mut() {
        properties.retain(|name, _| name == own || !fields.contains(&name.as_str()));
        // It is there, so it is not null.
        if let Some(described) = properties.get_mut(own) {
            *described = not_null(described);
        }
    }
    let mut required = one["required"].as_array().cloned().unwrap_or_default();
    required.push(json!(own));
    one["required"] = Value::Array(required);
    one
}

/// The same without null.
fn not_null(described: &Value) -> Value {
    if let Some(options) = described["anyOf"].as_array() {
        return options.iter().find(|option| option["type"] != "null").cloned().unwrap_or_default();
    }
    let mut plain = described.clone();
    let kind = described["type"].as_array().and_then(|kinds| kinds.iter().find(|kind| **kind != "null"));
    if let Some(kind) = kind {
        plain["type"] = kind.clone();
    }
    plain
}

fn close(schemas: &mut Value) {
    for name in CLOSED {
        let closed = match schemas[name]["oneOf"].as_array() {
            Some(options) => {
                let options: Vec<Value> = options.iter().map(|option| closed(option, schemas)).collect();
                json!({ "oneOf": options, "description": schemas[name]["description"] })
            }
            None => closed(&schemas[name], schemas),
        };
        schemas[name] = without_nulls(closed);
    }
}

/// An object with all fields of its parts, and no others. Closing the parts would let each refuse the other's fields.
fn closed(schema: &Value, schemas: &Value) -> Value {
    let mut whole = json!({ "type": "object", "description": schema["description"], "properties": {}, "required": [] });
    let own = std::slice::from_ref(schema);
    for part in schema["allOf"].as_array().map_or(own, Vec::as_slice) {
        let part = name_of(part).map_or(part, |name| &schemas[name]);
        for (field, described) in part["properties"].as_object().into_iter().flatten() {
            whole["properties"][field] = described.clone();
        }
        for field in part["required"].as_array().into_iter().flatten() {
            whole["required"].as_array_mut().into_iter().for_each(|required| required.push(field.clone()));
        }
    }
    whole["additionalProperties"] = json!(false);
    without_nulls(whole)
}

/// What is not said, instead of said to be nothing.
fn without_nulls(mut schema: Value) -> Value {
    if let Some(fields) = schema.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_exclude_each_other_are_a_choice() {
        let document = crate::openapi::copy();
        for (schema, fields) in EITHER {
            let found = document["components"]["schemas"][schema]["oneOf"].as_array().map(Vec::len);
            assert_eq!(found, Some(fields.len()), "{schema}");
        }
    }

    #[test]
    fn the_objects_of_a_plans_choices_are_closed() {
        let document = crate::openapi::copy();
        for choice in CLOSED_CHOICES {
            let options = document["components"]["schemas"][choice]["oneOf"].as_array().unwrap();
            let named: Vec<_> = options.iter().filter_map(|option| option["$ref"].as_str()).collect();
            assert!(named.len() > 1, "{choice}");
            for reference in named {
                assert_eq!(document.pointer(&reference[1..]).unwrap()["additionalProperties"], false, "{reference}");
            }
        }
        // What only begins like one of them is another schema: an answer may get more fields.
        let other = &document["components"]["schemas"]["UndoRuling"];
        assert!(other["properties"].is_object() && other["additionalProperties"].is_null(), "{other}");
    }
}
