//! `interlock run logs`: what the steps of a run have written, and, with `--follow`, what they write.

use std::io::Write;
use std::time::Duration;

use clap::Args;
use interlock_core::ids::RunId;
use interlock_core::text::nearest::hint;
use interlock_core::text::visible::visible;
use interlock_core::work::output::OutputStream;
use interlock_protocol::output::{OutputId, OutputPage, OutputView};
use interlock_protocol::runs::path;

use super::{RunArg, find, show};
use crate::client::live::output::{OutputFollow, OutputUpdate};
use crate::client::{Client, fill};
use crate::output::exit::{Exit, ExitError};
use crate::output::paint::{Paint, Tone};
use crate::output::terminal::shown;
use crate::output::{Format, Printer, say};

/// Between two looks at a run whose steps have all ended, and which has not.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
pub struct LogsArgs {
    #[command(flatten)]
    run: RunArg,
    /// Only this step, by its key.
    #[arg(long, value_name = "STEP")]
    step: Option<String>,
    /// This attempt; by default the newest of each step, with --follow all of them.
    #[arg(long, value_name = "NUMBER", requires = "step")]
    attempt: Option<u32>,
    /// Stay, and print what the steps write until the run ends.
    #[arg(long, short)]
    follow: bool,
}

pub async fn run(client: &Client, printer: Printer, args: LogsArgs) -> anyhow::Result<()> {
    let run = find::run(client, &args.run.run).await?;
    let logs = Logs { client, printer, run, attempt: args.attempt };
    let printing = async {
        if args.follow { logs.follow(args.step.as_deref()).await } else { logs.print(args.step.as_deref()).await }
    };
    tokio::select! {
        ended = printing => ended,
        _ = tokio::signal::ctrl_c() => Err(ExitError::silently(Exit::Interrupted)),
    }
}

struct Logs<'a> {
    client: &'a Client,
    printer: Printer,
    run: RunId,
    attempt: Option<u32>,
}

impl Logs<'_> {
    async fn keys(&self, wanted: Option<&str>) -> anyhow::Result<Vec<String>> {
        let steps = show::steps(self.client, self.run).await?;
        let keys = steps.into_iter().map(|step| step.key);
        let Some(wanted) = wanted else { return Ok(keys.collect()) };
        let keys: Vec<String> = keys.collect();
        if keys.iter().any(|key| key == wanted) {
            return Ok(vec![wanted.to_owned()]);
        }
        let hint = hint(wanted, keys.iter().map(String::as_str));
        Err(ExitError::saying(Exit::NotFound, format!("the run has no step `{wanted}`; {hint}")))
    }

    /// What is there.
    async fn print(&self, step: Option<&str>) -> anyhow::Result<()> {
        let mut any = false;
        for key in self.keys(step).await? {
            let (mut attempt, mut after) = (self.attempt, 0);
            loop {
                let page = page(self.client, self.run, &key, (attempt, after)).await?;
                if after == 0 && !page.chunks.is_empty() {
                    self.head(&key, page.attempt);
                }
                any |= !page.chunks.is_empty();
                for chunk in &page.chunks {
                    self.chunk(&key, chunk)?;
                }
                if !page.more || page.chunks.is_empty() {
                    break;
                }
                (attempt, after) = (Some(page.attempt), page.next_after);
            }
        }
        if !any {
            self.printer.note("Nothing was written.");
        }
        Ok(())
    }

    /// What comes, step after step: one runs at a time.
    async fn follow(&self, step: Option<&str>) -> anyhow::Result<()> {
        let mut done = 0;
        loop {
            let keys = self.keys(step).await?;
            for key in keys.iter().skip(done) {
                self.follow_step(key).await?;
            }
            done = keys.len();
            if step.is_some() || show::view(self.client, self.run).await?.state.is_terminal() {
                return Ok(());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    async fn follow_step(&self, key: &str) -> anyhow::Result<()> {
        let mut follow = OutputFollow::new(self.client.clone(), self.run, key.to_owned(), self.attempt);
        let mut shown = OutputId::default();
        loop {
            match follow.next().await? {
                OutputUpdate::Chunks(chunks) => {
                    for chunk in &chunks {
                        if chunk.attempt != shown.attempt {
                            self.head(key, chunk.attempt);
                        }
                        shown = OutputId { attempt: chunk.attempt, seq: chunk.seq };
                        self.chunk(key, chunk)?;
                    }
                }
                OutputUpdate::Lost(what) => self.printer.note(&format!("{what}; reconnecting …")),
                OutputUpdate::End => return Ok(()),
            }
        }
    }

    fn head(&self, key: &str, attempt: u32) {
        self.printer.note(&format!("── {}, attempt {attempt} ──", visible(key)));
    }

    fn chunk(&self, step: &str, chunk: &OutputView) -> anyhow::Result<()> {
        if self.printer.format != Format::Table {
            let line = serde_json::json!({
                "step": step,
                "attempt": chunk.attempt,
                "seq": chunk.seq,
                "stream": chunk.stream,
                "at": chunk.at,
                "text": chunk.text,
            });
            return say(&line.to_string());
        }
        write_out(&painted(chunk, self.printer.paint, self.printer.terminal))
    }
}

pub async fn page(
    client: &Client,
    run: RunId,
    step: &str,
    (attempt, after): (Option<u32>, u64),
) -> anyhow::Result<OutputPage> {
    let call = client.get(fill(path::OUTPUT, &[("run", &run), ("step", &step)]));
    Ok(call.query("attempt", attempt).query("after", Some(after)).send().await?)
}

/// A chunk as it is printed: on a terminal it may colour, and nothing else.
pub fn painted(chunk: &OutputView, paint: Paint, terminal: bool) -> String {
    let text = if terminal { shown(&chunk.text, paint.is_on()) } else { chunk.text.clone() };
    match chunk.stream {
        OutputStream::Status => {
            let (line, end) = text.strip_suffix('\n').map_or((text.as_str(), ""), |line| (line, "\n"));
            format!("{}{end}", paint.tone(Tone::Dim, line))
        }
        OutputStream::Stdout | OutputStream::Stderr => text,
    }
}

/// Exactly this text on stdout. A reader that has gone away ends the command in peace.
fn write_out(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Err(ExitError::silently(Exit::Unsuccessful)),
        done => Ok(done?),
    }
}
