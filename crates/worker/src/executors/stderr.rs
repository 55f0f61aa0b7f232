//! The standard error of a program: without what looks like a secret, shown live, echoed by the worker line by line, and its
//! end kept for the error's message.

use interlock_core::text::visible::visible;
use interlock_core::work::output::OutputStream;
use interlock_sandbox::redact::{Redactor, Values};
use tracing::info;

use super::process::STDERR_TAIL_BYTES;
use crate::context::TaskContext;

/// The longest line that is echoed as one.
const LINE_BYTES_MAX: usize = 4 << 10;

pub(super) struct ProgramErrors<'a> {
    context: &'a TaskContext,
    redactor: Redactor,
    shown: Vec<u8>,
    kept: Vec<u8>,
    line: Vec<u8>,
}

impl<'a> ProgramErrors<'a> {
    pub fn new(context: &'a TaskContext) -> Self {
        let redactor = Redactor::new(Values::none());
        Self { context, redactor, shown: Vec::new(), kept: Vec::new(), line: Vec::new() }
    }

    pub fn take(&mut self, bytes: &[u8]) {
        self.redactor.push(bytes, &mut self.shown);
        self.show();
    }

    /// The end of it all, as text.
    pub fn end(mut self) -> String {
        self.redactor.finish(&mut self.shown);
        self.show();
        self.echo();
        String::from_utf8_lossy(&self.kept).trim().to_owned()
    }

    fn show(&mut self) {
        let shown = std::mem::take(&mut self.shown);
        self.context.output().push(OutputStream::Stderr, &shown);
        for part in shown.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") || self.line.len() >= LINE_BYTES_MAX {
                self.echo();
            }
        }
        self.kept.extend_from_slice(&shown);
        let excess = self.kept.len().saturating_sub(STDERR_TAIL_BYTES);
        self.kept.drain(..excess);
    }

    fn echo(&mut self) {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if !text.is_empty() {
            let (step, attempt) = (self.context.step(), self.context.attempt());
            info!(target: "interlock_worker::stderr", run = %self.context.run(), step, attempt, "{}", visible(text));
        }
    }
}
