//! `interlock`: one binary for the server, the worker and the operator.

mod bench;
mod db;
mod demo;
mod embedded;
mod open;
mod server;
mod shutdown;
mod timeline;
mod token;
mod up;
mod worker;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// Most of what the engine allocates is freed on another thread than it came from; this allocator is made for that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Durable execution for work that changes real systems.
#[derive(Parser)]
#[command(name = "interlock", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start everything on this machine, with a demo to watch.
    Up(up::UpArgs),
    /// Start a server for workers elsewhere.
    Server(server::ServerArgs),
    /// Start a worker whose tasks are programs.
    Worker(worker::WorkerArgs),
    /// Look after the database: migrate, check, stats, backup, restore.
    #[command(subcommand)]
    Db(db::DbCommand),
    /// Measure this machine: throughput, latency, fairness, growth.
    Bench(bench::BenchArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = EnvFilter::try_from_env("INTERLOCK_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("interlock: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(async {
        match cli.command {
            Command::Up(args) => up::run(args).await,
            Command::Server(args) => server::run(args).await,
            Command::Worker(args) => worker::run(args).await,
            Command::Db(command) => db::run(command).await,
            Command::Bench(args) => bench::run(args).await,
        }
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("interlock: {error:#}");
            ExitCode::FAILURE
        }
    }
}
