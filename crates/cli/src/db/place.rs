//! Where a command finds the payloads of a store.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use interlock_engine::payloads::Objects;
use interlock_engine::payloads::survey::{LostPayload, Progress, Survey};

use crate::output::say_on;
use crate::output::span::bytes;
use crate::server::PAYLOADS_FOLDER;
use crate::server::outbound::OutboundArgs;

/// Beside a backup: the payloads that it refers to.
const PAYLOADS_SUFFIX: &str = ".payloads";

#[derive(Args)]
pub struct PlaceArgs {
    /// Where the store's payloads are, as the server has it: a folder, or `s3://BUCKET/PREFIX`; by default `payloads` in the
    /// data folder.
    #[arg(long, env = "INTERLOCK_PAYLOADS", value_name = "PLACE")]
    payloads: Option<String>,
    #[command(flatten)]
    outbound: OutboundArgs,
}

impl PlaceArgs {
    /// A bucket's name, where payloads are in one.
    pub fn bucket(&self) -> Option<&str> {
        self.payloads.as_deref().filter(|place| place.contains("://"))
    }

    pub fn named(&self, data: &Path) -> String {
        self.payloads.clone().unwrap_or_else(|| data.join(PAYLOADS_FOLDER).display().to_string())
    }

    /// The place to write to; a folder is made.
    pub fn open(&self, data: &Path) -> anyhow::Result<Objects> {
        Ok(Objects::open(&self.named(data), &self.outbound.client()?)?)
    }

    /// The place to read from; a folder has to be there.
    pub fn open_to_read(&self, data: &Path) -> anyhow::Result<Objects> {
        let place = self.named(data);
        anyhow::ensure!(
            self.bucket().is_some() || Path::new(&place).is_dir(),
            "the store refers to payloads in a folder, and there is no {place}: name it with --payloads"
        );
        self.open(data)
    }
}

/// The folder beside a backup.
pub fn beside(backup: &Path) -> PathBuf {
    let mut name = backup.as_os_str().to_owned();
    name.push(PAYLOADS_SUFFIX);
    PathBuf::from(name)
}

/// One line on a terminal that counts up, and goes when it is done; nothing elsewhere.
pub fn progress(what: &'static str, of: Option<u64>) -> impl FnMut(Progress) {
    let line = Line::new();
    move |Progress { references, bytes: read }| {
        let of = of.map(|of| format!(" of {of}")).unwrap_or_default();
        line.show(&format!("{what} {references}{of}, {}", bytes(read)));
    }
}

/// The line that a terminal shows while something goes on.
pub struct Line {
    shown: bool,
}

impl Line {
    pub fn new() -> Self {
        Self { shown: std::io::stderr().is_terminal() }
    }

    pub fn show(&self, text: &str) {
        if self.shown {
            let mut stderr = std::io::stderr();
            // A line that cannot be shown does no harm.
            let _ = write!(stderr, "\r{text}\x1b[K");
            let _ = stderr.flush();
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.show("");
    }
}

/// Names what is lost, by who refers to it.
pub fn tell_lost(survey: &Survey) {
    for LostPayload { row, holder, error } in &survey.lost {
        say_on(&format!("{}\t{}\t{holder}\t{error}", error.code(), row.tenant));
    }
    let more = survey.lost_total - survey.lost.len() as u64;
    if more > 0 {
        say_on(&format!("and {more} more"));
    }
}
