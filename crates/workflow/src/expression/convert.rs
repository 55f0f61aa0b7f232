//! JSON values to CEL and back. A value that one side cannot hold exactly is refused, never changed.

use std::collections::HashMap;
use std::sync::Arc;

use cel::objects::{Key, Map};
use serde_json::{Number, Value};

/// JSON's one number type becomes CEL's `int` wherever it is whole, so that `inputs.n + 1` means what it says, and
/// `uint` where it is beyond `int`.
pub(super) fn to_cel(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(truth) => cel::Value::Bool(*truth),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(whole), ..) => cel::Value::Int(whole),
            (_, Some(whole), _) => cel::Value::UInt(whole),
            (_, _, Some(float)) => cel::Value::Float(float),
            (None, None, None) => cel::Value::Null,
        },
        Value::String(text) => cel::Value::String(Arc::new(text.clone())),
        Value::Array(items) => cel::Value::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(fields) => {
            let map: HashMap<Key, cel::Value> =
                fields.iter().map(|(name, value)| (Key::String(Arc::new(name.clone())), to_cel(value))).collect();
            cel::Value::Map(Map { map: Arc::new(map) })
        }
    }
}

/// The value as JSON, or why it has no JSON.
pub(super) fn to_json(value: &cel::Value) -> Result<Value, String> {
    match value {
        cel::Value::Float(number) => Number::from_f64(*number)
            .map(Value::Number)
            .ok_or_else(|| format!("the result is {number}, and JSON has no such number")),
        cel::Value::List(items) => items.iter().map(to_json).collect::<Result<_, _>>().map(Value::Array),
        cel::Value::Map(map) => {
            let mut fields = serde_json::Map::new();
            for (key, value) in map.map.iter() {
                let name = key.to_string();
                if fields.insert(name.clone(), to_json(value)?).is_some() {
                    return Err(format!("the map has two keys that both read `{name}` in JSON"));
                }
            }
            Ok(Value::Object(fields))
        }
        // Bytes become their base64.
        cel::Value::Int(_)
        | cel::Value::UInt(_)
        | cel::Value::String(_)
        | cel::Value::Bytes(_)
        | cel::Value::Bool(_)
        | cel::Value::Null => value.json().map_err(|error| error.to_string()),
        _ => Err("the result is an optional, and JSON has none; end it with `.orValue(…)`".to_owned()),
    }
}
