//! The copies in the reference are fresh. Run with `UPDATE_REFERENCE=1` to write them anew.

use std::fmt::Write as _;
use std::path::Path;

use interlock_workflow::diagnostic::Code;
use interlock_workflow::schema::{scenario_schema, schema};
use serde_json::Value;

fn fresh(path: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let copy = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(copy == text, "{} is stale: run the test with UPDATE_REFERENCE=1 and commit it", path.display());
}

#[test]
fn the_schema_in_the_reference_is_fresh() {
    fresh("docs/reference/workflow.schema.json", &format!("{:#}\n", schema()));
}

/// The tables of `docs/reference/workflow.md`, from the schema and the codes.
#[test]
fn the_page_in_the_reference_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/workflow.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let rows: Vec<_> = Code::ALL.iter().map(|code| format!("| `{}` | {} |", code.as_str(), code.meaning())).collect();
    let codes = rows.join("\n");
    let mut page = section(&page, "fields", &tables(&schema()));
    page = section(&page, "codes", &format!("| code | meaning |\n|---|---|\n{codes}"));
    page = section(&page, "scenarios", &tables(&scenario_schema()));
    fresh("docs/reference/workflow.md", &page);
}

/// The page with what stands between two marks replaced.
fn section(page: &str, name: &str, text: &str) -> String {
    let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let from = page.find(&open).unwrap() + open.len();
    let to = page.find(&close).unwrap();
    format!("{}\n{}\n{}", &page[..from], text.trim_end(), &page[to..])
}

/// A table for each record, the whole file first.
fn tables(schema: &Value) -> String {
    let mut out = table("The file", schema);
    for (name, record) in schema["$defs"].as_object().unwrap() {
        out.push_str(&table(name, record));
    }
    out
}

fn table(name: &str, record: &Value) -> String {
    let required: Vec<&str> = record["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut out = format!("### {name}\n\n{}\n\n| field | type | meaning |\n|---|---|---|\n", text(record));
    for (field, property) in record["properties"].as_object().unwrap() {
        let must = if required.contains(&field.as_str()) { ", required" } else { "" };
        let _ = writeln!(out, "| `{field}` | {}{must} | {} |", kind(property), text(property));
    }
    out.push('\n');
    out
}

fn text(node: &Value) -> String {
    node["description"].as_str().unwrap_or_default().replace('|', "\\|")
}

/// The type of a property, as people say it.
fn kind(property: &Value) -> String {
    if let Some(name) = property["$ref"].as_str() {
        let name = name.trim_start_matches("#/$defs/");
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(options) = property["oneOf"].as_array() {
        return options.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    if let Some(words) = property["enum"].as_array() {
        return words
            .iter()
            .map(|word| format!("`{}`", word.as_str().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(" \\| ");
    }
    if let Some(word) = property["const"].as_str() {
        return format!("`{word}`");
    }
    match &property["type"] {
        Value::String(name) if name == "array" => format!("list of {}", kind(&property["items"])),
        Value::String(name) if name == "object" => format!("mapping of {}", kind(&property["additionalProperties"])),
        Value::String(name) if name == "string" && property["examples"].is_array() => "duration".to_owned(),
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "any value".to_owned(),
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_field_is_explained() {
    let schema = schema();
    let mut references = Vec::new();
    walk(&schema, &mut references);
    assert!(references.len() > 10);
    for name in references {
        let record = &schema["$defs"][&name];
        assert!(record["description"].as_str().is_some_and(|text| text.ends_with('.')), "{name}: {record}");
    }
}

fn walk(node: &Value, references: &mut Vec<String>) {
    match node {
        Value::Object(fields) => {
            if let Some(name) = fields.get("$ref").and_then(Value::as_str) {
                references.push(name.trim_start_matches("#/$defs/").to_owned());
            }
            let is_record = fields.get("additionalProperties") == Some(&Value::Bool(false));
            if let Some(Value::Object(properties)) = fields.get("properties").filter(|_| is_record) {
                for (name, property) in properties {
                    assert!(property["description"].as_str().is_some_and(|text| text.len() > 5), "{name}");
                }
            }
            fields.values().for_each(|value| walk(value, references));
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, references)),
        _ => {}
    }
}
