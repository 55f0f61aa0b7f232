//! Proof of what happened, that others can check with a public key and nothing else.
//!
//! A tenant's audit log is a list of [`Entry`]s. Each carries the hash of the one before it (a chain), and is a leaf of an
//! RFC 6962 tree ([`tree`]) whose heads are signed ([`checkpoint`]). What is personal in an entry stands there as a salted
//! hash only ([`Commitments`]), so that it can be erased and the log still verifies. [`verify_log`] names the first bad
//! entry and the kind of tampering.
//!
//! An evidence bundle tells of one run ([`bundle`]): an in-toto statement in a DSSE envelope ([`envelope`]) with the run's
//! entries and the proof that they are in the log. [`verify_bundle`] gives two verdicts, integrity and completeness, and
//! [`page`] renders it for people.
//!
//! Everything here is a function of its arguments: no clock, no randomness, no I/O.

pub mod bundle;
pub mod checkpoint;
pub mod costs;
pub mod credentials;
pub mod details;
mod encoding;
pub mod entry;
pub mod envelope;
pub mod export;
pub mod key;
pub mod leave;
pub mod limits;
pub mod model_attempts;
pub mod page;
pub mod tiles;
pub mod tree;
pub mod verify_bundle;
pub mod verify_log;
pub mod writer;

pub use entry::{Body, Commitments, Entry, EntryOpening, EntrySalts};
pub use key::{PublicKey, SigningKey};
