//! `interlock worker`: a worker in a process of its own. Each task is a program: JSON on stdin, JSON on stdout. It calls
//! other systems where it is told who they are.

mod ca;
mod enrolled;
mod hindrance;
pub mod list;
mod program;
pub mod sandbox;
mod service;
mod show;
mod telling;
mod token;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use interlock_core::plan::DEFAULT_QUEUE;
use interlock_credentials::{Tenancy, harden_process};
use interlock_server::private_file;
use interlock_worker::{
    BrokerAddress, ExecTask, HttpTransport, Tasks, TransportOptions, Worker, WorkerCredential, WorkerError,
    WorkerOptions,
};
use tokio_util::sync::CancellationToken;

use crate::client::target::{Target, TargetArgs, address};
use crate::client::{ClientArgs, trust};
use crate::config::{ConfigArg, LogArgs};
use crate::identity::key_file;
use crate::output::exit::{Exit, ExitError};
use crate::output::{say_aside, span};
use crate::server::broker::BrokerArg;
use crate::server::commands::CommandArgs;
use crate::server::connectors::{ConnectorArgs, CredentialSweeper, no_secrets};
use crate::server::outbound::OutboundArgs;
use enrolled::{IdentityFolder, ServerPlace};
use telling::ReportingTransport;

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
    /// Take a worker out of service: it is given nothing new, finishes the steps that it has, and its process ends.
    Drain {
        #[command(flatten)]
        client: ClientArgs,
        /// A worker's name, the id of its session, or the end of that.
        #[arg(value_name = "WORKER")]
        which: String,
        /// Wait until the worker has left.
        #[arg(long)]
        wait: bool,
    },
    /// Keep new work from a worker for a while: it stays connected, and finishes the steps and runs that it has.
    Maintenance {
        #[command(flatten)]
        client: ClientArgs,
        /// A worker's name, the id of its session, or the end of that.
        #[arg(value_name = "WORKER")]
        which: String,
        /// Why; it is shown with the worker.
        #[arg(long, required_unless_present = "end", conflicts_with = "end")]
        reason: Option<String>,
        /// How long, as in `2h`; without it the maintenance lasts until `--end`.
        #[arg(long, value_name = "SPAN", value_parser = span::parse, conflicts_with = "end")]
        until: Option<Duration>,
        /// End the maintenance: the worker is given work again.
        #[arg(long)]
        end: bool,
    },
    /// Remove a worker that has ended from the lists; one that is still connected is refused.
    Forget {
        #[command(flatten)]
        client: ClientArgs,
        /// A worker's name, the id of its session, or the end of that.
        #[arg(value_name = "WORKER")]
        which: String,
    },
    /// The private certificate authority of an installation: it signs the certificates of the server and of workers.
    Ca(ca::CaArgs),
    /// Which workers may enrol by a one-time token, which have, and which no longer may.
    Token(token::TokenArgs),
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TransportKind {
    /// All calls over one WebSocket.
    Websocket,
    /// Each call a request, with long polls.
    Http,
    /// All calls over the broker.
    Redis,
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
    /// The authority (PEM) that has signed the server's certificate: it is trusted, and no other.
    #[arg(long, env = "INTERLOCK_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
    /// The folder with this worker's key and certificate. With it, the worker proves who it is by the certificate and needs
    /// no API key; the certificate is renewed while the worker runs.
    #[arg(long, env = "INTERLOCK_WORKER_IDENTITY", value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// A file with a one-time token (`interlock worker token create`), by which the worker enrols if the folder holds no
    /// certificate yet.
    #[arg(long, env = "INTERLOCK_ENROL_TOKEN_FILE", value_name = "FILE")]
    enrol_token_file: Option<PathBuf>,
    /// The data folder of a server on this machine.
    #[arg(long, env = "INTERLOCK_DATA", default_value = "interlock-data")]
    data: PathBuf,
    /// How it talks to the server. Where the server, or a proxy before it, has no WebSockets, it falls back to requests; where
    /// the broker cannot be used, to a WebSocket.
    #[arg(long, env = "INTERLOCK_WORKER_TRANSPORT", value_enum, default_value_t = TransportKind::Websocket)]
    transport: TransportKind,
    #[command(flatten)]
    broker: BrokerArg,
    /// A name that people recognise; by default the one that the worker has enrolled under, else the process id.
    #[arg(long, env = "INTERLOCK_WORKER_NAME")]
    name: Option<String>,
    #[command(flatten)]
    connectors: ConnectorArgs,
    #[command(flatten)]
    commands: CommandArgs,
    /// What this worker has besides, in the words of a step's `requires.capabilities`.
    #[arg(long = "capability", env = "INTERLOCK_WORKER_CAPABILITIES", value_name = "NAME", value_delimiter = ',')]
    capabilities: Vec<String>,
    /// Take only runs of these environments: `prod`, `staging`, `dev`, `none` for workflows without a profile. By default those of
    /// its certificate, or all if it has none.
    #[arg(
        long = "only-environment",
        env = "INTERLOCK_WORKER_ENVIRONMENTS",
        value_name = "NAME",
        value_delimiter = ','
    )]
    only_environments: Vec<String>,
    /// What people tell this worker apart by, as in `rack=a`; may be given several times.
    #[arg(long = "label", env = "INTERLOCK_WORKER_LABELS", value_name = "NAME=VALUE", value_delimiter = ',')]
    labels: Vec<String>,
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
        Some(WorkerVerb::Drain { client, which, wait }) => {
            let (client, printer) = client.open()?;
            let session = show::find(&client, &which).await?;
            service::drain(&client, printer, session, wait).await
        }
        Some(WorkerVerb::Maintenance { client, which, reason, until, end }) => {
            let (client, printer) = client.open()?;
            let session = show::find(&client, &which).await?;
            match reason.filter(|_| !end) {
                Some(reason) => service::begin_maintenance(&client, printer, session, (reason, until)).await,
                None => service::end_maintenance(&client, printer, session).await,
            }
        }
        Some(WorkerVerb::Forget { client, which }) => {
            let (client, printer) = client.open()?;
            let sessions = show::over(&client, &which).await?;
            service::forget(&client, printer, &sessions).await
        }
        Some(WorkerVerb::Ca(args)) => ca::run(args).await,
        Some(WorkerVerb::Token(args)) => token::run(args).await,
    }
}

impl StartWorkerArgs {
    /// The broker that calls go over; none where they go directly to the server.
    fn broker(&self) -> anyhow::Result<Option<BrokerAddress>> {
        let broker = self.broker.address()?;
        if self.transport == TransportKind::Redis && broker.is_none() {
            let what = "--transport redis needs the address of the broker: give it with --broker redis://HOST:PORT or \
                        INTERLOCK_BROKER";
            return Err(ExitError::saying(Exit::Usage, what));
        }
        Ok(broker.filter(|_| self.transport == TransportKind::Redis))
    }
}

impl WorkerArgs {
    /// What a worker with these settings would refuse before it looks for a server.
    pub fn check(&self) -> anyhow::Result<()> {
        if let Some(server) = &self.start.server {
            address(server)?;
        }
        tasks(&self.start.tasks)?;
        self.start.outbound.client()?;
        self.start.commands.check()?;
        self.start.broker()?;
        check_capabilities(&self.start.capabilities)?;
        labels(&self.start.labels)?;
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
                ExitError::saying(Exit::Usage, what)
            })?;
        program::check(name, program)?;
        tasks = tasks.add(name, ExecTask::new(program));
    }
    Ok(tasks)
}

async fn start(args: StartWorkerArgs) -> anyhow::Result<()> {
    check_capabilities(&args.capabilities)?;
    let labels = labels(&args.labels)?;
    if args.tasks.is_empty() && !args.connectors.is_given() && !args.commands.is_given() {
        let what = "this worker has no tasks: give it one with `--task NAME=PROGRAM`, as in `--task resize=./resize.sh`, \
                    with INTERLOCK_WORKER_TASKS, or in the table [worker.task] of the config file; or have it call other \
                    systems with `--connectors FILE` and `--secrets FOLDER` or `--credentials FILE`, or run commands with \
                    `--commands FILE`";
        return Err(ExitError::saying(Exit::Usage, what));
    }
    let tasks = tasks(&args.tasks)?;
    let broker = args.broker()?;
    // The worker's own key is a secret, too.
    harden_process().context("cannot keep this process's memory out of core dumps")?;
    if args.identity.is_none() && args.enrol_token_file.is_some() {
        let what = "--enrol-token-file needs --identity FOLDER, where the worker keeps its key and certificate";
        return Err(ExitError::saying(Exit::Usage, what));
    }
    let (place, identity) = match &args.identity {
        Some(folder) => {
            let (place, folder) = (enrolled_at(&args)?, IdentityFolder::new(folder));
            if !folder.is_enrolled() {
                folder.enrol(&place, &enrol_token(&args)?).await?;
            }
            (place, Some(folder))
        }
        None => (enrolled_at(&args)?, None),
    };
    let transport_options = match &identity {
        Some(folder) => folder.transport(&place)?,
        None => server_and_credential(&args).await?,
    };
    let server = transport_options.server.clone();
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
    let http = HttpTransport::open(&transport_options)?;
    let http = match (args.transport, broker) {
        (TransportKind::Http, _) => http,
        (TransportKind::Redis, Some(broker)) => http.with_channel().with_broker(broker),
        (TransportKind::Websocket | TransportKind::Redis, _) => http.with_channel(),
    };
    let transport = ReportingTransport::new(http.clone(), &server, &names).with_identity(args.identity.clone());
    let enrolled = identity.is_some();
    let name = args.name.or_else(|| identity.as_ref().and_then(IdentityFolder::name));
    let options = WorkerOptions {
        name: name.unwrap_or_else(|| format!("worker:{}", std::process::id())),
        queues: args.queues,
        slots: args.slots,
        seed: fastrand::u64(..),
        capabilities: args.capabilities,
        environments: (!args.only_environments.is_empty()).then(|| args.only_environments.into_iter().collect()),
        labels,
        enrolled,
        ..WorkerOptions::default()
    };
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        crate::server::shutdown::asked().await;
        say_aside("interlock: draining; running steps finish, then this worker stops");
        stopping.cancel();
    });
    // Not only until `stop`: what goes on while the worker drains is told to the server, too.
    let renewals = CancellationToken::new();
    let _until_the_end = renewals.clone().drop_guard();
    if let Some(folder) = identity {
        tokio::spawn(folder.keep_renewing(place, http, renewals));
    }
    let mut worker = Worker::new(transport, tasks, options);
    if let Some(commands) = commands {
        worker = worker.with_commands(commands);
    }
    let Some(calls) = calls else { return Box::pin(worker.run(stop)).await.map_err(refused) };
    let sweeping = CredentialSweeper::start(calls.credentials).await;
    let ended = Box::pin(worker.with_connectors(calls.connectors).run(stop)).await;
    sweeping.end().await;
    ended.map_err(refused)
}

fn labels(given: &[String]) -> anyhow::Result<BTreeMap<String, String>> {
    let pair = |text: &String| {
        let pair = text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
        pair.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(|| {
            let what = format!("`--label {text}` is not NAME=VALUE, as in `--label rack=a`");
            ExitError::saying(Exit::Usage, what)
        })
    };
    let mut labels = BTreeMap::new();
    for text in given {
        let (name, value) = pair(text)?;
        if let Some(other) = labels.insert(name.clone(), value) {
            let what = format!("`--label {text}`: the label `{name}` is given twice, and was `{other}` before");
            return Err(ExitError::saying(Exit::Usage, what));
        }
    }
    Ok(labels)
}

/// What a sandbox can do is proven, not said.
fn check_capabilities(names: &[String]) -> anyhow::Result<()> {
    match names.iter().find(|name| name.is_empty() || name.contains(':') || name.contains(char::is_whitespace)) {
        Some(name) => {
            let what = format!("`--capability {name}` is no name of a capability: it has no spaces and no colon");
            Err(ExitError::saying(Exit::Usage, what))
        }
        None => Ok(()),
    }
}

fn refused(error: WorkerError) -> anyhow::Error {
    let WorkerError::Refused { code, .. } = &error;
    let hint = match code.as_str() {
        "PERMISSION_DENIED" => {
            "`interlock key create NAME --role worker` makes a key for workers; name its file with `--api-key-file`"
        }
        "UNAUTHORIZED" => {
            "a worker that shows a certificate is refused like this once it is revoked: `interlock worker token list` says so, \
             and `interlock worker token create` makes a token for a new one"
        }
        _ => return error.into(),
    };
    ExitError::saying(Exit::NotPermitted, format!("{error}\n{hint}"))
}

/// The server of a worker that shows a certificate.
fn enrolled_at(args: &StartWorkerArgs) -> anyhow::Result<ServerPlace> {
    let target = target(args)?;
    let ca_pem = target.ca.as_deref().map(trust::read).transpose()?;
    Ok(ServerPlace { server: target.server, ca_pem })
}

fn enrol_token(args: &StartWorkerArgs) -> anyhow::Result<zeroize::Zeroizing<String>> {
    let path = args.enrol_token_file.as_ref().ok_or_else(|| {
        let what = "this worker has not enrolled yet: give it a one-time token with --enrol-token-file FILE; an administrator \
                    makes one with `interlock worker token create NAME --environment dev --file FILE`";
        ExitError::saying(Exit::Usage, what)
    })?;
    let text = private_file::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(zeroize::Zeroizing::new(text.trim().to_owned()))
}

fn target(args: &StartWorkerArgs) -> anyhow::Result<Target> {
    let context = std::env::var("INTERLOCK_CONTEXT").ok().filter(|name| !name.is_empty());
    TargetArgs { server: args.server.clone(), context, api_key_file: None, ca: args.ca.clone() }.target()
}

/// The server that every other command would talk to. The key is the one in the file, else the one that the server on this
/// machine has left in its data folder, else what other commands would send.
async fn server_and_credential(args: &StartWorkerArgs) -> anyhow::Result<TransportOptions> {
    let target = target(args)?;
    let key = match target.credential {
        Some(key) if args.api_key_file.is_none() && !key_file::is_in(&args.data) => key.reveal().to_owned(),
        _ => key_file::read(args.api_key_file.as_deref(), &args.data).await?,
    };
    let ca_pem = target.ca.as_deref().map(trust::read).transpose()?;
    Ok(TransportOptions { server: target.server, credential: WorkerCredential::Key(key), ca_pem })
}
