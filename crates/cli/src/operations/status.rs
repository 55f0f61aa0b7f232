//! `interlock status`: how everything stands, on one screen. Ends with 1 where something does not get better by itself.

use std::fmt::Write;
use std::time::Duration;

use clap::Args;
use interlock_core::text::visible::visible;
use interlock_core::time::Millis;
use interlock_protocol::operations::{AuditLogState, FeedState, StatusView, path};

use super::queue;
use crate::client::{Client, ClientArgs};
use crate::output::exit::{Exit, ExitError};
use crate::output::layouts;
use crate::output::paint::{Paint, Tone, run_tone};
use crate::output::table::{Cell, Table};
use crate::output::wrap::wrapped;
use crate::output::{Format, Printer, say, span};
use crate::run::list::state_words;
use crate::run::why;
use crate::worker::list::table as workers_table;

const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Puts the cursor at the top and clears the screen.
const TOP: &str = "\x1b[H\x1b[2J";

#[derive(Args)]
pub struct StatusArgs {
    #[command(flatten)]
    client: ClientArgs,
    /// Stay, and show it again every two seconds.
    #[arg(long, short)]
    watch: bool,
}

pub async fn run(args: StatusArgs) -> anyhow::Result<()> {
    let (client, printer) = args.client.open()?;
    if args.watch {
        return tokio::select! {
            ended = watch(&client, printer) => ended,
            _ = tokio::signal::ctrl_c() => Err(ExitError::silently(Exit::Interrupted)),
        };
    }
    let status = ask(&client).await?;
    printer.show(&status, |paint| page(&status, paint, Columns::of(printer)))?;
    if status.problems.is_empty() { Ok(()) } else { Err(ExitError::silently(Exit::Unsuccessful)) }
}

async fn ask(client: &Client) -> anyhow::Result<StatusView> {
    Ok(client.get(path::STATUS).send().await?)
}

async fn watch(client: &Client, printer: Printer) -> anyhow::Result<()> {
    loop {
        let status = ask(client).await?;
        let text = match printer.format {
            Format::Table if printer.terminal => format!("{TOP}{}", page(&status, printer.paint, Columns::of(printer))),
            Format::Table => page(&status, printer.paint, Columns::of(printer)),
            // One JSON document a line for YAML as well: few tools read a stream of YAML documents.
            Format::Json | Format::Yaml => serde_json::to_string(&status)?,
        };
        say(&text)?;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// How many columns tables and sentences have.
#[derive(Debug, Clone, Copy)]
struct Columns {
    tables: usize,
    prose: usize,
}

impl Columns {
    fn of(printer: Printer) -> Self {
        Self { tables: printer.width(), prose: printer.prose_width() }
    }
}

fn page(status: &StatusView, paint: Paint, columns: Columns) -> String {
    let (now, width) = (status.at, columns.tables);
    let mut text = String::new();
    // Writing to a string cannot fail.
    if status.problems.is_empty() {
        let _ = writeln!(text, "{}", paint.tone(Tone::Good, "All is well."));
    }
    for problem in &status.problems {
        let told = format!("{} {}", paint.tone(Tone::Bad, "✗"), visible(&problem.text));
        let _ = writeln!(text, "{}", wrapped(&told, columns.prose, 2));
    }
    heading(&mut text, paint, "Runs that have not ended");
    if status.runs.is_empty() {
        text.push_str("none\n");
    }
    for count in &status.runs {
        let words = state_words(count.state, count.detail, count.reason);
        let _ = writeln!(text, "{:>7}  {}", count.runs, paint.tone(run_tone(count.state), words));
    }
    if !status.oldest.is_empty() {
        heading(&mut text, paint, &format!("Waiting for a person: {}, the oldest", status.need_a_person));
    }
    for run in &status.oldest {
        let name = run.subject.as_deref().unwrap_or(&run.workflow);
        let state = paint.tone(run_tone(run.state), state_words(run.state, None, run.reason));
        let told = format!("{}  {}  {state}, {}", run.run_id, visible(name), span::away(run.created_at, now));
        let _ = writeln!(text, "{}", wrapped(&told, columns.prose, 4));
        for cause in &run.because {
            let told = format!("    {}", why::words(cause, now));
            let _ = writeln!(text, "{}", wrapped(&told, columns.prose, 4));
        }
    }
    if !status.approvals.is_empty() {
        heading(&mut text, paint, "Open approvals, the oldest");
        text.push_str(&approvals(status).render(paint, width));
    }
    if !status.queues.is_empty() {
        heading(&mut text, paint, "Queues");
        text.push_str(&queue::table(&status.queues, now).render(paint, width));
    }
    if !status.workers.is_empty() {
        heading(&mut text, paint, "Workers");
        text.push_str(&workers_table(&status.workers, now).render(paint, width));
    }
    if !status.endpoints.is_empty() {
        heading(&mut text, paint, "Webhook endpoints that get nothing");
        text.push_str(&endpoints(status).render(paint, width));
    }
    if let Some(feed) = status.feed {
        let _ = writeln!(text, "\n{}", paint.dim(wrapped(&feed_words(feed), columns.prose, 2)));
    }
    if let Some(audit) = status.audit {
        let _ = writeln!(text, "{}", paint.dim(wrapped(&audit_words(audit), columns.prose, 2)));
    }
    text
}

/// How far listeners can see, and how long committed events have waited to be sealed, which is what lets them see those.
fn feed_words(feed: FeedState) -> String {
    let waits = match feed.lag_ms {
        0 => "no event waits to be sealed".to_owned(),
        lag => format!("events have waited {} to be sealed, and listeners with them", span::span(Millis(lag))),
    };
    format!("feed at {}; {waits}", feed.cursor)
}

/// How far the audit log is, which is written from what was sealed.
fn audit_words(audit: AuditLogState) -> String {
    let entries = span::counted(audit.entries, "entry", "entries");
    let waits = match audit.lag_ms {
        0 => "no event waits to be written to it".to_owned(),
        lag => format!("events have waited {} to be written to it", span::span(Millis(lag))),
    };
    format!("audit log with {entries}; {waits}")
}

fn heading(text: &mut String, paint: Paint, words: &str) {
    let _ = writeln!(text, "\n{}", paint.bold(words));
}

fn approvals(status: &StatusView) -> Table {
    let mut table = Table::of(&layouts::STATUS_APPROVALS);
    for open in &status.approvals {
        table.row([
            Cell::new(open.approval.to_string()),
            Cell::new(open.run_id.to_string()),
            Cell::new(format!("{}/{}", open.approved, open.needed)),
            Cell::new(span::away(open.requested_at, status.at)),
            Cell::new(span::away(open.expires_at, status.at)),
            Cell::or_dash(open.message.as_ref()),
        ]);
    }
    table
}

fn endpoints(status: &StatusView) -> Table {
    let mut table = Table::of(&layouts::STATUS_ENDPOINTS);
    for endpoint in &status.endpoints {
        table.row([
            Cell::new(endpoint.endpoint_id.to_string()),
            Cell::new(&endpoint.url),
            Cell::new(endpoint.state.as_str()),
            Cell::or_dash(endpoint.failing_since.map(|at| span::span(status.at.since(at)))),
            Cell::new(endpoint.behind.to_string()),
            Cell::or_dash(endpoint.note.as_ref()),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use interlock_core::ids::{ApprovalId, RunId};
    use serde_json::json;
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    #[test]
    fn sentences_are_broken_where_the_screen_ends() {
        let status = json!({
            "at": 100_000, "runs": [], "need_a_person": 1, "queues": [], "workers": [], "approvals": [], "endpoints": [],
            "problems": [{
                "kind": "queue_without_workers",
                "text": "14 steps wait on queue `gpu`, and no living worker takes from it, as far as this server knows now",
            }],
            "oldest": [{
                "run_id": RunId::from_bytes([1; 16]), "workflow": "deploy", "subject": "INC-4711",
                "state": "waiting_approval", "created_at": 1_000,
                "because": [{
                    "cause": "approval", "approval": ApprovalId::from_bytes([2; 16]), "needed": 1, "approved_by": [],
                    "approvers": [], "excluded": ["olga"], "self_approval": true, "expires_at": 90_000_000,
                }],
            }],
            "feed": { "cursor": 7, "lag_ms": 2_500 },
            "audit": { "entries": 5, "lag_ms": 61_000 },
        });
        let status: StatusView = serde_json::from_value(status).unwrap();
        for prose in [60, 80] {
            let text = page(&status, Paint::OFF, Columns { tables: prose, prose });
            assert!(text.lines().all(|line| line.width() <= prose), "{prose}:\n{text}");
            assert!(!text.contains("not olga"), "{text}");
        }
        let whole = page(&status, Paint::OFF, Columns { tables: 400, prose: 400 });
        assert!(whole.contains("the tenant lets people approve their own runs"), "{whole}");
        assert!(whole.contains("feed at 7; events have waited 2.5 s to be sealed"), "{whole}");
        let audit = "audit log with 5 entries; events have waited 1 min 1 s to be written to it";
        assert!(whole.contains(audit), "{whole}");
    }

    #[test]
    fn a_problem_of_a_kind_that_is_not_known_here_is_told_in_the_servers_words() {
        let problem = json!({ "kind": "clock_astray", "text": "the clock of server `b` is 40 s off" });
        let status = json!({
            "at": 1, "runs": [], "need_a_person": 0, "queues": [], "workers": [], "approvals": [], "endpoints": [],
            "oldest": [], "problems": [problem],
        });
        let status: StatusView = serde_json::from_value(status).unwrap();
        assert!(page(&status, Paint::OFF, Columns { tables: 80, prose: 80 }).contains("`b` is 40 s off"));
        assert_eq!(serde_json::to_value(&status).unwrap()["problems"], json!([problem]), "as it came");
    }
}
