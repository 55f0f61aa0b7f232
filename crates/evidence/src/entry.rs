//! One entry of the log: its canonical form, the chain, the leaf, and the salted hashes that stand in for personal data.

use std::collections::BTreeMap;
use std::fmt;

use interlock_core::ids::RunId;
use interlock_core::json::{Hash, HashHex};
use interlock_core::time::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::encoding::{HashText, from_hex, hex, opt_hash};
use crate::tree;

/// What the first entry of a log has as its predecessor's hash.
pub const FIRST_PREV: Hash = Hash([0; 32]);

/// Sixteen random bytes: enough that a short text cannot be guessed from its hash.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Salt(pub [u8; 16]);

impl Salt {
    /// What a salt is overwritten with when the data that it hides is erased.
    pub const ERASED: Self = Self([0; 16]);
}

impl fmt::Debug for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Salt(…)")
    }
}

impl Serialize for Salt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for Salt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        from_hex(&text).map(Self).ok_or_else(|| serde::de::Error::custom("expected 32 hexadecimal digits"))
    }
}

/// The salts of one entry. The leaf's hides the entry from those who get a proof about another one, and stays; the
/// commitments' goes when the personal data of the entry is erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntrySalts {
    pub leaf: Salt,
    pub commitments: Salt,
}

impl EntrySalts {
    pub const BYTES: usize = 32;

    /// Salts drawn from a seed that is random and kept nowhere.
    pub fn draw(seed: &[u8; 32], number: u64) -> Self {
        let bytes: [u8; 32] = Sha256::new()
            .chain_update(b"interlock audit salts\0")
            .chain_update(seed)
            .chain_update(number.to_be_bytes())
            .finalize()
            .into();
        Self::from_bytes(&bytes)
    }

    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let (mut leaf, mut commitments) = ([0; 16], [0; 16]);
        leaf.copy_from_slice(&bytes[..16]);
        commitments.copy_from_slice(&bytes[16..]);
        Self { leaf: Salt(leaf), commitments: Salt(commitments) }
    }

    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(&self.leaf.0);
        bytes[16..].copy_from_slice(&self.commitments.0);
        bytes
    }
}

/// Salted hashes of what may be personal. The tag keeps a hash of one field from passing as another's.
#[derive(Debug, Clone, Copy)]
pub struct Commitments(pub Salt);

impl Commitments {
    /// Who did it.
    pub fn actor(&self, name: &str) -> Hash {
        self.commit("actor", name)
    }

    /// What exactly happened, as the JSON text that is kept.
    pub fn details(&self, text: &str) -> Hash {
        self.commit("details", text)
    }

    /// The state of a row that changes (a receipt, an approval), as canonical JSON.
    pub fn pin(&self, id: &str, canonical: &str) -> Hash {
        self.commit("pin", &format!("{id}\0{canonical}"))
    }

    fn commit(&self, field: &str, text: &str) -> Hash {
        let digest = Sha256::new()
            .chain_update(b"interlock audit commitment\0")
            .chain_update(field.as_bytes())
            .chain_update([0])
            .chain_update(self.0.0)
            .chain_update(text.as_bytes());
        Hash(digest.finalize().into())
    }
}

/// What an entry says, apart from its place. The fields stand in the order of their names, so that plain JSON is the
/// canonical form (RFC 8785): all numbers are whole and below 2^53, and a test holds the two against each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// Salted hash of the person's name.
    #[serde(default, serialize_with = "opt_hash", skip_serializing_if = "Option::is_none")]
    pub actor: Option<HashHex>,
    pub at: Timestamp,
    /// Salted hash of the details.
    #[serde(default, serialize_with = "opt_hash", skip_serializing_if = "Option::is_none")]
    pub details: Option<HashHex>,
    /// `user`, `system`, `timeout` …
    pub initiator: String,
    /// Salted hashes of receipts and approvals as they stood, by id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pins: BTreeMap<String, HashHex>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The run's events that the entry stands for, from the first to the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<(u64, u64)>,
    /// What else it is about, by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Names of the events.
    pub types: Vec<String>,
}

/// A body in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub body: Body,
    pub index: u64,
    pub origin: String,
    pub prev: Hash,
}

/// The canonical form of an entry, fields in the order of their names.
#[derive(Serialize)]
struct CanonicalEntry<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<HashText>,
    at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<HashText>,
    index: u64,
    initiator: &'a str,
    origin: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pins: &'a BTreeMap<String, HashHex>,
    prev: HashText,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<(u64, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    types: &'a [String],
}

/// As it is read back: unknown fields are refused, because they would not be part of the hash.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadEntry {
    #[serde(default)]
    actor: Option<HashHex>,
    at: Timestamp,
    #[serde(default)]
    details: Option<HashHex>,
    index: u64,
    initiator: String,
    origin: String,
    #[serde(default)]
    pins: BTreeMap<String, HashHex>,
    prev: HashHex,
    #[serde(default)]
    run: Option<RunId>,
    #[serde(default)]
    seq: Option<(u64, u64)>,
    #[serde(default)]
    subject: Option<String>,
    types: Vec<String>,
}

impl Entry {
    fn canonical_view(&self) -> CanonicalEntry<'_> {
        let Body { actor, at, details, initiator, pins, run, seq, subject, types } = &self.body;
        CanonicalEntry {
            actor: actor.map(|hash| HashText(hash.0)),
            at: *at,
            details: details.map(|hash| HashText(hash.0)),
            index: self.index,
            initiator,
            origin: &self.origin,
            pins,
            prev: HashText(self.prev),
            run: *run,
            seq: *seq,
            subject: subject.as_deref(),
            types,
        }
    }

    /// The bytes that are hashed.
    pub fn canonical(&self) -> String {
        serde_json::to_string(&self.canonical_view()).expect("an entry is plain data")
    }

    /// The hash that the next entry carries.
    pub fn hash(&self) -> Hash {
        Hash::of(self.canonical().as_bytes())
    }

    /// The entry's leaf in the tree.
    pub fn leaf(&self, salt: Salt) -> Hash {
        leaf(salt, self.hash())
    }
}

/// A leaf, of the entry with this hash.
pub fn leaf(salt: Salt, entry: Hash) -> Hash {
    let mut data = [0; 48];
    data[..16].copy_from_slice(&salt.0);
    data[16..].copy_from_slice(&entry.0);
    tree::leaf_hash(&data)
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.canonical_view().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ReadEntry { actor, at, details, index, initiator, origin, pins, prev, run, seq, subject, types } =
            ReadEntry::deserialize(deserializer)?;
        let body = Body { actor, at, details, initiator, pins, run, seq, subject, types };
        Ok(Self { body, index, origin, prev: prev.0 })
    }
}

/// The values behind an entry's hashes, which open its commitments, as far as they are still there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryOpening {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// JSON, as the text that was hashed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    pub salt: Salt,
}

/// Which of an entry's hashes the opened value does not belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenedMismatch {
    Actor,
    Details,
}

impl EntryOpening {
    /// Holds what is shown against the entry's hashes.
    pub fn check(&self, body: &Body) -> Result<(), OpenedMismatch> {
        let commitments = Commitments(self.salt);
        let fits = |shown: Option<Hash>, held: Option<HashHex>| shown.is_none() || shown == held.map(|hash| hash.0);
        if !fits(self.actor.as_deref().map(|name| commitments.actor(name)), body.actor) {
            return Err(OpenedMismatch::Actor);
        }
        if !fits(self.details.as_deref().map(|text| commitments.details(text)), body.details) {
            return Err(OpenedMismatch::Details);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use interlock_core::json::canonical;
    use proptest::prelude::*;

    use super::*;

    fn bodies() -> impl Strategy<Value = Body> {
        let hash = || proptest::option::of(any::<[u8; 32]>().prop_map(|bytes| HashHex(Hash(bytes))));
        let pins = proptest::collection::btree_map("[a-z_\u{e9}\u{1f600}\u{fb33}0-9]{1,8}", any::<[u8; 32]>(), 0..3);
        let run = proptest::option::of(any::<u128>());
        let seq = proptest::option::of((0u64..1 << 50, 0u64..1 << 50));
        let texts = (".*", proptest::option::of(".*"), proptest::collection::vec(".*", 0..3));
        (hash(), hash(), 0i64..1 << 50, pins, run, seq, texts).prop_map(
            |(actor, details, at, pins, run, seq, (initiator, subject, types))| Body {
                actor,
                at: Timestamp(at),
                details,
                initiator,
                // Interlock writes only ids as keys: ASCII, where the order of bytes is the order of UTF-16.
                pins: pins
                    .into_iter()
                    .filter(|(id, _)| id.is_ascii())
                    .map(|(id, hash)| (id, HashHex(Hash(hash))))
                    .collect(),
                run: run.map(|run| RunId::from_bytes(run.to_be_bytes())),
                seq,
                subject,
                types,
            },
        )
    }

    proptest! {
        #[test]
        fn plain_json_is_the_canonical_form(body in bodies(), index in 0u64..1 << 50, prev in any::<[u8; 32]>()) {
            let entry = Entry { body, index, origin: "interlock/a/b".into(), prev: Hash(prev) };
            prop_assert_eq!(canonical(&entry).unwrap(), entry.canonical().into_bytes());
            let back: Entry = serde_json::from_str(&entry.canonical()).unwrap();
            prop_assert_eq!(back, entry);
        }
    }

    #[test]
    fn opened_values_belong_to_their_hashes() {
        let salts = EntrySalts::draw(&[7; 32], 1);
        let commitments = Commitments(salts.commitments);
        let body = Body {
            actor: Some(HashHex(commitments.actor("ann"))),
            at: Timestamp(1),
            details: Some(HashHex(commitments.details("{}"))),
            initiator: "user".into(),
            pins: BTreeMap::new(),
            run: None,
            seq: None,
            subject: None,
            types: vec!["login.succeeded".into()],
        };
        let opened = |actor: &str, details: &str| EntryOpening {
            actor: Some(actor.into()),
            details: Some(details.into()),
            salt: salts.commitments,
        };
        assert_eq!(opened("ann", "{}").check(&body), Ok(()));
        assert_eq!(opened("bob", "{}").check(&body), Err(OpenedMismatch::Actor));
        assert_eq!(opened("ann", "[]").check(&body), Err(OpenedMismatch::Details));
        // A name that an entry without an actor is shown with.
        let nobody = Body { actor: None, ..body };
        assert_eq!(opened("ann", "{}").check(&nobody), Err(OpenedMismatch::Actor));
        assert_ne!(commitments.actor("{}"), commitments.details("{}"), "one field's hash is not another's");
    }

    #[test]
    fn salts_differ_by_entry_and_survive() {
        let (one, other) = (EntrySalts::draw(&[1; 32], 1), EntrySalts::draw(&[1; 32], 2));
        assert_ne!(one, other);
        assert_ne!(one, EntrySalts::draw(&[2; 32], 1));
        assert_ne!(one.leaf, one.commitments);
        assert_eq!(EntrySalts::from_bytes(&one.to_bytes()), one);
        assert!(!format!("{one:?}").contains(char::is_numeric));
    }
}
