//! `interlock run`: start runs, look at them, direct them.

mod assigning;
mod attempts;
mod board;
pub mod bulk;
pub mod direct;
pub mod events;
pub mod filter;
pub mod find;
mod label;
pub mod list;
mod logs;
mod permission;
mod receipts;
mod resolve;
pub mod rights;
pub mod show;
mod signal;
mod skipped;
pub mod start;
mod wait;
mod waits;
mod watch;
pub mod why;

use clap::{Args, Subcommand};

use crate::client::ClientArgs;

#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    verb: RunVerb,
}

#[derive(Subcommand)]
enum RunVerb {
    /// Start a run.
    Start(start::StartArgs),
    /// List runs, newest first.
    List(list::ListRunsArgs),
    /// Show a run and draw its steps with their durations.
    Show(show::ShowRunArgs),
    /// Follow a run as it happens, until it ends.
    Watch(watch::WatchArgs),
    /// Print the output of a run's steps, also while they run.
    Logs(logs::LogsArgs),
    /// Explain why a run stands where it stands, and what to do about it.
    Why(why::WhyArgs),
    /// Stop a run: nothing further starts.
    Cancel(direct::CancelArgs),
    /// Hold a run: nothing is claimed, a running attempt finishes.
    Pause(direct::ReasonArgs),
    /// End a pause.
    Resume(direct::PlainArgs),
    /// Try the step that stopped a run again; a finished run gets a successor.
    Retry(direct::RetryArgs),
    /// Go on without the step that stopped a run.
    Skip(direct::ReasonArgs),
    /// Have another worker looked for, after the one that had the run was lost or no worker took it.
    Reassign(direct::ReasonArgs),
    /// Go back to a step and run from there; a finished run gets a successor.
    Restart(direct::RestartArgs),
    /// Undo what a run has done, newest first; from a step on, or everything.
    Rollback(direct::RollbackArgs),
    /// Change the labels of a run that has ended.
    Label(label::LabelArgs),
    /// Say what became of an effect in doubt.
    Resolve(resolve::ResolveArgs),
    /// Send a signal to a run that waits for one.
    Signal(signal::SignalArgs),
    /// List every attempt at the steps of a run: which worker had it, and what became of it.
    Attempts(attempts::AttemptsArgs),
    /// List a run's effects on other systems.
    Receipts(receipts::ReceiptsArgs),
    /// List which runs wait for which signal.
    Waits(waits::WaitsArgs),
}

/// The run that a verb is about.
#[derive(Debug, Clone, Args)]
struct RunArg {
    /// A run's id, the end of one, the subject of a run, or `latest`.
    #[arg(value_name = "RUN")]
    run: String,
}

pub async fn run(args: RunArgs) -> anyhow::Result<()> {
    let (client, printer) = args.client.open()?;
    match args.verb {
        RunVerb::Start(args) => start::run(&client, printer, args).await,
        RunVerb::List(args) => list::run(&client, printer, args).await,
        RunVerb::Show(args) => show::run(&client, printer, args).await,
        RunVerb::Watch(args) => watch::run(&client, printer, args).await,
        RunVerb::Logs(args) => logs::run(&client, printer, args).await,
        RunVerb::Why(args) => why::run(&client, printer, args).await,
        RunVerb::Cancel(args) => direct::cancel(&client, printer, args).await,
        RunVerb::Pause(args) => direct::pause(&client, printer, args).await,
        RunVerb::Resume(args) => direct::resume(&client, printer, args).await,
        RunVerb::Retry(args) => direct::retry(&client, printer, args).await,
        RunVerb::Skip(args) => direct::skip(&client, printer, args).await,
        RunVerb::Reassign(args) => direct::reassign(&client, printer, args).await,
        RunVerb::Restart(args) => direct::restart(&client, printer, args).await,
        RunVerb::Rollback(args) => direct::roll_back(&client, printer, args).await,
        RunVerb::Label(args) => label::run(&client, printer, args).await,
        RunVerb::Resolve(args) => resolve::run(&client, printer, args).await,
        RunVerb::Signal(args) => signal::run(&client, printer, args).await,
        RunVerb::Attempts(args) => attempts::run(&client, printer, args).await,
        RunVerb::Receipts(args) => receipts::run(&client, printer, args).await,
        RunVerb::Waits(args) => waits::run(&client, printer, args).await,
    }
}
