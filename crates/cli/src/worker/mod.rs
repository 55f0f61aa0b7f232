//! `interlock worker`: a worker in a process of its own. Each task is a program: JSON on stdin, JSON on stdout. It calls
//! other systems where it is told who they are.

pub mod list;
mod program;
pub mod sandbox;
mod show;
mod telling;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use interlock_core::plan::DEFAULT_QUEUE;
use interlock_credentials::{Tenancy, harden_process};
use interlock_worker::{ExecTask, HttpTransport, Tasks, Worker, WorkerError, WorkerOptions};
use tokio_util::sync::CancellationToken;

use crate::client::ClientArgs;
use crate::client::target::TargetArgs;
use crate::config::{ConfigArg, LogArgs};
use crate::identity::key_file;
use crate::output::exit::{Ended, Exit};
use crate::server::commands::CommandArgs;
use crate::server::connectors::{ConnectorArgs, Sweeping, no_secrets};
use crate::server::outbound::OutboundArgs;
use telling::Telling;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct WorkerArgs {
    #[command(subcommand)]
    look: Option<WorkerVerb>,
    #[command(flatten)]
    start: StartWorkerArgs,
}

#[derive(Subcommand)]
enum WorkerVerb {
    /// List workers, those last heard of first.
    List {
        #[command(flatten)]
        client: ClientArgs,
        /// Also those that have signed off, or were lost.
        #[arg(long)]
        all: bool,
    },
    /// Show a worker, what it can do, and the steps that it has.
    Show {
        #[command(flatten)]
        client: ClientArgs,
        /// A worker's name, the id of its session, or the end of that.
        #[arg(value_name = "WORKER")]
        which: String,
    },
}

#[derive(Args)]
struct StartWorkerArgs {
    #[command(flatten)]
    config: ConfigArg,
    /// Where the server is; by default the one of the current context, else the one on this machine.
    #[arg(long, env = "INTERLOCK_SERVER", value_name = "URL")]
    server: Option<String>,
    /// A task and the program that runs it; may be given several times, with `;` in the variable.
    #[arg(long = "task", env = "INTERLOCK_WORKER_TASKS", value_name = "NAME=PROGRAM", value_delimiter = ';')]
    tasks: Vec<String>,
    /// Queues to take work from.
    #[arg(long = "queue", env = "INTERLOCK_WORKER_QUEUES", value_delimiter = ',', default_value = DEFAULT_QUEUE)]
    queues: Vec<String>,
    /// How many steps run at the same time.
    #[arg(long, env = "INTERLOCK_WORKER_SLOTS", default_value_t = 16)]
    slots: u32,
    /// A file that holds a key with the role `worker`; by default the one that a server on this machine has left in
    /// its data folder.
    #[arg(long, env = "INTERLOCK_API_KEY_FILE", value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    /// The data folder of a server on this machine.
    #[arg(long, env = "INTERLOCK_DATA", default_value = "interlock-data")]
    data: PathBuf,
    /// A name that people recognise; the process id by default.
    #[arg(long, env = "INTERLOCK_WORKER_NAME")]
    name: Option<String>,
    #[command(flatten)]
    connectors: ConnectorArgs,
    #[command(flatten)]
    commands: CommandArgs,
    /// What this worker has besides, in the words of a step's `requires.capabilities`.
    #[arg(long = "capability", env = "INTERLOCK_WORKER_CAPABILITIES", value_name = "NAME", value_delimiter = ',')]
    capabilities: Vec<String>,
    #[command(flatten)]
    outbound: OutboundArgs,
    #[command(flatten)]
    log: LogArgs,
}

pub async fn run(args: WorkerArgs) -> anyhow::Result<()> {
    match args.look {
        None => start(args.start).await,
        Some(WorkerVerb::List { client, all }) => {
            let (client, printer) = client.open()?;
            list::run(&client, printer, all).await
        }
        Some(WorkerVerb::Show { client, which }) => {
            let (client, printer) = client.open()?;
            show::run(&client, printer, &which).await
        }
    }
}

impl WorkerArgs {
    /// What a worker with these settings would refuse before it looks for a server.
    pub fn check(&self) -> anyhow::Result<()> {
        tasks(&self.start.tasks)?;
        self.start.outbound.client()?;
        self.start.commands.check()?;
        check_capabilities(&self.start.capabilities)?;
        self.start.connectors.check(Tenancy::One)
    }
}

fn tasks(given: &[String]) -> anyhow::Result<Tasks> {
    let mut tasks = Tasks::new();
    for task in given {
        let (name, program) = task
            .split_once('=')
            .filter(|(name, program)| !name.is_empty() && !program.is_empty())
            .ok_or_else(|| {
                let what = format!("`--task {task}` is not NAME=PROGRAM, as in `--task resize=./resize.sh`");
                Ended::saying(Exit::Usage, what)
            })?;
        program::check(name, program)?;
        tasks = tasks.add(name, ExecTask::new(program));
    }
    Ok(tasks)
}

async fn start(args: StartWorkerArgs) -> anyhow::Result<()> {
    check_capabilities(&args.capabilities)?;
    if args.tasks.is_empty() && !args.connectors.is_given() && !args.commands.is_given() {
        let what = "this worker has no tasks: give it one with `--task NAME=PROGRAM`, as in `--task resize=./resize.sh`, \
                    with INTERLOCK_WORKER_TASKS, or in the table [worker.task] of the config file; or have it call other \
                    systems with `--connectors FILE` and `--secrets FOLDER` or `--credentials FILE`, or run commands with \
                    `--commands FILE`";
        return Err(Ended::saying(Exit::Usage, what));
    }
    let tasks = tasks(&args.tasks)?;
    // The worker's own key is a secret, too.
    harden_process().context("cannot keep this process's memory out of core dumps")?;
    let (server, key) = server_and_key(&args).await?;
    let calls = args.connectors.open(args.outbound.client()?, Tenancy::One, &args.data)?;
    let credentials = match &calls {
        Some(calls) => calls.credentials.clone(),
        None => no_secrets(),
    };
    let commands = args.commands.open(args.outbound.client()?, credentials).await?;
    let mut names: Vec<&str> = tasks.names().collect();
    if calls.is_some() {
        names.push("connectors and models");
    }
    if commands.is_some() {
        names.push("commands");
    }
    let transport = Telling::new(HttpTransport::new(&server, Some(key))?, &server, &names);
    let options = WorkerOptions {
        name: args.name.unwrap_or_else(|| format!("worker:{}", std::process::id())),
        queues: args.queues,
        slots: args.slots,
        seed: fastrand::u64(..),
        capabilities: args.capabilities,
        ..WorkerOptions::default()
    };
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        crate::server::shutdown::asked().await;
        eprintln!("interlock: draining; running steps finish, then this worker stops");
        stopping.cancel();
    });
    let mut worker = Worker::new(transport, tasks, options);
    if let Some(commands) = commands {
        worker = worker.with_commands(commands);
    }
    let Some(calls) = calls else { return worker.run(stop).await.map_err(refused) };
    let sweeping = Sweeping::start(calls.credentials).await;
    let ended = worker.with_connectors(calls.connectors).run(stop).await;
    sweeping.end().await;
    ended.map_err(refused)
}

/// What a sandbox can do is proven, not said.
fn check_capabilities(names: &[String]) -> anyhow::Result<()> {
    match names.iter().find(|name| name.is_empty() || name.contains(':') || name.contains(char::is_whitespace)) {
        Some(name) => {
            let what = format!("`--capability {name}` is no name of a capability: it has no spaces and no colon");
            Err(Ended::saying(Exit::Usage, what))
        }
        None => Ok(()),
    }
}

fn refused(error: WorkerError) -> anyhow::Error {
    let WorkerError::Refused { code, .. } = &error;
    if code != "PERMISSION_DENIED" {
        return error.into();
    }
    let hint = "`interlock key create NAME --role worker` makes a key for workers; name its file with `--api-key-file`";
    Ended::saying(Exit::NotPermitted, format!("{error}\n{hint}"))
}

/// The server that every other command would talk to. The key is the one in the file, else the one that the server on this
/// machine has left in its data folder, else what other commands would send.
async fn server_and_key(args: &StartWorkerArgs) -> anyhow::Result<(String, String)> {
    let context = std::env::var("INTERLOCK_CONTEXT").ok().filter(|name| !name.is_empty());
    let target = TargetArgs { server: args.server.clone(), context, api_key_file: None }.target()?;
    let key = match target.credential {
        Some(key) if args.api_key_file.is_none() && !key_file::is_in(&args.data) => key.reveal().to_owned(),
        _ => key_file::read(args.api_key_file.as_deref(), &args.data).await?,
    };
    Ok((target.server, key))
}
