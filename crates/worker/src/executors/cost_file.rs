//! The file in which a program says what it has cost: one JSON object a line, like the `cost` of a worker's report.
//!
//! The worker keeps it locked while it needs it. The kernel takes the lock off when the worker dies, which tells the next
//! one that the file was left behind ([`sweep`]).

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use interlock_core::cost::Cost;
use interlock_core::text::json_words::json_error;
use interlock_core::text::visible::visible;
use interlock_core::work::output::OutputStream;
use interlock_sandbox::redact::{Redactor, Values};
use rustix::fs::OFlags;
use tracing::warn;

use crate::context::TaskContext;

/// The variable that names the file to the program.
pub(super) const VARIABLE: &str = "INTERLOCK_COST_FILE";
/// How much of the file is read.
const BYTES_MAX: usize = 64 * 1024;
/// How much is said of what is wrong with it.
const NOTE_CHARS_MAX: usize = 300;
/// Names that are tried until one is free.
const NAMES_TRIED: usize = 8;
/// What the names of all files begin with.
const PREFIX: &str = "interlock-cost-";

/// An empty file for one run of a program. It is read and removed when this is dropped, which is before the attempt is
/// reported: what a program has paid counts however it ended.
pub(super) struct CostFile<'a> {
    path: PathBuf,
    /// Keeps the lock.
    _locked: File,
    context: &'a TaskContext,
}

impl<'a> CostFile<'a> {
    /// Nothing where the worker has no directory for temporary files: the program runs, and cannot say what it costs.
    pub fn new(context: &'a TaskContext) -> Option<Self> {
        let mut made = Err(io::Error::from(io::ErrorKind::AlreadyExists));
        for _ in 0..NAMES_TRIED {
            made = fresh(&std::env::temp_dir());
            if !matches!(&made, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
                break;
            }
        }
        match made {
            Ok((path, locked)) => Some(Self { path, _locked: locked, context }),
            Err(error) => {
                warn!(%error, task = context.task(), "no temporary file can be made: the program cannot report a cost");
                None
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for CostFile<'_> {
    fn drop(&mut self) {
        let written = read(&self.path);
        // The program may have removed it.
        let _ = fs::remove_file(&self.path);
        let Reported { cost, wrong } = match written {
            Ok(written) => reported(&written),
            Err(error) => Reported::unreadable(format!("the file cannot be read: {error}")),
        };
        if let Some(wrong) = wrong {
            let wrong: String = visible(&wrong).chars().take(NOTE_CHARS_MAX).collect();
            let note = format!(
                "interlock: {VARIABLE}: {wrong}. Write one object a line, such as {{\"micros\": 12500}}. What it cost \
                 counts as not known.\n"
            );
            // It quotes what the program has written.
            let note = redacted(&note);
            warn!(run = %self.context.run(), step = self.context.step(), "{}", note.trim_end());
            self.context.output().push(OutputStream::Stderr, note.as_bytes());
        }
        if let Some(cost) = cost {
            self.context.spend(cost);
        }
    }
}

/// Without what looks like a secret, as the program's own output is shown.
fn redacted(note: &str) -> String {
    let mut redactor = Redactor::new(Values::none());
    let mut shown = Vec::new();
    redactor.push(note.as_bytes(), &mut shown);
    redactor.finish(&mut shown);
    String::from_utf8_lossy(&shown).into_owned()
}

/// A new file that only this user can read, locked where the folder's file system has locks.
fn fresh(folder: &Path) -> io::Result<(PathBuf, File)> {
    let path = folder.join(format!("{PREFIX}{:016x}", fastrand::u64(..)));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    // A worker that starts just now may have taken it for one that was left behind.
    let is_swept = matches!(file.try_lock(), Err(TryLockError::WouldBlock)) || !path.exists();
    if is_swept { Err(io::ErrorKind::AlreadyExists.into()) } else { Ok((path, file)) }
}

/// Removes the files that dead workers of this user have left behind.
pub(crate) fn sweep(folder: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !is_name(&entry.file_name().to_string_lossy()) {
            continue;
        }
        let Ok(file) = open(&entry.path()) else { continue };
        let is_own = file.metadata().is_ok_and(|found| found.is_file() && found.uid() == own);
        if is_own && file.try_lock().is_ok() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether it is a name that [`fresh`] makes: what a person has called alike is theirs.
fn is_name(name: &str) -> bool {
    let number = name.strip_prefix(PREFIX);
    number.is_some_and(|number| number.len() == 16 && number.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Neither a link nor a pipe in the file's place is followed or waited for.
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// What the program has written, up to one byte more than may be.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = match open(path) {
        Ok(file) => file,
        // It was removed: nothing is said.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no file any more"));
    }
    let mut written = Vec::new();
    file.take(BYTES_MAX as u64 + 1).read_to_end(&mut written)?;
    Ok(written)
}

/// What a program has reported.
#[derive(Debug, PartialEq)]
struct Reported {
    /// All lines together.
    cost: Option<Cost>,
    /// The first thing that is wrong.
    wrong: Option<String>,
}

impl Reported {
    /// Something was paid, and it is not known how much.
    fn unreadable(wrong: String) -> Self {
        Self { cost: Some(Cost { unpriced: true, ..Cost::default() }), wrong: Some(wrong) }
    }
}

fn reported(written: &[u8]) -> Reported {
    if written.len() > BYTES_MAX {
        return Reported::unreadable(format!("the file has more than {BYTES_MAX} bytes"));
    }
    let mut sum: Option<Cost> = None;
    let mut wrong = None;
    for (number, line) in written.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let cost = cost_of(line).unwrap_or_else(|what| {
            wrong.get_or_insert_with(|| format!("line {} is no cost: {what}", number + 1));
            Cost { unpriced: true, ..Cost::default() }
        });
        sum = Some(match sum.take() {
            Some(before) => before.plus(cost),
            None => cost,
        });
    }
    if let Some(what) = sum.as_ref().and_then(|sum| sum.check().err()) {
        return Reported::unreadable(format!("all lines together: {what}"));
    }
    Reported { cost: sum, wrong }
}

fn cost_of(line: &[u8]) -> Result<Cost, String> {
    let cost: Cost = serde_json::from_slice(line).map_err(|error| json_error(&error))?;
    cost.check()?;
    Ok(cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_add_up() {
        let found = reported(b"{\"micros\": 5, \"unit\": \"USD\"}\n\n  {\"micros\": 7, \"output_tokens\": 3}\r\n");
        let cost = found.cost.unwrap();
        assert_eq!((cost.micros, cost.unit.as_deref(), cost.output_tokens), (12, Some("USD"), Some(3)));
        assert_eq!((cost.unpriced, found.wrong), (false, None));
        assert_eq!(reported(b"\n"), Reported { cost: None, wrong: None });
    }

    #[test]
    fn what_a_dead_worker_left_is_swept_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("interlock-costs-swept-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let (used, locked) = fresh(&folder).unwrap();
        let [left, other, link] =
            ["0123456789abcdef", "report.csv", "0123456789abcde0"].map(|rest| folder.join(format!("{PREFIX}{rest}")));
        for path in [&left, &other] {
            fs::write(path, "{}").unwrap();
        }
        std::os::unix::fs::symlink(&other, &link).unwrap();
        sweep(&folder);
        assert!(used.exists() && other.exists() && link.is_symlink() && !left.exists());
        // As the kernel does when the worker dies.
        drop(locked);
        sweep(&folder);
        assert!(!used.exists());
        fs::remove_dir_all(&folder).unwrap();
    }

    /// Nothing that was paid is forgotten because it was told badly.
    #[test]
    fn what_is_no_cost_counts_as_one_without_a_price() {
        for (text, says) in [
            ("{\"micros\": 5}\n5 dollars\n", "line 2 is no cost"),
            ("{\"micros\": -5}\n", "line 1 is no cost"),
            ("{\"micros\": 5, \"colour\": 1}\n", "colour"),
            ("{\"micros\": 5, \"unit\": \"US D\"}\n", "the name of a unit"),
        ] {
            let found = reported(text.as_bytes());
            assert!(found.cost.unwrap().unpriced, "{text}");
            assert!(found.wrong.as_deref().unwrap().contains(says), "{:?}", found.wrong);
        }
        let found = reported(&vec![b' '; BYTES_MAX + 1]);
        assert!(found.cost.unwrap().unpriced && found.wrong.unwrap().contains("bytes"));
    }
}
