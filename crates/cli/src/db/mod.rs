//! `interlock db`: the operator's view of the store.

mod backup;
mod check;
pub mod place;
mod restore;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::config::ConfigArg;
use crate::output::say_on;
use crate::server::open;
use place::PlaceArgs;

#[derive(Subcommand)]
pub enum DbCommand {
    /// Bring the schema up to date.
    Migrate(StoreArg),
    /// Look for rows that contradict each other, and for rows whose payload is missing or of another length; lists the
    /// offending ids and fails if it finds any. Also while a server runs.
    Check {
        #[command(flatten)]
        store: StoreArg,
        #[command(flatten)]
        place: PlaceArgs,
        /// Read every payload and hold it against its hash. Payloads in a bucket are looked at only with this.
        #[arg(long)]
        read_payloads: bool,
    },
    /// Show how much is in the store and what is under way. Also while a server runs.
    Stats(StoreArg),
    /// Copy a SQLite store to a new file, also while a server has it open, and the payloads that it refers to into a folder
    /// beside it (FILE.payloads), each held against its hash. Payloads in a bucket stay there. For PostgreSQL use its own
    /// tools.
    Backup {
        #[command(flatten)]
        store: StoreArg,
        #[command(flatten)]
        place: PlaceArgs,
        /// The file to write; it must not exist.
        #[arg(long)]
        to: PathBuf,
    },
    /// Bring a backup into service, with the payloads beside it. Attempts that were handed out before are fenced, runs with
    /// side effects are parked (`paused`, `restored`), and what they may have done since the backup is listed. Names the
    /// payloads that are not what was backed up. Refused while a server is at work on the store, and during another
    /// restore; what was interrupted goes on, and what is done is not done twice.
    Restore {
        #[command(flatten)]
        store: StoreArg,
        #[command(flatten)]
        place: PlaceArgs,
        /// The backup (SQLite). On PostgreSQL restore the database with its own tools first, then run this without it.
        #[arg(long)]
        from: Option<PathBuf>,
        /// Bring a PostgreSQL database into service once more which has been before, and of which nothing tells that it was
        /// brought back since: a copy of its disks was put back.
        #[arg(long)]
        again: bool,
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
            say_on("the schema is up to date");
            Ok(())
        }
        DbCommand::Check { store, place, read_payloads } => check::run(&store, &place, read_payloads).await,
        DbCommand::Stats(arg) => stats(&arg.url()).await,
        DbCommand::Backup { store, place, to } => backup::run(&store, &place, to).await,
        DbCommand::Restore { store, place, from, again } => restore::run(&store, &place, from, again).await,
    }
}

async fn stats(url: &str) -> anyhow::Result<()> {
    let store = open::store_to_read(url).await?;
    let stats = store.stats().await?;
    say_on(&format!("epoch        {:>12}", store.epoch().await?));
    say_on(&format!("tenants      {:>12}", store.tenants().await?.len()));
    say_on(&format!("live runs    {:>12}", stats.live_runs));
    say_on(&format!("live claims  {:>12}", stats.live_claims));
    store.close().await;
    Ok(())
}
