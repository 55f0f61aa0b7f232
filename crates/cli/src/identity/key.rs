//! `interlock key`: API keys of the tenant.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use interlock_core::ids::KeyId;
use interlock_core::tenant::identity::Roles;
use interlock_core::text::nearest::hint;
use interlock_core::time::{Millis, Timestamp};
use interlock_protocol::identity::{CreateKey, CreatedKey, KeyList, KeyView, RotateKey, limits, path as paths};
use reqwest::Method;

use crate::client::{Client, ClientArgs, fill};
use crate::output::confirm::ConfirmArgs;
use crate::output::exit::{Exit, ExitError};
use crate::output::layouts;
use crate::output::paint::Tone;
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};

#[derive(Args)]
pub struct KeyArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    verb: KeyVerb,
}

#[derive(Subcommand)]
enum KeyVerb {
    /// Make a key. Its text is printed once, on stdout.
    Create {
        /// What it is for.
        name: String,
        /// viewer, operator, approver, admin, worker; several with commas.
        #[arg(long, value_name = "ROLES")]
        role: Roles,
        /// Only runs of this workspace: a name, as runs are started with; every workspace of the tenant by default.
        #[arg(long, value_name = "NAME", value_parser = crate::client::workspace::name)]
        workspace: Option<String>,
        /// How long it works, as in `90d`; for ever by default.
        #[arg(long, value_name = "SPAN", value_parser = span::parse)]
        expires_in: Option<Duration>,
        /// How many requests the key may make in a minute.
        #[arg(long, value_name = "COUNT")]
        requests_per_min: Option<u32>,
        /// The person who answers for it; you by default.
        #[arg(long, value_name = "NAME")]
        owner: Option<String>,
        /// Keep the text in this file, readable by you alone, instead of printing it. A file that is there is kept, and
        /// no key is made: the command can stand in a script that is run again.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// List keys, newest first.
    List,
    /// Revoke a key: it is refused at once.
    Revoke {
        /// The key's id, or its name where only one key that works has it.
        key: String,
        #[command(flatten)]
        sure: ConfirmArgs,
    },
    /// Rotate a key: it gets a new text and stays the same client.
    Rotate {
        /// The key's id, or its name where only one key that works has it.
        key: String,
        /// How long the old text still works, as in `1h`; not at all by default.
        #[arg(long, value_name = "SPAN", value_parser = span::parse)]
        overlap: Option<Duration>,
    },
}

pub async fn run(args: KeyArgs) -> anyhow::Result<()> {
    let (client, printer) = args.client.open()?;
    match args.verb {
        KeyVerb::Create { name, role, workspace, expires_in, requests_per_min, owner, file } => {
            let expires_in_ms = expires_in.map(millis);
            let body = CreateKey { name, roles: role, workspace, expires_in_ms, requests_per_min, owner };
            match file {
                Some(path) => made_in(&client, printer, &body, &path).await,
                None => made(printer, &client.post(paths::KEYS, &body).send().await?),
            }
        }
        KeyVerb::List => list(&client, printer).await,
        KeyVerb::Revoke { key, sure } => {
            let key = find(&client, &key).await?;
            sure.ask(&format!("Revoke {key}?"))?;
            let revoked: KeyView = client.call(Method::DELETE, fill(paths::KEY, &[("key", &key)])).send().await?;
            printer.show(&revoked, |_| format!("Revoked `{}` ({}…).\n", revoked.name, revoked.begins))
        }
        KeyVerb::Rotate { key, overlap } => {
            let key = find(&client, &key).await?;
            let body = RotateKey { overlap_ms: overlap.map(millis) };
            made(printer, &client.post(fill(paths::KEY_ROTATE, &[("key", &key)]), &body).send().await?)
        }
    }
}

/// The text alone on stdout, so that it can be sent where it belongs; the rest is said beside it.
fn made(printer: Printer, created: &CreatedKey) -> anyhow::Result<()> {
    printer.note(&format!("{} for `{}`. It is shown this once:", created.key.key, created.key.name));
    printer.show(created, |_| format!("{}\n", created.text))
}

/// The file is opened before the key is made: a key whose text could not be written would work, and be lost.
async fn made_in(client: &Client, printer: Printer, body: &CreateKey, path: &Path) -> anyhow::Result<()> {
    let kept = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut kept = match kept {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            printer.note(&format!("{} is there already; no key is made.", path.display()));
            return Ok(());
        }
        kept => kept.with_context(|| format!("cannot write the key file {}", path.display()))?,
    };
    let created: CreatedKey = match client.post(paths::KEYS, body).send().await {
        Ok(created) => created,
        Err(error) => {
            // Nothing is in it; the next try makes it again.
            let _ = std::fs::remove_file(path);
            return Err(error.into());
        }
    };
    writeln!(kept, "{}", created.text).with_context(|| format!("cannot write the key file {}", path.display()))?;
    printer
        .show(&created.key, |_| format!("{} for `{}` is in {}.\n", created.key.key, created.key.name, path.display()))
}

async fn all(client: &Client) -> anyhow::Result<Vec<KeyView>> {
    let mut keys: Vec<KeyView> = Vec::new();
    let mut after = None;
    loop {
        let call = client.get(paths::KEYS).query("limit", Some(limits::PAGE_MAX)).query("after", after);
        let page: KeyList = call.send().await?;
        keys.extend(page.keys);
        after = page.next_after;
        if after.is_none() {
            return Ok(keys);
        }
    }
}

/// The key of this id, or the one that works and has this name.
async fn find(client: &Client, named: &str) -> anyhow::Result<KeyId> {
    if let Ok(id) = named.parse() {
        return Ok(id);
    }
    among(&all(client).await?, named, span::now())
}

fn among(keys: &[KeyView], named: &str, now: Timestamp) -> anyhow::Result<KeyId> {
    let works = |key: &&KeyView| key.revoked_at.is_none() && key.expires_at.is_none_or(|at| at > now);
    let found: Vec<_> = keys.iter().filter(works).filter(|key| key.name == named).collect();
    let missing = |what: String| Err(ExitError::saying(Exit::NotFound, what));
    match found[..] {
        [one] => Ok(one.key),
        [] => {
            let hint = hint(named, keys.iter().filter(works).map(|key| key.name.as_str()));
            missing(format!("no key that works is called `{named}`; {hint}"))
        }
        [..] => {
            let ids: Vec<_> = found.iter().map(|key| key.key.to_string()).collect();
            missing(format!("{} keys are called `{named}`; name one by its id: {}", ids.len(), ids.join(", ")))
        }
    }
}

async fn list(client: &Client, printer: Printer) -> anyhow::Result<()> {
    let keys = all(client).await?;
    let now = span::now();
    let table = |_| {
        let mut table = Table::of(&layouts::KEYS);
        for key in &keys {
            let over = key.expires_at.is_some_and(|at| at <= now);
            let state = match (key.revoked_at, over) {
                (Some(_), _) => Cell::toned(Tone::Bad, "revoked"),
                (None, true) => Cell::toned(Tone::Bad, "expired"),
                (None, false) => Cell::toned(Tone::Good, "works"),
            };
            table.row([
                Cell::new(key.key.to_string()),
                Cell::new(&key.name),
                Cell::new(&key.begins),
                Cell::new(key.roles.to_string()),
                state,
                Cell::or_dash(key.last_used_at.map(|at| span::away(at, now))),
            ]);
        }
        table
    };
    printer.list(&keys, table, "There are no keys.")
}

pub fn millis(span: Duration) -> Millis {
    Millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}
