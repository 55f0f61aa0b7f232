//! `interlock backout`: back to steps in the server's own worker. Workers elsewhere get nothing new, finish or stop, and leave;
//! runs in flight are canceled with the reason `backout`. It may be repeated: what is done stays done. As long as something is left
//! of it, be it an effect that nobody knows the outcome of, it ends with 1.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use interlock_core::bulk::BulkAction;
use interlock_core::ids::SessionId;
use interlock_core::state::{Reason, RunState, WorkerState};
use interlock_core::tenant::WORKER_ORCHESTRATION;
use interlock_protocol::bulk::{BulkPreview, BulkView, PreviewBulk, StartBulk, path as bulk};
use interlock_protocol::identity::{ChangeTenant, Me, TenantView, path as identity};
use interlock_protocol::operations::{WorkerList, WorkerView, path as operations};
use interlock_protocol::runs::{RunQuery, States};
use reqwest::Method;
use serde::Serialize;
use tokio::time::Instant;

use super::doubts::DoubtsLeft;
use crate::client::{Client, ClientArgs, ClientError, fill};
use crate::output::Printer;
use crate::output::confirm::confirm;
use crate::output::exit::{Exit, ExitError};
use crate::output::span::counted;

const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Runs that have come since are canceled too, this often.
const CANCEL_AGAIN_AFTER: Duration = Duration::from_secs(5);

#[derive(Args)]
pub struct BackoutArgs {
    #[command(flatten)]
    client: ClientArgs,
    /// Do not ask.
    #[arg(long, short = 'y')]
    yes: bool,
    /// How long to wait for runs and workers to end, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    wait: u64,
}

/// What was found, and what is left.
#[derive(Debug, Default, Serialize)]
struct BackoutReport {
    runs_canceled: u64,
    workers_gone: usize,
    runs_left: u64,
    workers_left: Vec<String>,
    effects_in_doubt: DoubtsLeft,
}

pub async fn run(args: BackoutArgs) -> anyhow::Result<()> {
    let (client, printer) = args.client.open()?;
    let me: Me = client.get(identity::ME).send().await?;
    let runs = live(&client, every_live_state()).await?;
    let workers = elsewhere(&client).await?.iter().filter(|worker| !is_over(worker)).count();
    let (in_flight, workers) = (counted(runs.count, "run", "runs"), counted(workers as u64, "worker", "workers"));
    printer.note(&format!("{in_flight} in flight, {workers} elsewhere"));
    let question = format!("Switch {WORKER_ORCHESTRATION} off, cancel {in_flight} and send {workers} away?");
    confirm(args.yes, &question)?;
    let change = ChangeTenant { worker_orchestration: Some(false), ..ChangeTenant::default() };
    let tenant = fill(identity::TENANT, &[("tenant", &me.tenant)]);
    let _: TenantView = client.call(Method::PATCH, tenant).body(&change).send().await?;
    printer.note(&format!("{WORKER_ORCHESTRATION} is off: workers elsewhere get nothing new"));

    let report = BackoutReport::default();
    let mut backout = Backout { client: &client, printer, report, canceled_at: None, lived: HashSet::new() };
    let until = Instant::now() + Duration::from_secs(args.wait);
    let mut said = String::new();
    loop {
        backout.cancel_runs().await?;
        backout.send_workers_away().await?;
        let BackoutReport { runs_left, workers_left, .. } = &backout.report;
        if (*runs_left == 0 && workers_left.is_empty()) || Instant::now() >= until {
            break;
        }
        let (runs, workers) = (counted(*runs_left, "run", "runs"), workers_left.len() as u64);
        let progress = format!("not ended yet: {runs} and {}", counted(workers, "worker", "workers"));
        if progress != said {
            printer.note(&progress);
            said = progress;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    backout.report.effects_in_doubt = DoubtsLeft::of_canceled(&client, Reason::Backout).await?;
    told(printer, &backout.report)
}

fn told(printer: Printer, report: &BackoutReport) -> anyhow::Result<()> {
    printer.show(report, |_| {
        let mut text = format!(
            "{} canceled ({}), {} gone\n",
            counted(report.runs_canceled, "run", "runs"),
            Reason::Backout,
            counted(report.workers_gone as u64, "worker", "workers")
        );
        if report.runs_left > 0 || !report.workers_left.is_empty() {
            let workers =
                if report.workers_left.is_empty() { "none".to_owned() } else { report.workers_left.join(", ") };
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "left: {}, workers: {workers}. Repeat the command; `interlock run list` and `interlock worker list` \
                 say what they do.",
                counted(report.runs_left, "run", "runs")
            );
        }
        text.push_str(&report.effects_in_doubt.words());
        text
    })?;
    if report.effects_in_doubt.has_more_runs {
        printer.note("There are more canceled runs; of the oldest it was not looked up what they have left in doubt.");
    }
    let is_done = report.runs_left == 0 && report.workers_left.is_empty() && report.effects_in_doubt.count == 0;
    if is_done { Ok(()) } else { Err(ExitError::silently(Exit::Unsuccessful)) }
}

struct Backout<'a> {
    client: &'a Client,
    printer: Printer,
    report: BackoutReport,
    canceled_at: Option<Instant>,
    /// Sessions that were seen alive: of those that were over before, only the traces are removed.
    lived: HashSet<SessionId>,
}

impl Backout<'_> {
    /// Cancels what is in flight, and again what has come since.
    async fn cancel_runs(&mut self) -> anyhow::Result<()> {
        self.report.runs_left = live(self.client, every_live_state()).await?.count;
        let waits = self.canceled_at.is_some_and(|at| at.elapsed() < CANCEL_AGAIN_AFTER);
        if self.report.runs_left == 0 || waits {
            return Ok(());
        }
        self.canceled_at = Some(Instant::now());
        // Between the count and the job runs end by themselves; then it is counted again.
        for _ in 0..10 {
            let filter = cancelable();
            let expected_count = live(self.client, filter.clone()).await?.count;
            if expected_count == 0 {
                break;
            }
            let reason = Reason::Backout.to_string();
            let body = StartBulk { action: BulkAction::Cancel, filter, expected_count, reason, rollback: false };
            let key = format!("cli-{:032x}", fastrand::u128(..));
            match self.client.post(bulk::BULK, &body).idempotency_key(key).send::<BulkView>().await {
                Ok(job) => {
                    let job = self.follow(job).await?;
                    self.report.runs_canceled += u64::from(job.succeeded);
                    break;
                }
                Err(ClientError::Refused { problem, .. }) if problem.code == "BULK_COUNT_MISMATCH" => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.report.runs_left = live(self.client, every_live_state()).await?.count;
        Ok(())
    }

    async fn follow(&self, mut job: BulkView) -> anyhow::Result<BulkView> {
        let mut said = 0;
        while !job.finished {
            tokio::time::sleep(LOOK_EVERY).await;
            job = self.client.get(fill(bulk::JOB, &[("job", &job.job_id)])).send().await?;
            if job.done > said {
                said = job.done;
                self.printer.note(&format!("{} of {} runs canceled", job.done, job.total));
            }
        }
        Ok(job)
    }

    /// Drains workers that live, and forgets those that are over.
    async fn send_workers_away(&mut self) -> anyhow::Result<()> {
        let mut left = Vec::new();
        for worker in elsewhere(self.client).await? {
            let at = |path: &str| fill(path, &[("session", &worker.session_id)]);
            if !is_over(&worker) {
                self.lived.insert(worker.session_id);
            }
            match worker.state {
                _ if is_over(&worker) => match self.client.call(Method::DELETE, at(operations::WORKER)).done().await {
                    Ok(()) => self.report.workers_gone += usize::from(self.lived.contains(&worker.session_id)),
                    Err(ClientError::Refused { .. }) => left.push(worker.worker),
                    Err(error) => return Err(error.into()),
                },
                WorkerState::Draining | WorkerState::Offline => left.push(worker.worker),
                WorkerState::Online | WorkerState::Maintenance | WorkerState::Errored => {
                    let drained = self.client.post(at(operations::WORKER_DRAIN), &serde_json::json!({}));
                    let _: WorkerView = drained.send().await?;
                    left.push(worker.worker);
                }
            }
        }
        self.report.workers_left = left;
        Ok(())
    }
}

async fn live(client: &Client, filter: RunQuery) -> anyhow::Result<BulkPreview> {
    Ok(client.post(bulk::PREVIEW, &PreviewBulk { action: None, filter }).send().await?)
}

fn every_live_state() -> RunQuery {
    let states = RunState::ALL.iter().copied().filter(|state| !state.is_terminal());
    RunQuery { state: States(states.collect()), ..RunQuery::default() }
}

/// A rollback under way comes to its end.
fn cancelable() -> RunQuery {
    let mut query = every_live_state();
    query.state.0.retain(|state| *state != RunState::RollingBack);
    query
}

/// Its session has ended, and nothing of it is left to wait for.
fn is_over(worker: &WorkerView) -> bool {
    worker.state == WorkerState::Offline && worker.running == 0
}

/// The tenant's workers that are not inside a server, also those that are over.
async fn elsewhere(client: &Client) -> anyhow::Result<Vec<WorkerView>> {
    let list: WorkerList = client.get(operations::WORKERS).query("all", Some(true)).send().await?;
    Ok(list.workers.into_iter().filter(|worker| !worker.shared).collect())
}
