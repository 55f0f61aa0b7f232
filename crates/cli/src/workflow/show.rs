//! `interlock workflow show`.

use clap::Args;
use interlock_core::text::visible::visible;
use interlock_protocol::workflows::{VersionDetail, VersionList, path};

use super::NOBODY_NAMED;
use crate::client::{Client, fill};
use crate::output::layouts;
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};

#[derive(Debug, Args)]
pub struct ShowWorkflowArgs {
    /// The workflow's name.
    #[arg(value_name = "NAME")]
    name: String,
    /// A version; the newest one where omitted.
    #[arg(long, value_name = "NUMBER", conflicts_with = "versions")]
    workflow_version: Option<u32>,
    /// List the versions instead.
    #[arg(long)]
    versions: bool,
}

pub async fn run(client: &Client, printer: Printer, args: ShowWorkflowArgs) -> anyhow::Result<()> {
    let name = ("workflow", &args.name as &(dyn std::fmt::Display + Sync));
    if args.versions {
        let list: VersionList = client.get(fill(path::VERSIONS, &[name])).query("limit", Some(500)).send().await?;
        return printer.list(&list.versions, |_| table(&list), "There are no versions.");
    }
    let shown = stored(client, &args.name, args.workflow_version).await?;
    printer.note(&format!(
        "{} version {}, applied {}{}{}",
        shown.view.workflow,
        shown.view.version,
        span::away(shown.view.applied_at, span::now()),
        shown.view.applied_by.as_deref().map(|by| format!(" by {}", visible(by))).unwrap_or_default(),
        if shown.disabled { ", disabled" } else { "" },
    ));
    printer.show(&shown, |_| shown.source.clone())
}

/// A version as the server has it, by default the newest one.
pub async fn stored(client: &Client, name: &str, version: Option<u32>) -> anyhow::Result<VersionDetail> {
    let name = ("workflow", &name as &(dyn std::fmt::Display + Sync));
    let path = match &version {
        Some(version) => fill(path::VERSION, &[name, ("version", version)]),
        None => fill(path::WORKFLOW, &[name]),
    };
    Ok(client.get(path).send().await?)
}

fn table(list: &VersionList) -> Table {
    let now = span::now();
    let mut table = Table::of(&layouts::WORKFLOW_VERSIONS);
    for version in &list.versions {
        table.row([
            Cell::new(version.version.to_string()),
            Cell::new(span::away(version.applied_at, now)),
            Cell::new(version.applied_by.as_deref().unwrap_or(NOBODY_NAMED)),
            Cell::new(version.source_hash.get(..12).unwrap_or_default()),
        ]);
    }
    table
}
