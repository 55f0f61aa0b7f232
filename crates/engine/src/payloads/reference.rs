//! What stands in a row instead of a long payload: its length and its hash, under the store's own mark. The mark is a
//! secret of the store, so that no input, output or signal can pass for a reference.

use interlock_core::json::HashHex;
use interlock_core::json::{Hash, Json};
/// The name of the field that a reference begins with.
pub(crate) use interlock_core::run::metrics::PAYLOAD_MARK;
use serde::Deserialize;

/// A payload by its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    pub sha256: Hash,
    pub bytes: u64,
}

/// Reads and writes references of one store.
pub(crate) struct Mark {
    prefix: String,
}

#[derive(Deserialize)]
struct StoredReference {
    bytes: u64,
    sha256: HashHex,
}

impl Mark {
    pub fn new(mark: &str) -> Self {
        Self { prefix: format!(r#"{{"{PAYLOAD_MARK}":"{mark}","#) }
    }

    pub fn is_on(&self, json: &Json) -> bool {
        json.as_str().starts_with(&self.prefix)
    }

    pub fn read(&self, json: &Json) -> Option<Reference> {
        let rest = json.as_str().strip_prefix(&self.prefix)?;
        let StoredReference { bytes, sha256 } = serde_json::from_str(&format!("{{{rest}")).ok()?;
        Some(Reference { sha256: sha256.0, bytes })
    }

    /// All references in a text. The mark is a secret, and its quotation marks cannot stand inside of a JSON text, so
    /// nothing else looks like one.
    pub fn all_in(&self, text: &str) -> Vec<Json> {
        let begins = text.match_indices(&self.prefix).map(|(at, _)| at);
        let texts = begins.filter_map(|at| text[at..].find('}').map(|end| text[at..=at + end].to_owned()));
        let mut found: Vec<Json> = texts.map(Json::trusted).filter(|json| self.read(json).is_some()).collect();
        found.dedup();
        found
    }

    pub fn write(&self, reference: &Reference) -> Json {
        let Reference { sha256, bytes } = reference;
        Json::trusted(format!(r#"{}"bytes":{bytes},"sha256":"{sha256}"}}"#, self.prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_bears_the_mark_is_a_reference() {
        let mark = Mark::new("0123");
        let reference = Reference { sha256: Hash::of(b"x"), bytes: 70_000 };
        let written = mark.write(&reference);
        assert!(written.to_value().is_ok(), "{written:?} is JSON");
        assert_eq!(mark.read(&written), Some(reference));
        let stranger = Mark::new("4567").write(&reference);
        for other in [stranger, Json::null(), Json::trusted(r#"{"$interlock.payload":"0123"}"#)] {
            assert_eq!(mark.read(&other), None);
        }
    }
}
