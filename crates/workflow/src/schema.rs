//! The JSON Schema of a workflow file, from the types that read it.

use serde_json::{Value, json};

use crate::definition::Definition;
use crate::scenario::ScenarioFile;
use crate::shape::{Defs, Shape};

/// Where a server publishes it.
pub const PATH: &str = "/schema/workflow.json";

/// JSON Schema 2020-12, for editors and for checks in other people's pipelines.
pub fn schema() -> Value {
    document::<Definition>("Definition", "workflow", "Interlock workflow")
}

/// The same for scenario files.
pub fn scenario_schema() -> Value {
    document::<ScenarioFile>("ScenarioFile", "scenarios", "Interlock scenarios")
}

fn document<T: Shape>(record: &str, id: &str, title: &str) -> Value {
    let mut defs = Defs::default();
    T::schema(&mut defs);
    let mut defs = defs.0;
    let Some(Value::Object(root)) = defs.remove(record) else { return Value::Null };
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("urn:interlock:schema:{id}"),
        "title": title,
    });
    if let Value::Object(fields) = &mut schema {
        fields.extend(root);
        fields.insert("$defs".to_owned(), Value::Object(defs));
    }
    schema
}
