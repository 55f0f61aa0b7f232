//! Bounds of a workflow file. What a plan may hold is bounded in `interlock_core::limits`.

/// The text of one file.
pub const SOURCE_BYTES_MAX: usize = 256 << 10;
/// How deep mappings and lists may nest.
pub const DEPTH_MAX: usize = 32;
/// Values of one file, with every alias counted as often as it is used.
pub const NODES_MAX: usize = 50_000;
/// The bytes of those values, counted alike: what a file becomes wherever it is written out.
pub const EXPANDED_BYTES_MAX: usize = 4 << 20;
/// Diagnostics of one file; the rest is only counted.
pub const DIAGNOSTICS_MAX: usize = 50;
pub const INPUTS_MAX: usize = 100;
/// How deep an input's schema may nest.
pub const INPUT_DEPTH_MAX: usize = 8;
pub const PATTERN_BYTES_MAX: usize = 1 << 10;
/// What the program of a pattern may become, in an input or in `matches`.
pub const PATTERN_PROGRAM_BYTES_MAX: usize = 1 << 20;
pub const TRIGGERS_MAX: usize = 50;
pub const ARGV_MAX: usize = 256;
pub const DESCRIPTION_BYTES_MAX: usize = 4 << 10;

const _: () = assert!(SOURCE_BYTES_MAX * 8 <= EXPANDED_BYTES_MAX, "a file without aliases is not too large");
const _: () = assert!(SOURCE_BYTES_MAX < interlock_core::limits::PAYLOAD_BYTES_MAX);
