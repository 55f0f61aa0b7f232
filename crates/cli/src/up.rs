//! `interlock up`: everything on one machine, with a demo to watch.

use std::path::PathBuf;

use clap::Args;
use interlock_engine::Engine;
use interlock_worker::{Worker, WorkerOptions};
use tokio_util::sync::CancellationToken;

use crate::embedded::Embedded;
use crate::{demo, open, timeline};

#[derive(Args)]
pub struct UpArgs {
    /// The folder that holds the embedded store; made if it is not there.
    #[arg(long, env = "INTERLOCK_DATA", default_value = "interlock-data")]
    data: PathBuf,
    /// Where the store is: `sqlite:PATH` or `postgres://…`; by default a SQLite file in the data folder.
    #[arg(long, env = "INTERLOCK_STORE")]
    store: Option<String>,
    /// Do not place demo orders.
    #[arg(long)]
    no_demo: bool,
}

pub async fn run(args: UpArgs) -> anyhow::Result<()> {
    let url = match args.store {
        Some(url) => url,
        None => {
            std::fs::create_dir_all(&args.data)?;
            format!("sqlite:{}", args.data.join("interlock.db").display())
        }
    };
    let engine = open::engine(&url, open::engine_options()).await?;
    let stop = CancellationToken::new();
    let worker = embedded_worker(&engine, stop.clone());
    let tenant = demo::tenant(&engine).await?;

    println!("Interlock is up on {}.", interlock_store::StoreUrl::parse(&url)?);
    if !args.no_demo {
        println!("An order is placed every few seconds. Card payments fail now and then, and are tried again.");
        println!("Try it: kill -9 {}, start again, and watch every order go on where it was.", std::process::id());
    }
    println!("Press Ctrl-C to stop.\n");

    let following = tokio::spawn(timeline::follow(engine.clone(), tenant));
    let driving = (!args.no_demo).then(|| tokio::spawn(demo::drive(engine.clone(), tenant, stop.clone())));
    crate::shutdown::asked().await;
    println!("\nStopping: running steps finish, the rest waits in the store.");
    stop.cancel();
    worker.await??;
    if let Some(driving) = driving {
        driving.await??;
    }
    engine.stop().await;
    following.await??;
    engine.store().clone().close().await;
    Ok(())
}

/// A worker inside this process, for the demo's tasks.
fn embedded_worker(engine: &Engine, stop: CancellationToken) -> tokio::task::JoinHandle<Result<(), interlock_worker::WorkerError>> {
    let options = WorkerOptions { name: format!("embedded:{}", std::process::id()), slots: 64, ..WorkerOptions::default() };
    tokio::spawn(Worker::new(Embedded(engine.clone()), demo::tasks(), options).run(stop))
}
