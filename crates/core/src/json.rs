//! Payloads as the JSON text that was received or computed, shared without copying, and the canonical form
//! (RFC 8785) over which every hash is taken.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::limits;
use crate::text::json_words::json_error;

/// Whether a text is nested no deeper than allowed. Payloads are kept as they come, so no other check would
/// notice how deep they are before a reader recurses into them.
pub fn is_shallow(json: &[u8]) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => depth += 1,
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limits::JSON_DEPTH_MAX {
            return false;
        }
    }
    true
}

/// The first whole number in a JSON text that a value tree would round, since it has more than 64 bits.
pub fn beyond_64_bits(json: &str) -> Option<&str> {
    let bytes = json.as_bytes();
    let (mut at, mut in_text) = (0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if in_text => at += 1,
            b'"' => in_text = !in_text,
            b'-' | b'0'..=b'9' if !in_text => {
                let ends = |byte: &u8| !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                let end = bytes[at..].iter().position(ends).map_or(bytes.len(), |length| at + length);
                let number = &json[at..end];
                let whole = !number.contains(['.', 'e', 'E']);
                if whole && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                    return Some(number);
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Where the number of [`beyond_64_bits`] stands: `order.items[2]`. Nothing where the text is that number itself. Only
/// refusals pay for it.
fn place_beyond_64_bits(json: &str, at: &str) -> Option<String> {
    let inside = |place: String, value: &RawValue| {
        beyond_64_bits(value.get())?;
        place_beyond_64_bits(value.get(), &place).or(Some(place))
    };
    let name = |name: &str| crate::text::visible::visible(name).into_owned();
    match json.trim_start().as_bytes().first()? {
        b'{' => {
            let fields: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(json).ok()?;
            let place = |field: &str| if at.is_empty() { name(field) } else { format!("{at}.{}", name(field)) };
            fields.into_iter().find_map(|(field, value)| inside(place(&field), value))
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
            items.into_iter().enumerate().find_map(|(index, value)| inside(format!("{at}[{index}]"), value))
        }
        _ => None,
    }
}

/// Refuses a JSON text with a whole number that a value tree would round, and says where the number stands. Whatever comes from
/// outside and is read as a value passes here first: a number is refused, never changed.
pub fn check_exact(json: &str) -> Result<(), String> {
    let Some(number) = beyond_64_bits(json) else { return Ok(()) };
    let shown: String = number.chars().take(40).collect();
    let at = place_beyond_64_bits(json, "").map_or_else(String::new, |place| format!("`{place}`: "));
    Err(format!("{at}{shown} has more than 64 bits and would be rounded; pass it as a text"))
}

/// The refusal of what is nested deeper.
pub fn too_deep() -> String {
    format!("it is nested deeper than {} levels", limits::JSON_DEPTH_MAX)
}

/// The character that no stored text holds: PostgreSQL keeps none, and C reads it as the end.
pub const NUL: char = '\0';
/// What stands in its place where a text is only shown.
pub const NUL_SHOWN: &str = "\u{fffd}";

/// A JSON document kept as text. Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(Arc<str>);

/// Why a text is not usable as a payload.
#[derive(Debug, thiserror::Error)]
pub enum InvalidJson {
    #[error("not JSON: {}", json_error(.0))]
    Syntax(#[from] serde_json::Error),
    #[error("the JSON text is {bytes} bytes long, the limit is {max}; store large data elsewhere and pass a reference")]
    TooLarge { bytes: usize, max: usize },
}

impl Json {
    /// Parses to make sure that it is JSON, keeps the text.
    pub fn parse(text: &str, bytes_max: usize) -> Result<Self, InvalidJson> {
        if text.len() > bytes_max {
            return Err(InvalidJson::TooLarge { bytes: text.len(), max: bytes_max });
        }
        serde_json::from_str::<serde::de::IgnoredAny>(text)?;
        Ok(Self(text.into()))
    }

    /// Text that came out of the store or of a serializer, and so is JSON already.
    pub fn trusted(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::to_string(value).map(|text| Self(text.into()))
    }

    pub fn null() -> Self {
        Self("null".into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn to_value(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// The value, or why it cannot be had without changing a number.
    pub fn to_exact_value(&self) -> Result<serde_json::Value, String> {
        check_exact(&self.0)?;
        self.to_value().map_err(|error| format!("not JSON: {error}"))
    }

    pub fn decode<'de, T: Deserialize<'de>>(&'de self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl utoipa::PartialSchema for Json {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::SchemaType::AnyValue)
            .description(Some("Any JSON value, kept as the text that was sent."))
            .into()
    }
}

impl utoipa::ToSchema for Json {}

/// serde_json hands a value over as text where a newtype struct of this name is asked for. Where serde has read the
/// value already to look for a tag (`flatten`, `tag = "…"`), the text is gone and the value itself is what comes.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(RAW_VALUE, TextOrValue)
    }
}

struct TextOrValue;

impl<'de> Visitor<'de> for TextOrValue {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, text: A) -> Result<Json, A::Error> {
        let raw = Box::<RawValue>::deserialize(MapAccessDeserializer::new(text))?;
        Ok(Json(raw.get().into()))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, buffered: D) -> Result<Json, D::Error> {
        let value = serde_json::Value::deserialize(buffered)?;
        Ok(Json(value.to_string().into()))
    }
}

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

impl fmt::Display for Hash {
    /// In one piece: events on the hot path carry hashes, and a formatted write for each byte took 14 times as long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0_u8; 64];
        for (index, byte) in self.0.iter().enumerate() {
            text[2 * index] = HEX_DIGITS[usize::from(byte >> 4)];
            text[2 * index + 1] = HEX_DIGITS[usize::from(byte & 0x0f)];
        }
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A [`Hash`] that reads and writes as hexadecimal text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashHex(pub Hash);

impl Serialize for HashHex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for HashHex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut bytes = [0u8; 32];
        let parsed = text.len() == 64
            && bytes.iter_mut().enumerate().all(|(i, byte)| {
                text.get(2 * i..2 * i + 2)
                    .and_then(|pair| u8::from_str_radix(pair, 16).ok())
                    .map(|b| *byte = b)
                    .is_some()
            });
        parsed.then_some(Self(Hash(bytes))).ok_or_else(|| serde::de::Error::custom("expected 64 hexadecimal digits"))
    }
}

/// The canonical bytes (RFC 8785) of a value.
pub fn canonical<T: Serialize>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    // The canonicalizer cannot look into a [`Json`]'s text; a value tree has none.
    serde_json_canonicalizer::to_vec(&serde_json::to_value(value)?)
}

/// The hash of a value's canonical bytes: equal for texts that differ only in spacing, key order or number spelling. Whole
/// numbers that no double holds are rounded in the canonical form, so these count to the last digit besides.
pub fn canonical_hash<T: Serialize>(value: &T) -> Result<Hash, serde_json::Error> {
    let value = serde_json::to_value(value)?;
    let mut bytes = serde_json_canonicalizer::to_vec(&value)?;
    long_integers(&value, &mut bytes);
    Ok(Hash::of(&bytes))
}

/// Below this every whole number is a double.
const EXACT_DOUBLES: u64 = 1 << 53;

/// Appends the whole numbers that the canonical form rounds, in one order for all spellings of a value.
fn long_integers(value: &serde_json::Value, into: &mut Vec<u8>) {
    match value {
        serde_json::Value::Number(number) => {
            let size = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            if size.is_some_and(|size| size >= EXACT_DOUBLES) {
                into.push(b'\n');
                into.extend_from_slice(number.to_string().as_bytes());
            } else if size.is_none() && number.as_f64().is_some_and(|double| double.abs() >= EXACT_DOUBLES as f64) {
                // Its place is counted, so that no whole number is taken to stand there.
                into.extend_from_slice(b"\n.");
            }
        }
        serde_json::Value::Array(items) => {
            for item in items {
                long_integers(item, into);
            }
        }
        serde_json::Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            for (_, field) in fields {
                long_integers(field, into);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_reads_as_two_digits_a_byte() {
        for first in (0..=u8::MAX).step_by(32) {
            let mut bytes = [0_u8; 32];
            for (place, byte) in bytes.iter_mut().zip(first..=u8::MAX) {
                *place = byte;
            }
            let spelled = bytes.iter().fold(String::new(), |spelled, byte| spelled + &format!("{byte:02x}"));
            let hash = HashHex(Hash(bytes));
            assert_eq!(hash.0.to_string(), spelled);
            assert_eq!(serde_json::from_str::<HashHex>(&format!("\"{spelled}\"")).unwrap(), hash);
            assert_eq!(serde_json::to_string(&hash).unwrap(), format!("\"{spelled}\""));
        }
    }

    fn canon(text: &str) -> String {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        String::from_utf8(canonical(&value).unwrap()).unwrap()
    }

    #[test]
    fn a_number_that_would_be_rounded_is_refused_with_its_place() {
        for (json, place) in [
            (r#"{"a":[1,{"b c":18446744073709551616}]}"#, "`a[1].b c`: 18446744073709551616 has"),
            ("[[99999999999999999999]]", "`[0][0]`: 99999999999999999999 has"),
            ("-9223372036854775809", "-9223372036854775809 has"),
        ] {
            let refused = Json::trusted(json).to_exact_value().unwrap_err();
            assert!(refused.starts_with(place), "{refused}");
        }
        assert!(Json::trusted(r#"{"a":18446744073709551615,"b":"18446744073709551616"}"#).to_exact_value().is_ok());
        assert_eq!(check_exact(r#"{"a":18446744073709551615,"b":"18446744073709551616"}"#), Ok(()));
        assert!(check_exact(r#"{"a":18446744073709551616}"#).is_err());
    }

    #[test]
    fn whole_numbers_beyond_64_bits_are_found() {
        for (json, found) in [
            ("18446744073709551616", Some("18446744073709551616")),
            ("[1, {\"a\": -9223372036854775809}]", Some("-9223372036854775809")),
            ("[18446744073709551615, -9223372036854775808, 9223372036854775808]", None),
            ("[1e400, 123456789012345678901234567890.5, \"99999999999999999999\", \"\\\"99999999999999999999\"]", None),
            ("{\"99999999999999999999\": 1}", None),
        ] {
            assert_eq!(beyond_64_bits(json), found, "{json}");
        }
    }

    /// Hashes rest on it: without serde_json's `float_roundtrip` each of these is read as its neighbour.
    #[test]
    fn numbers_are_read_as_the_nearest_double() {
        for text in ["31.245270191439438", "121.48791951161945", "0.8470694970543062", "6.631236846766476e-122"] {
            let value: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(value.as_f64().unwrap().to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
        }
    }

    /// The worked example of RFC 8785 §3.2.2–3.2.3.
    #[test]
    fn rfc_8785_example() {
        let text = r#"{
            "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
            "literals": [null, true, false]
        }"#;
        assert_eq!(
            canon(text),
            r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#
        );
    }

    /// RFC 8785 §3.2.3: keys sort by UTF-16 code units, not by UTF-8 bytes.
    #[test]
    fn rfc_8785_sorting() {
        let text = r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#;
        let canonical = canon(text);
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        let order = ["\r", "1", "\u{80}", "\u{f6}", "\u{20ac}", "\u{1f600}", "\u{fb33}"];
        let positions: Vec<_> =
            order.iter().map(|key| canonical.find(value[*key].as_str().unwrap()).unwrap()).collect();
        assert!(positions.is_sorted(), "{canonical}");
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "kind")]
    enum Tagged {
        Call { with: Option<Json> },
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holder {
        input: Json,
        #[serde(flatten)]
        tagged: Tagged,
    }

    #[test]
    fn a_payload_is_kept_verbatim_and_survives_tags_and_flattening() {
        let text = r#"{"input":{ "n": 12345678901234567890123, "b":1.50 },"kind":"Call","with":{"a":[1,null]}}"#;
        let held: Holder = serde_json::from_str(text).unwrap();
        assert_eq!(held.input.as_str(), r#"{ "n": 12345678901234567890123, "b":1.50 }"#);
        let Tagged::Call { with } = &held.tagged;
        assert_eq!(with.as_ref().unwrap().as_str(), r#"{"a":[1,null]}"#);
        assert_eq!(serde_json::to_string(&held).unwrap(), text);
        let value = serde_json::from_str::<serde_json::Value>(r#"{"input":7,"kind":"Call","with":null}"#);
        let held: Holder = serde_json::from_value(value.unwrap()).unwrap();
        assert_eq!(held.input.as_str(), "7");
        assert_eq!(held.tagged, Tagged::Call { with: None });
    }

    #[test]
    fn a_payload_has_a_canonical_form_inside_other_data() {
        let tagged = Tagged::Call { with: Some(Json::trusted(r#"{ "b": 1.0, "a": "x" }"#)) };
        assert_eq!(canonical(&tagged).unwrap(), br#"{"kind":"Call","with":{"a":"x","b":1}}"#);
    }

    #[test]
    fn spelling_does_not_change_the_hash_but_meaning_does() {
        let hash = |text: &str| canonical_hash(&serde_json::from_str::<serde_json::Value>(text).unwrap()).unwrap();
        assert_eq!(hash(r#"{"b":1.0,"a":"x"}"#), hash(r#"{ "a" : "\u0078", "b" : 1 }"#));
        assert_ne!(hash(r#"{"n":7}"#), hash(r#"{"n":"7"}"#));
        let neighbours = ["9007199254740992", "9007199254740993", "-9007199254740993", "18446744073709551615"];
        let hashes: std::collections::BTreeSet<_> =
            neighbours.iter().map(|number| hash(&format!(r#"{{"b":[{number}],"a":1}}"#))).collect();
        assert_eq!(hashes.len(), neighbours.len(), "a double holds no two of them apart");
        assert_eq!(
            hash(r#"{"a":9007199254740993,"b":9007199254740995}"#),
            hash(r#"{ "b":9007199254740995, "a":9007199254740993 }"#)
        );
        assert_ne!(
            hash(r#"{"a":9007199254740993,"b":9007199254740992}"#),
            hash(r#"{"a":9007199254740992,"b":9007199254740993}"#)
        );
        assert_ne!(
            hash(r#"{"a":9007199254740993,"b":9007199254740992.0}"#),
            hash(r#"{"a":9007199254740992.0,"b":9007199254740993}"#)
        );
    }

    #[test]
    fn a_payload_keeps_its_text_and_has_a_limit() {
        let json = Json::parse(r#"{ "a": 1 }"#, 100).unwrap();
        assert_eq!(json.as_str(), r#"{ "a": 1 }"#);
        assert!(matches!(Json::parse("{", 100), Err(InvalidJson::Syntax(_))));
        assert!(matches!(Json::parse("[1,2,3]", 3), Err(InvalidJson::TooLarge { bytes: 7, max: 3 })));
    }
}
