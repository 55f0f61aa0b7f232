//! Objects that name a field twice are refused: readers disagree on which of the two counts, so what was checked might
//! not be what is used.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// JSON in which no object, at any depth, names a field twice. Nothing of it is kept.
pub struct Unique;

/// A field's name, without a copy where the text holds it as it is.
#[derive(serde::Deserialize, PartialEq, Eq, Hash)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut seen = HashSet::new();
        while let Some(name) = map.next_key::<Name<'de>>()? {
            if seen.contains(&name) {
                return Err(A::Error::custom(format_args!("duplicate field `{}`", name.0)));
            }
            seen.insert(name);
            map.next_value::<Self>()?;
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self, E> {
        IgnoredAny.visit_bool(value).map(|_| self)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self, E> {
        IgnoredAny.visit_i64(value).map(|_| self)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self, E> {
        IgnoredAny.visit_u64(value).map(|_| self)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self, E> {
        IgnoredAny.visit_f64(value).map(|_| self)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self, E> {
        IgnoredAny.visit_str(value).map(|_| self)
    }

    fn visit_unit<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_stands_twice_is_found_at_every_depth() {
        for text in [r#"{"a":1,"a":1}"#, r#"{"x":[{"a":{"b":1,"c":2,"b":3}}]}"#, r#"{"a":1,"\u0061":2}"#] {
            let error = serde_json::from_str::<Unique>(text).err().unwrap().to_string();
            assert!(error.starts_with("duplicate field `") && error.contains("line 1 column"), "{error}");
        }
        for text in [r#"{"a":{"a":[{"a":1},{"a":2.5}]},"b":[true,null,-1,"a","a"]}"#, "{}", "18446744073709551615"] {
            assert!(serde_json::from_str::<Unique>(text).is_ok(), "{text}");
        }
    }
}
