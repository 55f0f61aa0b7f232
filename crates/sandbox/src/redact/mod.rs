//! Takes secrets out of output: those whose values are known, in every form in which programs print them, and what looks
//! like one.
//!
//! A [`Redactor`] belongs to one stream. What it makes of a stream does not depend on how the stream was cut into pieces:
//! it holds back the few bytes that may be the beginning of something.

mod forms;
mod patterns;
mod prefixes;
mod values;

use std::sync::Arc;

use patterns::Patterns;
use values::ValueScan;
pub use values::Values;

/// What stands in the output where a secret was.
pub const MARK: &str = "[redacted]";

#[derive(Debug)]
pub struct Redactor {
    values: ValueScan,
    patterns: Patterns,
    between: Vec<u8>,
}

impl Redactor {
    pub fn new(values: Arc<Values>) -> Self {
        Self { values: ValueScan::new(values), patterns: Patterns::default(), between: Vec::new() }
    }

    /// Adds to `out` what can be shown so far.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.between.clear();
        self.values.push(bytes, &mut self.between);
        self.patterns.push(&self.between, out);
    }

    /// The stream has ended: nothing that is held back can grow into a secret any more.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.between.clear();
        self.values.finish(&mut self.between);
        self.patterns.push(&self.between, out);
        self.patterns.finish(out);
    }

    /// Redacts a text that is there as a whole.
    pub fn whole(values: &Arc<Values>, text: &[u8]) -> Vec<u8> {
        let mut redactor = Self::new(Arc::clone(values));
        let mut out = Vec::new();
        redactor.push(text, &mut out);
        redactor.finish(&mut out);
        out
    }
}

#[cfg(test)]
mod tests;
