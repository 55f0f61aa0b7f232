//! `interlock db`: the operator's view of the store.

use clap::{Args, Subcommand};

use crate::open;

#[derive(Subcommand)]
pub enum DbCommand {
    /// Bring the schema up to date.
    Migrate(StoreArg),
    /// Look for rows that contradict each other; lists the offending ids and fails if it finds any.
    Check(StoreArg),
    /// Show how much is in the store and what is under way.
    Stats(StoreArg),
}

#[derive(Args)]
pub struct StoreArg {
    /// Where the store is: `sqlite:PATH` or `postgres://…`.
    #[arg(long, env = "INTERLOCK_STORE", default_value = "sqlite:interlock.db")]
    store: String,
}

pub async fn run(command: DbCommand) -> anyhow::Result<()> {
    match command {
        DbCommand::Migrate(arg) => {
            open::store(&arg.store).await?.close().await;
            println!("the schema is up to date");
            Ok(())
        }
        DbCommand::Check(arg) => check(&arg.store).await,
        DbCommand::Stats(arg) => stats(&arg.store).await,
    }
}

async fn check(url: &str) -> anyhow::Result<()> {
    let store = open::open_store(url, &open::engine_options(), false).await?;
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
    let store = open::open_store(url, &open::engine_options(), false).await?;
    let stats = store.stats().await?;
    println!("live runs    {:>12}", stats.live_runs);
    println!("live claims  {:>12}", stats.live_claims);
    store.close().await;
    Ok(())
}
