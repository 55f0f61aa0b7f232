//! `interlock approval list`.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use interlock_core::ids::ApprovalId;
use interlock_core::plan::tier::Tier;
use interlock_core::state::ApprovalState;
use interlock_core::text::visible::visible;
use interlock_core::time::Timestamp;
use interlock_protocol::approvals::{ApprovalList, ApprovalOrder, ApprovalView, path};
use interlock_protocol::identity::limits;

use crate::client::Client;
use crate::identity::key::millis;
use crate::output::exit::{Exit, ExitError};
use crate::output::layouts;
use crate::output::paint::Tone;
use crate::output::table::{Cell, Table};
use crate::output::{Format, Printer, say, span};
use crate::run::find;

const LOOK_EVERY: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub struct ListApprovalsArgs {
    /// Those in this state: requested, approved, rejected, expired, canceled; `requested` by default.
    #[arg(long, value_name = "STATE")]
    state: Option<ApprovalState>,
    /// Those of this run, whatever became of them.
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Those of runs of this workflow.
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
    /// Those of runs about this subject.
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,
    /// Those that you may decide. Only people may, not keys.
    #[arg(long)]
    mine: bool,
    /// Those that ask this group.
    #[arg(long, value_name = "GROUP")]
    approvers: Option<String>,
    /// Those of this tier: low, medium, high.
    #[arg(long, value_name = "TIER")]
    tier: Option<Tier>,
    /// Those that need at least so many people.
    #[arg(long, value_name = "COUNT")]
    quorum: Option<u32>,
    /// Those that were not decided in the time meant for it.
    #[arg(long)]
    overdue: bool,
    /// Those asked since then: a span, as in `2h`, or an instant, as in `2026-12-01`.
    #[arg(long, value_name = "WHEN", value_parser = since)]
    since: Option<Timestamp>,
    /// `due`: yours first, and of these what is due first; `oldest`: as they were asked. `due` for open ones by default.
    #[arg(long, value_name = "ORDER", value_parser = order)]
    order: Option<ApprovalOrder>,
    /// How many at most.
    #[arg(long, short = 'n', default_value_t = 50, value_parser = crate::run::filter::limit)]
    limit: usize,
    /// Stay, and print each one that comes to be asked.
    #[arg(long, short, conflicts_with = "state")]
    watch: bool,
}

pub async fn run(client: &Client, printer: Printer, args: ListApprovalsArgs) -> anyhow::Result<()> {
    if args.watch {
        return tokio::select! {
            ended = watch(client, printer, &args) => ended,
            _ = tokio::signal::ctrl_c() => Err(ExitError::silently(Exit::Interrupted)),
        };
    }
    let approvals = fetch(client, &args).await?;
    printer.list(&approvals, |_| table(&approvals), "There are no such approvals.")
}

/// A span back from now, or an instant.
fn since(text: &str) -> Result<Timestamp, String> {
    let back = span::parse(text).map(|back| span::now() - millis(back));
    back.or_else(|_| span::parse_instant(text))
}

fn order(text: &str) -> Result<ApprovalOrder, String> {
    match text {
        "due" => Ok(ApprovalOrder::Due),
        "oldest" => Ok(ApprovalOrder::Oldest),
        _ => Err("expected `due` or `oldest`".into()),
    }
}

async fn fetch(client: &Client, args: &ListApprovalsArgs) -> anyhow::Result<Vec<ApprovalView>> {
    let run = match &args.run {
        Some(run) => Some(find::run(client, run).await?),
        None => None,
    };
    let open = run.is_none() && args.state.is_none_or(|state| state == ApprovalState::Requested);
    let by_due = args.order.map_or(open, |order| order == ApprovalOrder::Due);
    let mut approvals: Vec<ApprovalView> = Vec::new();
    let mut after: Option<String> = None;
    while approvals.len() < args.limit {
        let count = (args.limit - approvals.len()).min(limits::PAGE_MAX);
        let call = client.get(path::APPROVALS).query("state", args.state).query("run", run);
        let call = call.query("workflow", args.workflow.as_ref()).query("subject", args.subject.as_ref());
        let call = call.query("mine", args.mine.then_some(true)).query("approvers", args.approvers.as_ref());
        let call = call.query("tier", args.tier).query("quorum", args.quorum);
        let call = call.query("overdue", args.overdue.then_some(true)).query("since", args.since.map(|at| at.0));
        let call = call.query("order", by_due.then_some("due"));
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
            // One JSON document a line for YAML as well: few tools read a stream of YAML documents.
            let text = match printer.format {
                Format::Table => {
                    let message = visible(approval.message.as_deref().unwrap_or("(without a message)"));
                    let whose = approval.subject.as_deref().map(|subject| format!(" for {}", visible(subject)));
                    let (clock, workflow) = (span::clock(approval.requested_at), visible(&approval.workflow));
                    format!("{clock}  {}  {workflow}{}: {message}", approval.approval, whose.unwrap_or_default())
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

fn table(approvals: &[ApprovalView]) -> Table {
    let now = span::now();
    let mut table = Table::of(&layouts::APPROVALS);
    for approval in approvals {
        let yes = approval.votes.iter().filter(|vote| vote.approve).count();
        let groups = if approval.approvers.is_empty() { "anybody".to_owned() } else { approval.approvers.join(", ") };
        table.row([
            Cell::new(approval.approval.to_string()),
            Cell::new(&approval.workflow),
            Cell::or_dash(approval.subject.as_ref()),
            Cell::or_dash(approval.message.as_ref()),
            Cell::toned(super::tone(approval.state), approval.state.as_str()),
            Cell::new(format!("{yes}/{}", approval.quorum)),
            match approval.may_decide {
                Some(true) => Cell::toned(Tone::Good, "yes"),
                Some(false) => Cell::toned(Tone::Dim, "no"),
                None => Cell::toned(Tone::Dim, "-"),
            },
            due(approval, now),
            expires(approval, now),
            Cell::new(span::away(approval.requested_at, now)),
            Cell::new(groups),
            Cell::new(approval.run_id.to_string()),
        ]);
    }
    table
}

/// When an answer is due. Once it is overdue there is no such instant any more.
fn due(approval: &ApprovalView, now: Timestamp) -> Cell {
    match (approval.state, approval.escalate_at) {
        (ApprovalState::Requested, Some(due_at)) if due_at >= now => Cell::new(span::away(due_at, now)),
        (ApprovalState::Requested, _) => Cell::toned(Tone::Bad, "overdue"),
        _ => Cell::toned(Tone::Dim, "-"),
    }
}

fn expires(approval: &ApprovalView, now: Timestamp) -> Cell {
    match approval.state {
        ApprovalState::Requested => Cell::new(span::away(approval.expires_at, now)),
        _ => Cell::toned(Tone::Dim, "-"),
    }
}
