//! `interlock policy show | versions | push | activate | shadow | export`: what a server's actions are held against.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use interlock_core::text::visible::visible;
use interlock_policy::BundleSources;
use interlock_protocol::policy::{
    ChangePolicy, NewPolicyVersion, PolicyFiles, PolicyVersion, PolicyVersionList, PolicyView, limits, path,
};
use reqwest::Method;

use super::sources;
use crate::client::Client;
use crate::output::confirm::ConfirmArgs;
use crate::output::exit::{Exit, ExitError};
use crate::output::layouts;
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};

#[derive(Debug, Args)]
pub struct PushArgs {
    /// The folder with the bundle.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Why it is made; it stands beside the version.
    #[arg(long)]
    note: Option<String>,
    /// Put it in force as well.
    #[arg(long)]
    activate: bool,
    #[command(flatten)]
    sure: ConfirmArgs,
}

#[derive(Debug, Args)]
pub struct ActivateArgs {
    /// The version to put in force, or `default` for the policy that comes with the server.
    #[arg(value_name = "VERSION", value_parser = version)]
    number: u32,
    #[command(flatten)]
    sure: ConfirmArgs,
}

#[derive(Debug, Args)]
pub struct ShadowArgs {
    /// The version to try beside the one in force, or `none`.
    #[arg(value_name = "VERSION", value_parser = version)]
    number: u32,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The folder to write to; it is made, and must be empty.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The server's version; without it, the policy that is part of this binary, and no server is asked.
    #[arg(value_name = "VERSION")]
    number: Option<u32>,
}

/// A version's number; 0 where none of the tenant's own is meant.
pub fn version(text: &str) -> Result<u32, String> {
    match text {
        "default" | "none" => Ok(0),
        _ => text.parse().map_err(|_| "a version is a number, as `interlock policy versions` lists them".to_owned()),
    }
}

pub async fn show(client: &Client, printer: Printer) -> anyhow::Result<()> {
    let now: PolicyView = client.get(path::POLICY).send().await?;
    printer.show(&now, |_| described(&now))
}

fn described(now: &PolicyView) -> String {
    let named =
        |version: Option<u32>| version.map_or_else(|| "the default".to_owned(), |version| format!("version {version}"));
    let mut text = format!("in force: {} ({})\n", named(now.active), now.active_hash.0);
    if let (Some(shadow), Some(hash)) = (now.shadow, &now.shadow_hash) {
        let _ = writeln!(text, "tried beside it: version {shadow} ({})", hash.0);
    }
    if let (Some(at), Some(by)) = (now.updated_at, &now.updated_by) {
        let _ = writeln!(text, "changed {} by {}", span::instant(at), visible(by));
    }
    text
}

pub async fn versions(client: &Client, printer: Printer) -> anyhow::Result<()> {
    let mut versions: Vec<PolicyVersion> = Vec::new();
    let mut before = None;
    loop {
        let call = client.get(path::VERSIONS).query("limit", Some(limits::PAGE_MAX)).query("before", before);
        let page: PolicyVersionList = call.send().await?;
        versions.extend(page.versions);
        before = page.next_before;
        if before.is_none() {
            break;
        }
    }
    let table = |_| {
        let mut table = Table::of(&layouts::POLICY_VERSIONS);
        for one in &versions {
            table.row([
                Cell::new(one.version.to_string()),
                Cell::new(one.hash.0.to_string().chars().take(12).collect::<String>()),
                Cell::new(span::instant(one.created_at)),
                Cell::new(one.created_by.as_deref().unwrap_or_default()),
                Cell::new(one.note.as_deref().unwrap_or_default()),
            ]);
        }
        table
    };
    let none = "No policy of your own yet; the default is in force. `interlock policy export DIR` writes it out to begin from.";
    printer.list(&versions, table, none)
}

pub async fn push(client: &Client, printer: Printer, args: PushArgs) -> anyhow::Result<()> {
    let files = sources(Some(&args.folder))?.files();
    let body = NewPolicyVersion { files, note: args.note };
    let made: PolicyVersion = client.post(path::VERSIONS, &body).send().await?;
    if !args.activate {
        return printer.show(&made, |_| {
            let version = made.version;
            format!("version {version} ({})\nput it in force with: interlock policy activate {version}\n", made.hash.0)
        });
    }
    put_in_force(client, printer, made.version, &args.sure).await
}

pub async fn activate(client: &Client, printer: Printer, args: ActivateArgs) -> anyhow::Result<()> {
    put_in_force(client, printer, args.number, &args.sure).await
}

async fn put_in_force(client: &Client, printer: Printer, version: u32, sure: &ConfirmArgs) -> anyhow::Result<()> {
    let now: PolicyView = client.get(path::POLICY).send().await?;
    let which = if version == 0 { "the default policy".to_owned() } else { format!("version {version}") };
    sure.ask(&format!("Put {which} in force for everything that is decided from now on?"))?;
    let change = ChangePolicy { active: Some(version), revision: Some(now.revision), ..ChangePolicy::default() };
    let change = if now.revision == 0 { ChangePolicy { revision: None, ..change } } else { change };
    let now: PolicyView = client.call(Method::PATCH, path::POLICY).body(&change).send().await?;
    printer.show(&now, |_| described(&now))
}

pub async fn shadow(client: &Client, printer: Printer, args: ShadowArgs) -> anyhow::Result<()> {
    let change = ChangePolicy { shadow: Some(args.number), ..ChangePolicy::default() };
    let now: PolicyView = client.call(Method::PATCH, path::POLICY).body(&change).send().await?;
    printer.show(&now, |_| described(&now))
}

/// Writes the files of the shipped policy.
pub fn export_shipped(printer: Printer, args: &ExportArgs) -> anyhow::Result<()> {
    write(printer, args, PolicyFiles { files: BundleSources::shipped().files() })
}

pub async fn export(client: &Client, printer: Printer, args: ExportArgs) -> anyhow::Result<()> {
    let files: PolicyFiles = client.get(path::FILES).query("version", args.number).send().await?;
    write(printer, &args, files)
}

fn write(printer: Printer, args: &ExportArgs, found: PolicyFiles) -> anyhow::Result<()> {
    let folder = &args.folder;
    let cannot = || format!("cannot write to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(cannot)?;
    if std::fs::read_dir(folder).with_context(cannot)?.next().is_some() {
        let what = format!("{} is not empty; name a folder that is", folder.display());
        return Err(ExitError::saying(Exit::Unsuccessful, what));
    }
    for (name, text) in &found.files {
        // A name comes from a server: it must not lead out of the folder.
        if name.contains(['/', '\\']) || name.starts_with('.') {
            return Err(ExitError::saying(Exit::Unsuccessful, format!("the file name `{}` is refused", visible(name))));
        }
        std::fs::write(folder.join(name), text).with_context(cannot)?;
    }
    printer.show(&found, |_| {
        let folder = folder.display();
        let files = span::counted(found.files.len() as u64, "file", "files");
        format!("{files} in {folder}\ntry them with: interlock policy test {folder}\n")
    })
}

impl ExportArgs {
    pub const fn needs_server(&self) -> bool {
        self.number.is_some()
    }
}
