//! `interlock approval list`.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use clap::Args;
use interlock_core::ids::{ApprovalId, RunId};
use interlock_core::state::ApprovalState;
use interlock_core::time::Timestamp;
use interlock_protocol::approvals::{ApprovalList, ApprovalView, path};
use interlock_protocol::identity::limits;
use interlock_protocol::runs::RunView;

use crate::client::Client;
use crate::output::exit::{Ended, Exit};
use crate::output::paint::Tone;
use crate::output::table::{Cell, Table};
use crate::output::{Format, Printer, say, span};
use crate::run::{find, show};

const LOOK_EVERY: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub struct ListApprovalsArgs {
    /// Those in this state: requested, approved, rejected, expired, canceled; `requested` by default.
    #[arg(long, value_name = "STATE")]
    state: Option<ApprovalState>,
    /// Those of this run, whatever became of them.
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// How many at most.
    #[arg(long, short = 'n', default_value_t = 50)]
    limit: usize,
    /// Stay, and print each one that comes to be asked.
    #[arg(long, short, conflicts_with = "state")]
    watch: bool,
}

pub async fn run(client: &Client, printer: Printer, args: ListApprovalsArgs) -> anyhow::Result<()> {
    if args.watch {
        return tokio::select! {
            ended = watch(client, printer, &args) => ended,
            _ = tokio::signal::ctrl_c() => Err(Ended::silently(Exit::Interrupted)),
        };
    }
    let approvals = fetch(client, &args).await?;
    let runs = if printer.format == Format::Table { runs_of(client, &approvals).await? } else { HashMap::new() };
    printer.list(&approvals, |_| table(&approvals, &runs), "Nothing waits for anybody's word.")
}

/// The runs that the approvals are about, for their workflows and subjects.
async fn runs_of(client: &Client, approvals: &[ApprovalView]) -> anyhow::Result<HashMap<RunId, RunView>> {
    let mut runs = HashMap::new();
    for approval in approvals {
        if let Entry::Vacant(unknown) = runs.entry(approval.run_id) {
            unknown.insert(show::view(client, approval.run_id).await?);
        }
    }
    Ok(runs)
}

async fn fetch(client: &Client, args: &ListApprovalsArgs) -> anyhow::Result<Vec<ApprovalView>> {
    let run = match &args.run {
        Some(run) => Some(find::run(client, run).await?),
        None => None,
    };
    let mut approvals: Vec<ApprovalView> = Vec::new();
    let mut after = None;
    while approvals.len() < args.limit {
        let count = (args.limit - approvals.len()).min(limits::PAGE_MAX);
        let call = client.get(path::APPROVALS).query("state", args.state).query("run", run);
        let page: ApprovalList = call.query("limit", Some(count)).query("after", after).send().await?;
        approvals.extend(page.approvals);
        after = page.next_after;
        if after.is_none() {
            break;
        }
    }
    Ok(approvals)
}

async fn watch(client: &Client, printer: Printer, args: &ListApprovalsArgs) -> anyhow::Result<()> {
    let mut seen: BTreeSet<ApprovalId> = BTreeSet::new();
    printer.note("Waiting for approvals to be asked; Ctrl-C ends it.");
    loop {
        let open = fetch(client, args).await?;
        for approval in open.iter().filter(|approval| !seen.contains(&approval.approval)) {
            // One document a line, whichever format: a stream of YAML documents helps nobody.
            let text = match printer.format {
                Format::Table => {
                    let message = approval.message.as_deref().unwrap_or("(without a message)");
                    let message = interlock_core::text::visible::visible(message);
                    format!("{}  {}  {message}", span::clock(approval.requested_at), approval.approval)
                }
                Format::Json | Format::Yaml => serde_json::to_string(approval)?,
            };
            say(&text)?;
        }
        // What is not open any more cannot come again.
        seen = open.iter().map(|approval| approval.approval).collect();
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn table(approvals: &[ApprovalView], runs: &HashMap<RunId, RunView>) -> Table {
    let now = span::now();
    let mut table = Table::new([
        "APPROVAL",
        "WORKFLOW",
        "SUBJECT",
        "QUESTION",
        "STATE",
        "VOTES",
        "EXPIRES",
        "ASKED",
        "APPROVERS",
        "RUN",
    ])
    .with_ids([0, 9])
    .dispensable([9, 8, 7, 4, 1]);
    for approval in approvals {
        let yes = approval.votes.iter().filter(|vote| vote.approve).count();
        let groups = if approval.approvers.is_empty() { "anybody".to_owned() } else { approval.approvers.join(", ") };
        let run = runs.get(&approval.run_id);
        table.row([
            Cell::new(approval.approval.to_string()),
            Cell::or_dash(run.map(|run| &run.workflow)),
            Cell::or_dash(run.and_then(|run| run.subject.as_ref())),
            Cell::or_dash(approval.message.as_ref()),
            Cell::toned(super::tone(approval.state), approval.state.as_str()),
            Cell::new(format!("{yes}/{}", approval.quorum)),
            expires(approval, now),
            Cell::new(span::away(approval.requested_at, now)),
            Cell::new(groups),
            Cell::new(approval.run_id.to_string()),
        ]);
    }
    table
}

fn expires(approval: &ApprovalView, now: Timestamp) -> Cell {
    match approval.state {
        ApprovalState::Requested => Cell::new(span::away(approval.expires_at, now)),
        _ => Cell::toned(Tone::Dim, "-"),
    }
}
