//! The signed head of a log, as C2SP's tlog-checkpoint and signed-note describe it: three lines (origin, size, root), an
//! empty line, and signatures.

use interlock_core::json::Hash;

use crate::encoding::{base64, from_base64};
use crate::key::{PublicKey, SigningKey};
use crate::limits::{CHECKPOINT_BYTES_MAX, SIGNATURES_MAX};

/// What a line with a signature begins with: an em dash and a space.
const SIGNATURE_MARK: &str = "\u{2014} ";

/// The head of a log at some size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub origin: String,
    pub size: u64,
    pub root: Hash,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    #[error("this is no checkpoint: {0}")]
    Malformed(&'static str),
    #[error("no signature on the checkpoint of `{origin}` is by this key: it was made by another server, or altered")]
    NotSigned { origin: String },
}

impl Checkpoint {
    fn body(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, base64(&self.root.0))
    }

    /// The note, signed.
    pub fn sign(&self, key: &SigningKey) -> String {
        let body = self.body();
        let public = key.public();
        let signature = [public.note_id().as_slice(), &key.sign(body.as_bytes())].concat();
        format!("{body}\n{SIGNATURE_MARK}{} {}\n", public.name, base64(&signature))
    }

    /// What a note says, if the key has signed it. Signatures by others are passed over; one that says it is by the key and is
    /// not spoils the note, whatever else stands there.
    pub fn open(note: &str, key: &PublicKey) -> Result<Self, CheckpointError> {
        use CheckpointError::Malformed;
        if note.len() > CHECKPOINT_BYTES_MAX {
            return Err(Malformed("it is too long"));
        }
        let (body, signatures) = note.rsplit_once("\n\n").ok_or(Malformed("it has no signatures"))?;
        let body = format!("{body}\n");
        let mut lines = body.lines();
        let origin = lines.next().filter(|origin| !origin.is_empty()).ok_or(Malformed("it has no origin"))?;
        let size = lines.next().unwrap_or_default();
        let is_number = size == "0" || (!size.starts_with('0') && size.bytes().all(|byte| byte.is_ascii_digit()));
        let size = size.parse().ok().filter(|_| is_number).ok_or(Malformed("its second line is no size"))?;
        let root = lines.next().and_then(from_base64).and_then(|bytes| bytes.try_into().ok());
        let root = Hash(root.ok_or(Malformed("its third line is no hash"))?);
        if lines.next().is_some() {
            // The format allows extension lines here; Interlock writes none, and refuses what it does not understand.
            return Err(Malformed("it has lines that are not understood"));
        }
        let lines = signatures.lines().take(SIGNATURES_MAX);
        let by_key: Vec<bool> = lines.filter_map(|line| is_good(key, line, body.as_bytes())).collect();
        if by_key.is_empty() && signatures.lines().count() > SIGNATURES_MAX {
            return Err(Malformed("it has more signatures than are looked at, and none of those is by this key"));
        }
        if by_key.is_empty() || by_key.contains(&false) {
            return Err(CheckpointError::NotSigned { origin: origin.to_owned() });
        }
        Ok(Self { origin: origin.to_owned(), size, root })
    }
}

/// Whether the signature on a line is good; none where it does not say that it is by the key.
fn is_good(key: &PublicKey, line: &str, body: &[u8]) -> Option<bool> {
    let (name, signature) = line.strip_prefix(SIGNATURE_MARK)?.split_once(' ')?;
    let signature = from_base64(signature)?;
    let (id, signature) = signature.split_first_chunk::<4>()?;
    let named = PublicKey { name: name.to_owned(), bytes: key.bytes };
    let is_by_key = (key.name.is_empty() || key.name == name) && named.note_id() == *id;
    is_by_key.then(|| key.verifies(body, signature))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> SigningKey {
        SigningKey::from_seed("interlock/one", &[3; 32])
    }

    #[test]
    fn a_checkpoint_is_read_back_by_its_key_only() {
        let head = Checkpoint { origin: "interlock/one/ten_1/1".into(), size: 20_852_163, root: Hash([9; 32]) };
        let note = head.sign(&key());
        assert_eq!(Checkpoint::open(&note, key().public()), Ok(head.clone()));
        let pem = PublicKey::parse(&key().public().to_pem()).unwrap();
        assert_eq!(Checkpoint::open(&note, &pem), Ok(head.clone()), "a key without a name verifies, too");
        // Witnesses add their own signatures.
        let other = SigningKey::from_seed("witness", &[4; 32]);
        let theirs = head.sign(&other);
        let both = format!("{note}{}", theirs.rsplit_once("\n\n").unwrap().1);
        assert_eq!(Checkpoint::open(&both, key().public()), Ok(head.clone()));
        assert_eq!(Checkpoint::open(&both, other.public()), Ok(head));
        assert!(matches!(Checkpoint::open(&theirs, key().public()), Err(CheckpointError::NotSigned { .. })));
        // Not every line that somebody has added is looked at.
        let (body, own) = note.rsplit_once("\n\n").unwrap();
        let line = theirs.rsplit_once("\n\n").unwrap().1;
        let many = format!("{body}\n\n{}{own}", line.repeat(SIGNATURES_MAX));
        assert!(matches!(Checkpoint::open(&many, key().public()), Err(CheckpointError::Malformed(_))));
        // A second signature in the key's name that is not good is no witness.
        let forged = Checkpoint { origin: "o".into(), size: 1, root: Hash([8; 32]) }.sign(&key());
        let spoiled = format!("{note}{}", forged.rsplit_once("\n\n").unwrap().1);
        assert!(matches!(Checkpoint::open(&spoiled, key().public()), Err(CheckpointError::NotSigned { .. })));
    }

    /// The verifier of signed notes needs nothing but the note and the key's line: the shape of every line is the specification's.
    #[test]
    fn a_checkpoint_is_written_as_the_specification_says() {
        let note = Checkpoint { origin: "interlock/one/ten_1/1".into(), size: 0, root: Hash([0; 32]) }.sign(&key());
        let lines: Vec<_> = note.split('\n').collect();
        assert_eq!(lines[..4], ["interlock/one/ten_1/1", "0", &base64(&[0; 32]), ""]);
        let (name, signature) = lines[4].strip_prefix("\u{2014} ").unwrap().split_once(' ').unwrap();
        assert_eq!((name, lines[5], lines.len()), ("interlock/one", "", 6), "one signature, and a last newline");
        let signature = from_base64(signature).unwrap();
        assert_eq!((signature.len(), &signature[..4]), (4 + 64, key().public().note_id().as_slice()));
        assert!(!key().public().verifies(lines[..3].join("\n").as_bytes(), &signature[4..]), "the last newline counts");
        assert!(key().public().verifies(format!("{}\n", lines[..3].join("\n")).as_bytes(), &signature[4..]));
    }

    #[test]
    fn whatever_is_changed_in_it_is_noticed() {
        let note = Checkpoint { origin: "o".into(), size: 12, root: Hash([9; 32]) }.sign(&key());
        for at in 0..note.len() {
            let mut bytes = note.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            assert!(Checkpoint::open(&changed, key().public()).is_err(), "byte {at} of\n{changed}");
        }
        for bad in ["", "\n\n", "o\n12\nAAAA\n\n", "o\n012\n", "o\n1\nx\n\n\u{2014} a b\n"] {
            assert!(Checkpoint::open(bad, key().public()).is_err(), "{bad}");
        }
    }
}
