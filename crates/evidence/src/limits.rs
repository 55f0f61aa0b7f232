//! Bounds on what is read from files that others made.

/// A checkpoint: three lines and a few signatures.
pub const CHECKPOINT_BYTES_MAX: usize = 16 << 10;
/// Signatures on one checkpoint or envelope that are looked at.
pub const SIGNATURES_MAX: usize = 32;
/// One line of an exported log.
pub const LINE_BYTES_MAX: usize = 4 << 20;
/// Entries of a log that is verified in one go.
pub const ENTRIES_MAX: usize = 50_000_000;
/// A bundle, as its envelope.
pub const BUNDLE_BYTES_MAX: usize = 64 << 20;
/// Hashes in one proof: as many as a tree of 2^63 leaves needs.
pub const PROOF_HASHES_MAX: usize = 64;
