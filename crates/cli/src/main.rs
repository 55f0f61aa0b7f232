//! `interlock`: one binary for the server, the worker and the operator.

// They panic where the reader has gone away, in the middle of what a server or a worker does: see `output::say_aside`.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod approval;
mod audit;
mod bench;
mod client;
mod config;
mod crash;
mod db;
mod doctor;
mod identity;
mod operations;
mod output;
mod policy;
mod project;
mod reference;
mod run;
mod schedule;
mod secret;
mod server;
mod slack;
mod webhook;
mod worker;
mod workflow;

use std::process::ExitCode;

use clap::{FromArgMatches, Parser, Subcommand};

use client::{ClientError, context};
use identity::{change, flag, key, login, tenant, user};
use operations::{backout, health, queue, status};
use output::causes::causes;
use output::exit::{Exit, ExitError};
use output::say_aside;
use reference::{completion, man};
use run::{bulk, events};
use server::up;
use webhook::dead_letter;

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
    /// Start a worker whose tasks are programs, or look at the workers there are.
    Worker(worker::WorkerArgs),
    /// See what this host can confine commands with, and try a command under a profile.
    Sandbox(worker::sandbox::SandboxArgs),
    /// Show how everything stands: runs, queues, workers, approvals, and what is wrong.
    Status(status::StatusArgs),
    /// Ask whether a server is ready for work; the exit status tells. No key is needed.
    Health(health::HealthArgs),
    /// Start runs, look at them, direct them.
    Run(run::RunArgs),
    /// Cancel, retry or resume many runs at once.
    Bulk(bulk::BulkArgs),
    /// Look at the queues that workers take steps from.
    Queue(queue::QueueArgs),
    /// Back out of workers elsewhere: cancel the runs in flight, drain these workers, and let the server's own worker run
    /// steps again.
    Backout(backout::BackoutArgs),
    /// Make a small project that runs at once: a workflow, a scenario test, and a task in the language you ask for.
    Init(project::NewProjectArgs),
    /// Check workflow files, test them without running them, apply them.
    Workflow(workflow::WorkflowArgs),
    /// Test policies, ask them, and see what a changed one would decide.
    Policy(policy::PolicyArgs),
    /// Print what happens in all runs, or in one.
    Events(events::EventsArgs),
    /// Make tenants and change their limits.
    Tenant(tenant::TenantArgs),
    /// Switch parts of the product on or off for your tenant.
    Flag(flag::FlagArgs),
    /// Make, rotate and revoke API keys.
    Key(key::KeyArgs),
    /// Give people accounts, roles and groups.
    User(user::UserArgs),
    /// Decide on changes of the policy or of access that a second admin must agree to.
    Change(change::ChangeArgs),
    /// Start workflows on a schedule.
    Schedule(schedule::ScheduleArgs),
    /// Manage webhook endpoints, inbound and outbound.
    Webhook(webhook::WebhookArgs),
    /// Ask for approvals in Slack.
    Slack(slack::SlackArgs),
    /// List messages that were given up, and send them again.
    DeadLetter(dead_letter::DeadLetterArgs),
    /// Keep secrets in a file on this machine, encrypted with age.
    Secret(secret::SecretArgs),
    /// Name the servers that you work with, and switch between them.
    Context(context::ContextArgs),
    /// List approvals, and approve or reject them.
    Approval(approval::ApprovalArgs),
    /// Read the audit log, and verify that it was not tampered with.
    Audit(audit::AuditArgs),
    /// Export the evidence of a run, and verify it.
    Evidence(audit::evidence::EvidenceArgs),
    /// Sign in as yourself, or store an API key for a server.
    Login(login::LoginArgs),
    /// Sign out, and forget the stored credential.
    Logout(login::LogoutArgs),
    /// Show who you are signed in as.
    Whoami(login::whoami::WhoamiArgs),
    /// Look after the database: migrate, check, stats, backup, restore.
    #[command(subcommand)]
    Db(db::DbCommand),
    /// Measure this machine: throughput, latency, fairness, growth.
    Bench(bench::BenchArgs),
    /// Check what Interlock needs on this machine, and say how to fix what is wrong.
    Doctor(doctor::DoctorArgs),
    /// Look at what the config file, the environment and flags say together.
    Config(config::ConfigArgs),
    /// Print a completion script for your shell.
    Completion(completion::CompletionArgs),
    /// Write the manual pages of all commands into a folder.
    Man(man::ManArgs),
    /// Print a reference page: `docs/reference/cli.md`, or `docs/reference/config.md`.
    #[command(hide = true)]
    Reference(reference::ReferenceArgs),
}

fn main() -> ExitCode {
    // Inside a sandbox this binary is the process that confines the command.
    interlock_sandbox::shim::main_if_shim();
    crash::allow();
    let layered = match config::parse(std::env::args_os().collect()) {
        Ok(layered) => layered,
        Err(error) => return ended(&error),
    };
    let cli = Cli::from_arg_matches(&layered.matches).unwrap_or_else(|error| error.exit());
    config::log::begin(&layered);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            say_aside(&format!("interlock: cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let carried = runtime.block_on(carry_out(cli.command));
    // An evaluation that does not end must not keep the process.
    runtime.shutdown_background();
    match carried {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ended(&error),
    }
}

async fn carry_out(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Up(args) => Box::pin(up::run(args)).await,
        Command::Server(args) => Box::pin(server::run(args)).await,
        Command::Worker(args) => worker::run(args).await,
        Command::Status(args) => status::run(args).await,
        Command::Health(args) => health::run(args).await,
        Command::Run(args) => run::run(args).await,
        Command::Queue(args) => queue::run(args).await,
        Command::Bulk(args) => bulk::run(args).await,
        Command::Backout(args) => backout::run(args).await,
        Command::Init(args) => project::run(args),
        Command::Workflow(args) => workflow::run(args).await,
        Command::Policy(args) => policy::run(args).await,
        Command::Audit(args) => audit::run(args).await,
        Command::Evidence(args) => audit::evidence::run(args).await,
        Command::Events(args) => events::run(args).await,
        Command::Tenant(args) => tenant::run(args).await,
        Command::Flag(args) => flag::run(args).await,
        Command::Key(args) => key::run(args).await,
        Command::User(args) => user::run(args).await,
        Command::Schedule(args) => schedule::run(args).await,
        Command::Webhook(args) => webhook::run(args).await,
        Command::Slack(args) => slack::run(args).await,
        Command::DeadLetter(args) => dead_letter::run(args).await,
        Command::Secret(args) => secret::run(args),
        Command::Context(args) => context::run(args),
        Command::Login(args) => login::login(args).await,
        Command::Logout(args) => login::logout(args).await,
        Command::Whoami(args) => login::whoami::run(args).await,
        Command::Approval(args) => approval::run(args).await,
        Command::Sandbox(args) => worker::sandbox::run(args).await,
        Command::Change(args) => change::run(args).await,
        Command::Db(command) => Box::pin(db::run(command)).await,
        Command::Bench(args) => bench::run(args).await,
        Command::Doctor(args) => doctor::run(args).await,
        Command::Config(args) => config::run(args),
        Command::Completion(args) => completion::run(args),
        Command::Man(args) => man::run(args),
        Command::Reference(args) => output::say(&reference::of(args)),
    }
}

/// Says what went wrong and what to try, and picks the exit code.
fn ended(error: &anyhow::Error) -> ExitCode {
    if let Some(ended) = error.downcast_ref::<ExitError>() {
        if let Some(message) = &ended.message {
            say_aside(&format!("interlock: {message}"));
        }
        return ended.exit.into();
    }
    say_aside(&format!("interlock: {}", causes(error)));
    match error.downcast_ref::<ClientError>() {
        Some(refused) => {
            if let Some(hint) = refused.hint() {
                say_aside(&hint);
            }
            refused.exit().into()
        }
        None => Exit::Unsuccessful.into(),
    }
}
