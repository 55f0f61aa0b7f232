//! `interlock bulk`: one action on many runs. What it is about is shown first, and acted on only if it is still that.

use std::fmt::Write as _;
use std::time::Duration;

use clap::{Args, Subcommand};
use interlock_core::bulk::BulkAction;
use interlock_core::ids::JobId;
use interlock_core::text::visible::visible;
use interlock_protocol::bulk::{
    BulkFailureList, BulkFailureView, BulkList, BulkPreview, BulkView, PreviewBulk, StartBulk, path,
};
use interlock_protocol::runs::RunQuery;
use serde::Serialize;

use crate::client::{Client, ClientArgs, fill};
use crate::output::confirm::confirm;
use crate::output::exit::{Exit, ExitError};
use crate::output::layouts;
use crate::output::paint::{Paint, Tone};
use crate::output::span::counted;
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};
use crate::run::filter::FilterArgs;
use crate::run::list::table as runs_table;

/// How often a job is asked how far it is.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// Failures that are shown; the rest is counted.
const FAILURES_SHOWN: usize = 20;

#[derive(Args)]
pub struct BulkArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    verb: BulkVerb,
}

#[derive(Subcommand)]
enum BulkVerb {
    /// Show which runs a filter matches now, and do nothing.
    Preview(FilterArgs),
    /// Cancel the runs that the filter matches: nothing further starts.
    Cancel(BulkCancelArgs),
    /// Retry the step that stopped each run that the filter matches; a finished run gets a successor.
    Retry(ActArgs),
    /// Resume the paused runs that the filter matches.
    Resume(ActArgs),
    /// List jobs, newest first.
    List,
    /// Show how far a job is, and what went wrong.
    Show {
        /// The job's id.
        job: JobId,
    },
}

#[derive(Debug, Args)]
struct ActArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Why; it stands with the job, and in the history of a run that is canceled.
    #[arg(long)]
    reason: String,
    /// How many runs it is about; if the filter matches another number, nothing is done. By default as many as the
    /// preview has shown.
    #[arg(long, value_name = "COUNT")]
    expect: Option<u64>,
    /// Do not ask.
    #[arg(long, short = 'y')]
    yes: bool,
    /// Do not stay until the job has ended.
    #[arg(long)]
    no_wait: bool,
}

#[derive(Debug, Args)]
struct BulkCancelArgs {
    #[command(flatten)]
    act: ActArgs,
    /// Undo first what each run has done.
    #[arg(long)]
    rollback: bool,
}

pub async fn run(args: BulkArgs) -> anyhow::Result<()> {
    let (client, printer) = args.client.open()?;
    match args.verb {
        BulkVerb::Preview(filter) => {
            let preview = preview(&client, filter.query()?, None).await?;
            printer.show(&preview, |paint| matched(&preview, printer, paint))
        }
        BulkVerb::Cancel(BulkCancelArgs { act, rollback }) => {
            start(&client, printer, BulkAction::Cancel, act, rollback).await
        }
        BulkVerb::Retry(act) => start(&client, printer, BulkAction::Retry, act, false).await,
        BulkVerb::Resume(act) => start(&client, printer, BulkAction::Resume, act, false).await,
        BulkVerb::List => list(&client, printer).await,
        BulkVerb::Show { job } => {
            let view = client.get(fill(path::JOB, &[("job", &job)])).send().await?;
            told(&client, printer, view).await
        }
    }
}

async fn preview(client: &Client, filter: RunQuery, action: Option<BulkAction>) -> anyhow::Result<BulkPreview> {
    if filter == RunQuery::default() {
        let what = "say which runs are meant, as in `--workflow deploy --state failed`; a job on every run is refused";
        return Err(ExitError::saying(Exit::Usage, what));
    }
    Ok(client.post(path::PREVIEW, &PreviewBulk { action, filter }).send().await?)
}

fn matches(count: u64) -> String {
    if count == 1 { "1 run matches".to_owned() } else { format!("{count} runs match") }
}

fn matched(preview: &BulkPreview, printer: Printer, paint: Paint) -> String {
    let mut text = format!("{}\n", matches(preview.count));
    if !preview.sample.is_empty() {
        text.push_str(&runs_table(&preview.sample, paint).render(paint, printer.width()));
    }
    let more = preview.count.saturating_sub(preview.sample.len() as u64);
    if more > 0 {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "and {more} more");
    }
    text
}

async fn start(
    client: &Client,
    printer: Printer,
    action: BulkAction,
    args: ActArgs,
    rollback: bool,
) -> anyhow::Result<()> {
    let filter = args.filter.query()?;
    let preview = preview(client, filter.clone(), Some(action)).await?;
    printer.note(matched(&preview, printer, printer.paint).trim_end());
    if let Some(expect) = args.expect.filter(|expect| *expect != preview.count) {
        let what = format!("{}, not {expect}; nothing was done", matches(preview.count));
        return Err(ExitError::saying(Exit::Refused, what));
    }
    if preview.count == 0 {
        return Err(ExitError::saying(Exit::NotFound, "nothing was done"));
    }
    let undo = if rollback { " and undo" } else { "" };
    let verb = capitalised(action.as_str());
    let these = if preview.count == 1 { "this run".to_owned() } else { format!("these {} runs", preview.count) };
    confirm(args.yes, &format!("{verb}{undo} {these}?"))?;
    let body = StartBulk { action, filter, expected_count: preview.count, reason: args.reason, rollback };
    // With a key of its own, a request whose answer was lost can be sent again.
    let key = format!("cli-{:032x}", fastrand::u128(..));
    let mut job: BulkView = client.post(path::BULK, &body).idempotency_key(key).send().await?;
    if args.no_wait {
        return printer.show(&job, |_| format!("{} is under way; `interlock bulk show {0}` follows it\n", job.job_id));
    }
    let mut said = 0;
    while !job.finished {
        tokio::time::sleep(LOOK_EVERY).await;
        job = client.get(fill(path::JOB, &[("job", &job.job_id)])).send().await?;
        if job.done > said {
            said = job.done;
            printer.note(&format!("{} of {}", job.done, counted(job.total.into(), "run", "runs")));
        }
    }
    told(client, printer, job).await
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A job with the runs that it left as they were.
#[derive(Serialize)]
struct JobReport {
    #[serde(flatten)]
    job: BulkView,
    failures: Vec<BulkFailureView>,
}

async fn told(client: &Client, printer: Printer, job: BulkView) -> anyhow::Result<()> {
    let mut failures = Vec::new();
    if job.failed > 0 {
        let call = client.get(fill(path::FAILURES, &[("job", &job.job_id)])).query("limit", Some(FAILURES_SHOWN));
        failures = call.send::<BulkFailureList>().await?.failures;
    }
    let failed = job.failed;
    let told = JobReport { job, failures };
    printer.show(&told, |paint| page(&told, printer, paint))?;
    if failed == 0 { Ok(()) } else { Err(ExitError::silently(Exit::Unsuccessful)) }
}

fn page(told: &JobReport, printer: Printer, paint: Paint) -> String {
    let JobReport { job, failures } = told;
    let state = if job.finished { "finished" } else { "under way" };
    let mut text = format!(
        "{}  {} {}: {}\n{state}, {} done, {} left as they were\n",
        paint.bold(job.job_id),
        job.action,
        counted(job.total.into(), "run", "runs"),
        visible(&job.reason),
        job.succeeded,
        job.failed
    );
    if !failures.is_empty() {
        let mut table = Table::of(&layouts::BULK_FAILURES);
        for failure in failures {
            table.row([
                Cell::new(failure.run_id.to_string()),
                Cell::toned(Tone::Bad, &failure.code),
                Cell::new(&failure.message),
            ]);
        }
        text.push('\n');
        text.push_str(&table.render(paint, printer.width()));
    }
    text
}

async fn list(client: &Client, printer: Printer) -> anyhow::Result<()> {
    let list: BulkList = client.get(path::BULK).send().await?;
    let now = span::now();
    let table = |_| {
        let mut table = Table::of(&layouts::BULK_JOBS);
        for job in &list.jobs {
            let state = if job.finished { Cell::toned(Tone::Dim, "finished") } else { Cell::new("under way") };
            table.row([
                Cell::new(job.job_id.to_string()),
                Cell::new(job.action.as_str()),
                Cell::new(job.total.to_string()),
                Cell::new(job.done.to_string()),
                Cell::new(job.failed.to_string()),
                state,
                Cell::new(span::away(job.created_at, now)),
                Cell::new(&job.reason),
            ]);
        }
        table
    };
    printer.list(&list.jobs, table, "There are no jobs.")
}
