//! `interlock db restore`: first whatever can refuse it, with a copy of the database that has not got its name yet; then the
//! payloads, since they may be brought back any number of times; then the database gets its name.

use std::path::{Path, PathBuf};

use interlock_engine::EngineOptions;
use interlock_engine::commands::restore::{ParkedRun, RestoredRuns, UnreadableRun};
use interlock_engine::payloads::Objects;
use interlock_engine::payloads::copy::bring_back;
use interlock_engine::payloads::survey::{Depth, Survey, survey};
use interlock_store::{Options, RestoreLock, Store, StoreUrl};

use super::StoreArg;
use super::place::{PlaceArgs, beside, progress, tell_lost};
use crate::output::span::{self, bytes};
use crate::output::table::{Cell, Table};
use crate::output::{Printer, layouts, say_on};
use crate::server::SECRET_FILE;
use crate::server::open;

pub async fn run(store: &StoreArg, place: &PlaceArgs, from: Option<PathBuf>, again: bool) -> anyhow::Result<()> {
    let url = StoreUrl::parse(&store.url())?;
    anyhow::ensure!(
        !again || matches!(url, StoreUrl::Postgres(_)),
        "--again is for PostgreSQL; a SQLite file that is there is moved away first"
    );
    // Before anything is brought back: no server may be at work on the store, nor another restore.
    let lock = RestoreLock::take(&url, Options::new(open::fresh_server_id())).await?;
    let restored = restore(store, place, &lock, (from.as_deref(), again)).await;
    lock.release().await;
    restored
}

async fn restore(
    store: &StoreArg,
    place: &PlaceArgs,
    lock: &RestoreLock,
    (from, again): (Option<&Path>, bool),
) -> anyhow::Result<()> {
    let url = store.url();
    let parsed = StoreUrl::parse(&url)?;
    let options = EngineOptions { loops: false, ..open::engine_options() };
    let begun = lock.begun().filter(|_| !again);
    anyhow::ensure!(
        from.is_some() == matches!(parsed, StoreUrl::Sqlite(_)) || begun.is_some(),
        "give the backup with --from for SQLite; restore PostgreSQL with its own tools first, and run this without --from"
    );
    if let (StoreUrl::Sqlite(path), Some(backup), None) = (&parsed, from, begun) {
        anyhow::ensure!(
            !path.exists(),
            "{} exists already; move it away first, a restore does not overwrite",
            path.display()
        );
        anyhow::ensure!(backup.is_file(), "there is no backup {}", backup.display());
    }
    let staged = lock.stage(from, again).await?;
    let damaged = match from.map(beside).filter(|folder| folder.is_dir()) {
        Some(folder) => payloads(store, place, &folder).await?,
        None => 0,
    };

    if let Some(epoch) = begun {
        say_on(&format!(
            "the restore into epoch {epoch} was interrupted, and goes on with the backup that it was begun with"
        ));
    }
    let epoch = staged.place().await?;
    let engine = open::engine(&url, options).await?;
    let RestoredRuns { parked, unreadable } = engine.runs().park_restored().await?;
    say_on(&format!("the store is in service again, in epoch {epoch}: whatever was handed out before is refused"));
    tell_parked(&parked, Printer::plain());
    tell_unreadable(&unreadable);
    tell_secret(&store.data);
    let found = check(engine.store(), store, place).await;
    engine.stop().await;
    engine.store().clone().close().await;
    let found = found?;
    tell_lost(&found);
    anyhow::ensure!(
        found.lost_total == 0,
        "{} references are to payloads that are not in {}: steps that need one fail; \
         bring it back from elsewhere and retry them",
        found.lost_total,
        place.named(&store.data)
    );
    anyhow::ensure!(damaged == 0, "{damaged} objects of the backup are damaged; nothing in the store refers to them");
    Ok(())
}

/// Answers with how many objects of the backup are not what their name says.
async fn payloads(store: &StoreArg, place: &PlaceArgs, folder: &Path) -> anyhow::Result<u64> {
    let to = place.open(&store.data)?;
    let brought = bring_back(&Objects::folder(folder)?, &to, progress("brought back", None)).await?;
    say_on(&format!(
        "{} payloads, {}, are back in {}, each held against its hash; {} were there",
        brought.objects,
        bytes(brought.bytes),
        place.named(&store.data),
        brought.kept
    ));
    for name in &brought.damaged {
        let object = folder.join(name);
        say_on(&format!("{} is damaged: it is not what its name says, and was left out", object.display()));
    }
    Ok(brought.damaged_total)
}

/// Is everything there that the restored rows refer to? A folder is read to the last byte; a bucket is asked for lengths.
async fn check(restored: &Store, store: &StoreArg, place: &PlaceArgs) -> anyhow::Result<Survey> {
    let (references, _) = restored.payloads_total().await?;
    if references == 0 {
        return Ok(Survey::default());
    }
    let depth = if place.bucket().is_some() { Depth::Length } else { Depth::Whole };
    let objects = place.open(&store.data)?;
    Ok(survey(restored, &objects, depth, progress("checked", Some(references))).await?)
}

/// Keys and sealed secrets are worth nothing without the secret of the server that made them.
fn tell_secret(data: &Path) {
    let secret = data.join(SECRET_FILE);
    if !secret.exists() {
        say_on(&format!(
            "{} is not there: put the one that belongs to this backup in its place, or name it with --secret-file, \
             before a server is started",
            secret.display()
        ));
    }
}

fn tell_parked(parked: &[ParkedRun], printer: Printer) {
    let runs = if parked.len() == 1 { "1 run acts".to_owned() } else { format!("{} runs act", parked.len()) };
    say_on(&format!("{runs} on the outside, paused (restored)"));
    if parked.is_empty() {
        return;
    }
    say_on("\nmay have happened since the backup; look, then resume or resolve:");
    let mut table = Table::of(&layouts::PARKED_RUNS);
    for run in parked {
        let open: Vec<String> = run.open_effects.iter().map(ToString::to_string).collect();
        table.row([
            Cell::new(run.run.to_string()),
            Cell::new(&run.workflow),
            Cell::new(&run.step),
            Cell::new(run.step_state.as_str()),
            Cell::new(run.effect.as_str()),
            Cell::or_dash((!open.is_empty()).then(|| open.join(", "))),
        ]);
    }
    say_on(&table.render(printer.paint, printer.width()));
}

/// They stand still, and no person can look at them yet.
fn tell_unreadable(unreadable: &[UnreadableRun]) {
    if unreadable.is_empty() {
        return;
    }
    let runs = span::counted(unreadable.len() as u64, "live run", "live runs");
    say_on(&format!(
        "\n{runs} cannot be read, and so not be paused. Each is paused as soon as it can be read, before it goes on: mend its \
         row, or start the release that has written it (`interlock db check` names the rows)"
    ));
    for UnreadableRun { run, why, .. } in unreadable {
        say_on(&format!("{run}: {why}"));
    }
}
