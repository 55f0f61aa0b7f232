//! A named bound for everything that a bundle or an evaluation can make grow.

use std::time::Duration;

pub const MODULES_MAX: usize = 200;
pub const MODULE_BYTES_MAX: usize = 256 << 10;
/// All modules together.
pub const SOURCE_BYTES_MAX: usize = 1 << 20;
/// What it may take to read one module: its characters, each as often as the nesting makes the parser go over it.
pub const READING_COST_MAX: u64 = 4_000_000;
/// Operators of one expression.
pub const OPERATORS_MAX: usize = 256;
pub const DATA_BYTES_MAX: usize = 1 << 20;
pub const RULES_MAX: usize = 2_000;
/// An input document, with the bound fields of the action.
pub const INPUT_BYTES_MAX: usize = 2 << 20;

/// What one evaluation may do: expressions evaluated, rules entered, loops gone round. It is counted, not timed: whether a
/// policy stays below it does not depend on the machine.
pub const WORK_MAX: u64 = 200_000;
/// How long one evaluation may compute, for what a count does not see: operations on large values.
pub const EVALUATION_TIME_MAX: Duration = Duration::from_millis(250);
/// After how much work the limits are looked at.
pub const WORK_INTERVAL: u32 = 8;
/// Rules that may stand above each other: each takes room on the stack of the thread that evaluates.
pub const RULES_DEEP_MAX: usize = 32;
/// The same where tests of a bundle stand above its rules.
pub const TEST_RULES_DEEP_MAX: usize = 40;
/// What one test of a bundle may do, and how long it may take.
pub const TEST_WORK_MAX: u64 = 10_000_000;
pub const TEST_TIME_MAX: Duration = Duration::from_secs(5);

/// All that the limited functions make in one evaluation: bytes of texts, and 64 for each element of a list.
pub const MADE_BYTES_MAX: usize = 16 << 20;
/// A text that a policy puts together.
pub const TEXT_BYTES_MAX: usize = 64 << 10;
/// A list that one call makes.
pub const LIST_MAX: usize = 10_000;
/// A text that is searched, and the pattern.
pub const SEARCHED_BYTES_MAX: usize = 64 << 10;
pub const PATTERN_BYTES_MAX: usize = 1 << 10;
/// What a pattern may come to when it is compiled.
pub const PATTERN_PROGRAM_BYTES_MAX: usize = 64 << 10;

/// The JSON text of an answer.
pub const ANSWER_BYTES_MAX: usize = 128 << 10;
pub const REASONS_MAX: usize = 64;
pub const REASON_BYTES_MAX: usize = 1 << 10;
pub const GROUPS_MAX: usize = 64;
pub const QUORUM_MAX: u32 = 10;

const _: () = assert!(MODULE_BYTES_MAX <= SOURCE_BYTES_MAX);
const _: () = assert!(RULES_DEEP_MAX < TEST_RULES_DEEP_MAX);
const _: () = assert!(WORK_INTERVAL as u64 * 100 < WORK_MAX);
const _: () = assert!(REASON_BYTES_MAX <= TEXT_BYTES_MAX);
