//! Reading the fields of a JSON object straight into secret memory: no value stands in a string of its own in between.
//! Only a text with escapes passes through the parser's buffer.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use crate::limits;
use crate::memory::SecretBuf;
use crate::provider::SecretFields;

/// Which fields are kept.
#[derive(Clone, Copy)]
pub(crate) enum Fields<'a> {
    All,
    Only(&'a str),
}

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = SecretFields;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<SecretFields, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = SecretFields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of names and texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SecretFields, A::Error> {
        let mut fields = SecretFields::new();
        while let Some(name) = map.next_key::<String>()? {
            if matches!(self, Self::Only(wanted) if wanted != name) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if let Some(value) = map.next_value_seed(Value)? {
                fields.insert(name, value);
            }
            if fields.len() > limits::FIELDS_MAX {
                return Err(A::Error::custom(format_args!("more than {} fields", limits::FIELDS_MAX)));
            }
        }
        Ok(fields)
    }
}

/// A text, or a number or a boolean as text. What is no such thing (null, a list, an object) is no secret.
struct Value;

impl<'de> DeserializeSeed<'de> for Value {
    type Value = Option<SecretBuf>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// The error names the trouble and not the value.
fn kept<E: serde::de::Error>(text: &str) -> Result<Option<SecretBuf>, E> {
    SecretBuf::new(text).map(Some).map_err(E::custom)
}

impl<'de> Visitor<'de> for Value {
    type Value = Option<SecretBuf>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        kept(text)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
        kept(&number.to_string())
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
        kept(&number.to_string())
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Self::Value, E> {
        kept(&number.to_string())
    }

    fn visit_bool<E: serde::de::Error>(self, truth: bool) -> Result<Self::Value, E> {
        kept(if truth { "true" } else { "false" })
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

/// Where a text stops making sense. The parser's own words may repeat a value that has the wrong kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}")]
pub(crate) struct Malformed {
    /// It ends too soon.
    pub is_cut_off: bool,
    line: usize,
    column: usize,
}

impl From<serde_json::Error> for Malformed {
    fn from(error: serde_json::Error) -> Self {
        Self { is_cut_off: error.is_eof(), line: error.line(), column: error.column() }
    }
}

/// The fields of a JSON object.
pub(crate) fn parse(bytes: &[u8], fields: Fields<'_>) -> Result<SecretFields, Malformed> {
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    let found = fields.deserialize(&mut parser)?;
    parser.end()?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_numbers_are_kept_and_the_rest_is_not() {
        let json = br#"{"a":"x\n\u00e9","n":7,"t":true,"list":["s"],"none":null,"deep":{"a":"s"}}"#;
        let found = parse(json, Fields::All).unwrap();
        let shown: Vec<_> = found.iter().map(|(name, value)| (name.as_str(), value.reveal())).collect();
        assert_eq!(shown, [("a", "x\né"), ("n", "7"), ("t", "true")]);
        let one = parse(json, Fields::Only("n")).unwrap();
        assert_eq!(one.keys().collect::<Vec<_>>(), ["n"]);
    }

    #[test]
    fn a_refusal_does_not_repeat_a_value() {
        let long = format!(r#"{{"a":"{}"}}"#, "s3cr3t".repeat(limits::SECRET_BYTES_MAX / 4));
        for json in [long.as_str(), r#"{"a":"s3cr3t"#, r#"["s3cr3t"]"#, r#""s3cr3t""#] {
            let error = parse(json.as_bytes(), Fields::All).err().unwrap().to_string();
            assert!(!error.contains("s3cr3t"), "{error}");
        }
    }
}
