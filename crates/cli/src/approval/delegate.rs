//! `interlock approval delegate | delegations | undelegate`: one's right to decide, lent for a time.

use std::time::Duration;

use clap::Args;
use interlock_core::ids::DelegationId;
use interlock_core::text::visible::visible;
use interlock_core::time::Timestamp;
use interlock_protocol::delegations::{CreateDelegation, DelegationList, DelegationView, path};
use interlock_protocol::identity::limits;
use reqwest::Method;

use crate::client::{Client, fill};
use crate::identity::key::millis;
use crate::output::confirm::ConfirmArgs;
use crate::output::layouts;
use crate::output::paint::Tone;
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};

#[derive(Debug, Args)]
pub struct DelegateArgs {
    /// Who may decide where you may.
    #[arg(value_name = "PERSON")]
    delegate: String,
    /// How long, as in `14d`; 90 days at most.
    #[arg(long = "for", value_name = "SPAN", value_parser = span::parse, required_unless_present = "until")]
    lasts: Option<Duration>,
    /// Until when: a day, as in `2026-12-01`, or an instant, as in `2026-12-01T18:00:00+01:00`.
    #[arg(long, value_name = "WHEN", value_parser = span::parse_instant, conflicts_with = "lasts")]
    until: Option<Timestamp>,
    /// From when on, as --until is written; now by default.
    #[arg(long, value_name = "WHEN", value_parser = span::parse_instant)]
    from: Option<Timestamp>,
    /// Why; it stands beside the delegation.
    #[arg(long)]
    reason: String,
    /// Whose right to decide it is, where it is not yours: admins only.
    #[arg(long, value_name = "NAME")]
    person: Option<String>,
}

#[derive(Debug, Args)]
pub struct DelegationsArgs {
    /// Also those that are over or were revoked.
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Args)]
pub struct UndelegateArgs {
    /// Its id (`interlock approval delegations`).
    delegation: DelegationId,
    #[command(flatten)]
    sure: ConfirmArgs,
}

pub async fn delegate(client: &Client, printer: Printer, args: DelegateArgs) -> anyhow::Result<()> {
    let begins = args.from.unwrap_or_else(span::now);
    let until = args.until.unwrap_or_else(|| begins + millis(args.lasts.unwrap_or_default()));
    let (delegator, delegate, reason) = (args.person, args.delegate, args.reason);
    let body = CreateDelegation { delegator, delegate, from: args.from, until, reason };
    let made: DelegationView = client.post(path::DELEGATIONS, &body).send().await?;
    printer.show(&made, |_| {
        let (whose, who) = (visible(&made.delegator), visible(&made.delegate));
        let (from, until) = (span::instant(made.from), span::instant(made.until));
        format!("{}: {who} decides for {whose} from {from} until {until}\n", made.delegation)
    })
}

pub async fn undelegate(client: &Client, printer: Printer, args: UndelegateArgs) -> anyhow::Result<()> {
    args.sure.ask(&format!("Revoke {}?", args.delegation))?;
    let call = client.call(Method::DELETE, fill(path::DELEGATION, &[("delegation", &args.delegation)]));
    let over: DelegationView = call.send().await?;
    printer.show(&over, |_| {
        let (whose, who) = (visible(&over.delegator), visible(&over.delegate));
        format!("{who} does not decide for {whose} any more by {}\n", over.delegation)
    })
}

pub async fn list(client: &Client, printer: Printer, args: DelegationsArgs) -> anyhow::Result<()> {
    let mut delegations: Vec<DelegationView> = Vec::new();
    let mut after = None;
    loop {
        let call = client.get(path::DELEGATIONS).query("all", args.all.then_some(true));
        let page: DelegationList = call.query("limit", Some(limits::PAGE_MAX)).query("after", after).send().await?;
        delegations.extend(page.delegations);
        after = page.next_after;
        if after.is_none() {
            break;
        }
    }
    printer.list(&delegations, |_| table(&delegations), "There are no delegations.")
}

fn table(delegations: &[DelegationView]) -> Table {
    let now = span::now();
    let mut table = Table::of(&layouts::DELEGATIONS);
    for delegation in delegations {
        let state = match delegation {
            DelegationView { revoked_at: Some(_), .. } => Cell::toned(Tone::Dim, "revoked"),
            DelegationView { in_force: true, .. } => Cell::toned(Tone::Good, "in force"),
            DelegationView { from, .. } if *from > now => Cell::new("to come"),
            _ => Cell::toned(Tone::Dim, "over"),
        };
        table.row([
            Cell::new(delegation.delegation.to_string()),
            Cell::new(&delegation.delegator),
            Cell::new(&delegation.delegate),
            state,
            Cell::new(span::instant(delegation.from)),
            Cell::new(span::instant(delegation.until)),
            Cell::new(&delegation.reason),
        ]);
    }
    table
}
