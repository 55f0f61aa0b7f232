//! JSON and YAML for programs: fields in the order of the types, and characters that hide or command spelled as
//! escapes, which changes nothing for a program and everything for a terminal.

use std::fmt::{self, Write};

use interlock_core::text::visible::is_hidden;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Any JSON value, with its fields in their order.
enum Document {
    Plain(serde_json::Value),
    List(Vec<Self>),
    Fields(Vec<(String, Self)>),
}

pub fn json<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<String> {
    Ok(ascii_where_hidden(&serde_json::to_string_pretty(&document(value)?)?))
}

pub fn yaml<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<String> {
    let mut text = String::new();
    write_yaml(&document(value)?, 0, &mut text)?;
    Ok(text)
}

/// Through the JSON text, because some fields hold JSON text of their own.
fn document<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Document> {
    serde_json::from_str(&serde_json::to_string(value)?)
}

/// A character that hides can only stand inside a string there, where an escape means the same.
fn ascii_where_hidden(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if is_hidden(c) && c != '\n' {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    text
}

fn write_yaml(document: &Document, depth: usize, text: &mut String) -> serde_json::Result<()> {
    let indent = "  ".repeat(depth);
    match document {
        Document::Plain(value) => {
            text.push_str(&scalar(value)?);
            text.push('\n');
        }
        Document::List(items) if items.is_empty() => text.push_str("[]\n"),
        Document::Fields(fields) if fields.is_empty() => text.push_str("{}\n"),
        Document::List(items) => {
            for item in items {
                text.push_str(&indent);
                text.push_str("- ");
                write_yaml_after_dash(item, depth + 1, text)?;
            }
        }
        Document::Fields(fields) => {
            for (name, value) in fields {
                text.push_str(&indent);
                write_yaml_field(name, value, depth, text)?;
            }
        }
    }
    Ok(())
}

fn write_yaml_field(name: &str, value: &Document, depth: usize, text: &mut String) -> serde_json::Result<()> {
    text.push_str(&quoted(name)?);
    text.push(':');
    match value {
        Document::List(items) if !items.is_empty() => {
            text.push('\n');
            write_yaml(value, depth + 1, text)
        }
        Document::Fields(fields) if !fields.is_empty() => {
            text.push('\n');
            write_yaml(value, depth + 1, text)
        }
        _ => {
            text.push(' ');
            write_yaml(value, 0, text)
        }
    }
}

/// The first field of an item stands beside its dash.
fn write_yaml_after_dash(item: &Document, depth: usize, text: &mut String) -> serde_json::Result<()> {
    let mut inner = String::new();
    write_yaml(item, depth, &mut inner)?;
    text.push_str(inner.strip_prefix(&"  ".repeat(depth)).unwrap_or(&inner));
    Ok(())
}

fn scalar(value: &serde_json::Value) -> serde_json::Result<String> {
    match value {
        serde_json::Value::String(text) => quoted(text),
        other => serde_json::to_string(other),
    }
}

/// A word stays as it is; everything that YAML could take for something else is a JSON string, which is YAML too.
fn quoted(text: &str) -> serde_json::Result<String> {
    let first = text.chars().next();
    let plain = first.is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '_' | '/'))
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+'))
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    if plain { Ok(text.to_owned()) } else { Ok(ascii_where_hidden(&serde_json::to_string(text)?)) }
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Plain(value) => value.serialize(serializer),
            Self::List(items) => items.serialize(serializer),
            Self::Fields(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (name, value) in fields {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Document, E> {
        Ok(Document::Plain(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Document, E> {
        Ok(Document::Plain(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Document, E> {
        Ok(Document::Plain(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Document, E> {
        Ok(Document::Plain(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Document, E> {
        Ok(Document::Plain(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Document, E> {
        Ok(Document::Plain(serde_json::Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Document, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Document::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Document::Fields(fields))
    }
}

#[cfg(test)]
mod tests {
    use interlock_core::json::Json;

    use super::*;

    #[derive(Serialize)]
    struct Example {
        zebra: &'static str,
        apple: Json,
        list: Vec<Example>,
        none: Option<u8>,
    }

    fn example() -> Example {
        let inner = Example { zebra: "no", apple: Json::null(), list: vec![], none: Some(3) };
        Example {
            zebra: "a: \u{202e}b\u{9b}",
            apple: Json::trusted(r#"{"b":[1,-2.5],"a":{},"c":[[true]]}"#),
            list: vec![inner],
            none: None,
        }
    }

    #[test]
    fn json_keeps_the_order_and_spells_out_what_hides() {
        let text = json(&example()).unwrap();
        assert!(text.starts_with("{\n  \"zebra\": \"a: \\u202eb\\u009b\",\n  \"apple\": {\n    \"b\""), "{text}");
        let back: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back["zebra"], "a: \u{202e}b\u{9b}");
    }

    #[test]
    fn yaml_is_indented_and_quotes_what_it_must() {
        let expected = "zebra: \"a: \\u202eb\\u009b\"
apple:
  b:
    - 1
    - -2.5
  a: {}
  c:
    - - true
list:
  - zebra: \"no\"
    apple: null
    list: []
    none: 3
none: null
";
        assert_eq!(yaml(&example()).unwrap(), expected);
    }
}
