//! `interlock worker token`: which workers may enrol, which have, and which no longer may.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use interlock_core::ids::WorkerIdentityId;
use interlock_core::work::WorkerTerms;
use interlock_protocol::enrolment::{
    CreateWorkerIdentity, CreatedWorkerIdentity, WorkerIdentityList, WorkerIdentityState, WorkerIdentityView, limits,
    path as paths,
};
use reqwest::Method;

use crate::client::{Client, ClientArgs, fill};
use crate::identity::key::millis;
use crate::output::confirm::ConfirmArgs;
use crate::output::exit::{Exit, ExitError};
use crate::output::layouts;
use crate::output::paint::Tone;
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};

#[derive(Args)]
pub struct TokenArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    verb: TokenVerb,
}

#[derive(Subcommand)]
enum TokenVerb {
    /// Let one worker enrol. Its one-time token is printed once, on stdout.
    Create(NewTokenArgs),
    /// List workers that may enrol, or have, newest first.
    List,
    /// Revoke a worker: its token is void, and every server refuses its certificate within seconds.
    Revoke {
        /// The worker's identity (`wid_…`), or its name where only one that is not revoked has it.
        worker: String,
        #[command(flatten)]
        sure: ConfirmArgs,
    },
}

#[derive(Args)]
struct NewTokenArgs {
    /// A name that people recognise.
    name: String,
    /// The environments whose runs it takes: prod, staging, dev, `none` for runs without a profile, `*` for all.
    #[arg(long = "environment", value_name = "NAME", value_delimiter = ',', required = true)]
    environments: Vec<String>,
    /// The profiles under which it runs commands, `*` for all; none by default.
    #[arg(long = "profile", value_name = "NAME", value_delimiter = ',')]
    profiles: Vec<String>,
    /// The network segments that it is in.
    #[arg(long = "segment", value_name = "NAME", value_delimiter = ',')]
    segments: Vec<String>,
    /// How long the token can be used, as in `30m`; an hour by default, `7d` at most.
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    expires_in: Option<Duration>,
    /// Keep the token in this new file, readable by you alone, instead of printing it.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

pub async fn run(args: TokenArgs) -> anyhow::Result<()> {
    let (client, printer) = args.client.open()?;
    match args.verb {
        TokenVerb::Create(new) => create(&client, printer, new).await,
        TokenVerb::List => list(&client, printer).await,
        TokenVerb::Revoke { worker, sure } => {
            let id = find(&client, &worker).await?;
            sure.ask(&format!("Revoke {id}?"))?;
            let call = client.call(Method::DELETE, fill(paths::IDENTITY, &[("identity", &id)]));
            let revoked: WorkerIdentityView = call.send().await?;
            printer.show(&revoked, |_| format!("Revoked `{}` ({}).\n", revoked.name, revoked.identity))
        }
    }
}

async fn create(client: &Client, printer: Printer, new: NewTokenArgs) -> anyhow::Result<()> {
    let set = |names: Vec<String>| names.into_iter().collect::<BTreeSet<String>>();
    let terms =
        WorkerTerms { environments: set(new.environments), segments: set(new.segments), profiles: set(new.profiles) };
    terms.check().and_then(|()| terms.check_known()).map_err(|what| ExitError::saying(Exit::Usage, what))?;
    let body = CreateWorkerIdentity { name: new.name, terms, token_expires_in_ms: new.expires_in.map(millis) };
    // The file is opened before the token is made: a token that could not be written would be lost.
    let file = new.file.as_ref().map(|path| {
        let open = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        open.with_context(|| format!("cannot write the token file {}", path.display()))
    });
    let file = file.transpose()?;
    let created: Result<CreatedWorkerIdentity, _> = client.post(paths::IDENTITIES, &body).send().await;
    if let (Err(_), Some(path)) = (&created, &new.file) {
        // Nothing is in it; the next try makes it again.
        let _ = std::fs::remove_file(path);
    }
    let created = created?;
    let until = span::instant(created.identity.token_expires_at);
    let identity = &created.identity;
    if let (Some(mut file), Some(path)) = (file, new.file) {
        writeln!(file, "{}", created.token).with_context(|| format!("cannot write {}", path.display()))?;
        return printer.show(identity, |_| {
            format!(
                "{} for `{}` may enrol until {until}; its token is in {}.\n",
                identity.identity,
                identity.name,
                path.display()
            )
        });
    }
    printer.note(&format!(
        "{} for `{}` may enrol until {until}. Its token is shown this once:",
        identity.identity, identity.name
    ));
    printer.show(&created, |_| format!("{}\n", created.token))
}

/// All identities of the tenant, newest first, in one list.
pub(super) async fn all(client: &Client) -> anyhow::Result<WorkerIdentityList> {
    let mut identities: Vec<WorkerIdentityView> = Vec::new();
    let mut after = None;
    loop {
        let call = client.get(paths::IDENTITIES).query("limit", Some(limits::PAGE_MAX)).query("after", after);
        let page: WorkerIdentityList = call.send().await?;
        identities.extend(page.identities);
        after = page.next_after;
        if after.is_none() {
            return Ok(WorkerIdentityList { identities, ..page });
        }
    }
}

async fn find(client: &Client, named: &str) -> anyhow::Result<WorkerIdentityId> {
    if let Ok(id) = named.parse() {
        return Ok(id);
    }
    let all = all(client).await?.identities;
    let found: Vec<_> = all.iter().filter(|worker| worker.revoked_at.is_none() && worker.name == named).collect();
    match found[..] {
        [one] => Ok(one.identity),
        [] => Err(ExitError::saying(Exit::NotFound, nobody(&all, named))),
        [..] => {
            let ids: Vec<_> = found.iter().map(|worker| worker.identity.to_string()).collect();
            let what =
                format!("{} workers are called `{named}`; name one by its identity: {}", ids.len(), ids.join(", "));
            Err(ExitError::saying(Exit::NotFound, what))
        }
    }
}

/// Why no identity that counts has this name.
fn nobody(all: &[WorkerIdentityView], named: &str) -> String {
    let revoked = all.iter().find(|worker| worker.name == named).and_then(|worker| worker.revoked_at);
    match revoked {
        Some(at) => format!("`{named}` is revoked already, since {}", span::instant(at)),
        None => format!("no worker that may enrol, or has, is called `{named}`"),
    }
}

async fn list(client: &Client, printer: Printer) -> anyhow::Result<()> {
    let identities = all(client).await?.identities;
    let now = span::now();
    let table = |_| {
        let mut table = Table::of(&layouts::WORKER_IDENTITIES);
        for worker in &identities {
            let names = |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            let (tone, state) = match worker.state {
                WorkerIdentityState::Invited => (Tone::Careful, "invited"),
                WorkerIdentityState::Lapsed => (Tone::Dim, "lapsed"),
                WorkerIdentityState::Enrolled => (Tone::Good, "enrolled"),
                WorkerIdentityState::Expired => (Tone::Bad, "expired"),
                WorkerIdentityState::Revoked => (Tone::Bad, "revoked"),
            };
            table.row([
                Cell::new(worker.identity.to_string()),
                Cell::new(&worker.name),
                Cell::toned(tone, state),
                Cell::new(names(&worker.terms.environments)),
                Cell::new(names(&worker.terms.profiles)),
                Cell::or_dash(worker.certificate_expires_at.map(|at| span::away(at, now))),
            ]);
        }
        table
    };
    printer.list(
        &identities,
        table,
        "No worker may enrol; `interlock worker token create NAME --environment dev` lets one.",
    )
}
