//! `interlock db`: the operator's view of the store.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use interlock_core::ids::ServerId;
use interlock_engine::{Engine, EngineOptions};
use interlock_store::{Options, StoreUrl};

use crate::config::ConfigArg;
use crate::open;

#[derive(Subcommand)]
pub enum DbCommand {
    /// Bring the schema up to date.
    Migrate(StoreArg),
    /// Look for rows that contradict each other; lists the offending ids and fails if it finds any. Also while a server
    /// runs.
    Check(StoreArg),
    /// Show how much is in the store and what is under way. Also while a server runs.
    Stats(StoreArg),
    /// Copy a SQLite store to a new file, also while a server has it open. For PostgreSQL use its own tools.
    Backup {
        #[command(flatten)]
        store: StoreArg,
        /// The file to write; it must not exist.
        #[arg(long)]
        to: PathBuf,
    },
    /// Bring a backup into service. Attempts that were handed out before are fenced, runs with side effects are parked
    /// (`paused`, `restored`), and what they may have done since the backup is listed.
    Restore {
        #[command(flatten)]
        store: StoreArg,
        /// The backup (SQLite). On PostgreSQL restore the database with its own tools first, then run this without it.
        #[arg(long)]
        from: Option<PathBuf>,
    },
}

#[derive(Args)]
pub struct StoreArg {
    #[command(flatten)]
    config: ConfigArg,
    /// The folder that holds the embedded store.
    #[arg(long, env = "INTERLOCK_DATA", default_value = "interlock-data")]
    data: PathBuf,
    /// Where the store is: `sqlite:PATH` or `postgres://…`; by default the SQLite file in the data folder.
    #[arg(long, env = "INTERLOCK_STORE")]
    store: Option<String>,
}

impl StoreArg {
    fn url(&self) -> String {
        let in_folder = || format!("sqlite:{}", self.data.join("interlock.db").display());
        self.store.clone().unwrap_or_else(in_folder)
    }
}

pub async fn run(command: DbCommand) -> anyhow::Result<()> {
    match command {
        DbCommand::Migrate(arg) => {
            open::store(&arg.url()).await?.close().await;
            println!("the schema is up to date");
            Ok(())
        }
        DbCommand::Check(arg) => check(&arg.url()).await,
        DbCommand::Stats(arg) => stats(&arg.url()).await,
        DbCommand::Backup { store, to } => backup(&store.url(), to).await,
        DbCommand::Restore { store, from } => restore(&store.url(), from).await,
    }
}

async fn check(url: &str) -> anyhow::Result<()> {
    let store = open::store_to_read(url).await?;
    let findings = store.check().await?;
    for finding in &findings {
        let tenant = finding.tenant.map(|tenant| tenant.to_string()).unwrap_or_default();
        println!("{}\t{tenant}\t{}\t{}", finding.check, finding.row, finding.what);
    }
    store.close().await;
    anyhow::ensure!(findings.is_empty(), "{} rows contradict each other", findings.len());
    println!("nothing wrong was found");
    Ok(())
}

async fn stats(url: &str) -> anyhow::Result<()> {
    let store = open::store_to_read(url).await?;
    let stats = store.stats().await?;
    println!("epoch        {:>12}", store.epoch().await?);
    println!("tenants      {:>12}", store.tenants().await?.len());
    println!("live runs    {:>12}", stats.live_runs);
    println!("live claims  {:>12}", stats.live_claims);
    store.close().await;
    Ok(())
}

async fn backup(url: &str, to: PathBuf) -> anyhow::Result<()> {
    let StoreUrl::Sqlite(path) = StoreUrl::parse(url)? else {
        anyhow::bail!(
            "PostgreSQL is backed up by its own tools: pg_dump, or pg_basebackup with its log for any instant"
        );
    };
    interlock_store::backup_file(&path, &to).await?;
    println!("{} is a copy of {}", to.display(), path.display());
    Ok(())
}

async fn restore(url: &str, from: Option<PathBuf>) -> anyhow::Result<()> {
    let parsed = StoreUrl::parse(url)?;
    anyhow::ensure!(
        from.is_some() == matches!(parsed, StoreUrl::Sqlite(_)),
        "give the backup with --from for SQLite; restore PostgreSQL with its own tools first, and run this without --from"
    );
    let options = EngineOptions { loops: false, ..open::engine_options() };
    let server = ServerId(options.ids.fresh());
    let epoch = interlock_store::restore(from.as_deref(), &parsed, Options::new(server)).await?;
    let store = open::open_store(url, &options, true).await?;
    let engine = Engine::open(store, options).await?;
    let parked = engine.park_restored().await?;
    println!("the store is in service again, in epoch {epoch}: whatever was handed out before is refused");
    println!("{} runs act on the outside and are paused (restored)", parked.len());
    if !parked.is_empty() {
        println!("\nmay have happened since the backup; look, then resume or resolve:");
        println!("{:<38} {:<20} {:<20} {:<12} {:<10} open effects", "run", "workflow", "step", "state", "effect");
    }
    for run in &parked {
        let open: Vec<String> = run.open_effects.iter().map(ToString::to_string).collect();
        println!(
            "{:<38} {:<20} {:<20} {:<12} {:<10} {}",
            run.run.to_string(),
            run.workflow,
            run.step,
            run.step_state,
            run.effect,
            if open.is_empty() { "–".to_owned() } else { open.join(", ") }
        );
    }
    engine.stop().await;
    engine.store().clone().close().await;
    Ok(())
}
