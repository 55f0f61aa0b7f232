//! `interlock up`: everything on one machine, with a demo to watch.

use clap::Args;
use interlock_credentials::Tenancy;
use interlock_engine::Engine;
use interlock_worker::{Commands, Connectors, Tasks, Worker, WorkerError, WorkerOptions};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::client::local;
use crate::config::{ConfigArg, LogArgs};
use crate::output::exit::{Exit, ExitError};
use crate::output::{say_aside, say_on};
use crate::server::commands::CommandArgs;
use crate::server::connectors::{ConnectorArgs, CredentialSweeper, no_secrets};
use crate::server::embedded::Embedded;
use crate::server::shutdown::{self, EmbeddedWorker};
use crate::server::{self, address, demo, timeline};
use crate::server::{EngineArgs, HttpArgs, ListeningServer};

/// Said where commands are to run here, and will not.
const SEVERAL_TENANTS: &str = "interlock: this store has several tenants, so no commands run here: this worker serves all of them. \
                               Start `interlock worker --commands FILE` for each tenant that has commands";

#[derive(Args)]
pub struct UpArgs {
    #[command(flatten)]
    config: ConfigArg,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    http: HttpArgs,
    #[command(flatten)]
    connectors: ConnectorArgs,
    #[command(flatten)]
    commands: CommandArgs,
    /// Without the demo: no workflows of its own, and no orders.
    #[arg(long, env = "INTERLOCK_NO_DEMO")]
    no_demo: bool,
    #[command(flatten)]
    log: LogArgs,
}

impl UpArgs {
    pub fn check(&self) -> anyhow::Result<()> {
        self.engine.check(&self.http)?;
        self.commands.check()?;
        self.connectors.check(Tenancy::Several)
    }
}

pub async fn run(mut args: UpArgs) -> anyhow::Result<()> {
    // No load balancer stands before it.
    args.http.stop_delay_seconds = 0;
    let opened = args.engine.open(&args.http).await?;
    let calls = args.connectors.open(opened.outbound.clone(), Tenancy::Several, args.engine.data())?;
    let credentials = calls.as_ref().map_or_else(no_secrets, |calls| calls.credentials.clone());
    let commands = args.commands.open(opened.outbound.clone(), credentials).await?;
    let engine = opened.engine.clone();
    if let Some(calls) = &calls {
        engine.reach_targets(calls.connectors.caller().clone());
    }
    let tenant = demo::tenant(&engine).await?;
    if commands.is_some() && engine.workers().sole_tenant().await?.is_none() {
        say_aside(SEVERAL_TENANTS);
    }
    if !args.no_demo {
        demo::apply(&engine, tenant).await?;
    }
    let ListeningServer { server: http, announced } = args.http.bind(opened, tenant, args.engine.data()).await?;
    let (listens, url, encrypted) = (http.address()?, http.url()?, http.is_encrypted());
    let link = http.first_admin_link().await?;
    let stop = CancellationToken::new();
    let mut serving = tokio::spawn(http.run(stop.clone()));
    let mut workers = vec![EmbeddedWorker::new("embedded", embedded_worker(&engine, stop.clone()))];
    let (connectors, sweeping) = match calls {
        None => (None, None),
        Some(calls) => (Some(calls.connectors), Some(CredentialSweeper::start(calls.credentials).await)),
    };
    if connectors.is_some() || commands.is_some() {
        let acting = acting_worker(&engine, (connectors, commands), stop.clone());
        workers.push(EmbeddedWorker::new("acting", acting));
    }

    say_on(&format!("Interlock is up: {url}, on {}.", interlock_store::StoreUrl::parse(&args.engine.url()?)?));
    match address::warning(listens, encrypted) {
        Some(warning) => say_on(&warning),
        // Only a server that no other machine can reach leaves a key for the users who can read its folder.
        None if listens.ip().is_loopback() && !args.no_demo => {
            say_on(&format!("\nStart a run of your own:\n  {}", demo::curl(&url, args.engine.data())));
        }
        None => {}
    }
    let flags = match &announced {
        Some(note) if !note.is_found() => {
            let key_file = args.engine.data().join(server::LOCAL_KEY_FILE);
            format!(" {}", local::flags(&url, &key_file))
        }
        _ => String::new(),
    };
    if args.no_demo {
        say_on(&format!("\nBegin with a small project, its workflow and its worker:\n  {} init hello", this_program()));
        say_on(&format!("\nSee how everything stands:\n  {} status{flags}\n\n", this_program()));
    } else {
        say_on(&format!("\nFollow it as it happens:\n  {} run watch {}{flags}\n\n", this_program(), demo::SUBJECT));
    }
    if let Some(link) = link {
        say_on(&format!(
            "Sign in, to approve and to look around: become the first admin here, once, within the hour:\n  {link}\n\n"
        ));
    }
    if !args.no_demo {
        say_on("An order is placed every few seconds. Card payments fail now and then, and are tried again.");
        say_on(&format!(
            "A refund waits until a person approves it: sign in, or see `{} approval list{flags}`.",
            this_program()
        ));
        say_on(&format!(
            "Try it: kill -9 {}, start again, and watch every order go on where it was.",
            std::process::id()
        ));
    }
    say_on("Press Ctrl-C to stop.\n\n");

    let following = tokio::spawn(timeline::follow(engine.clone(), tenant));
    let driving = (!args.no_demo).then(|| tokio::spawn(demo::drive(engine.clone(), tenant, stop.clone())));
    let mut served = None;
    let why = tokio::select! {
        why = shutdown::why(&engine) => why.map(|why| why.to_string()),
        why = first_failed(&mut workers) => Some(why),
        ended = &mut serving => {
            let why = shutdown::unasked("the HTTP server", &ended);
            served = Some(ended);
            Some(why)
        }
    };
    say_on("\nStopping: running steps finish, the rest waits in the store.");
    stop.cancel();
    let worked = futures::future::join_all(workers.into_iter().map(EmbeddedWorker::joined)).await;
    if let Some(sweeping) = sweeping {
        sweeping.end().await;
    }
    let drove = match driving {
        Some(driving) => driving.await,
        None => Ok(Ok(())),
    };
    let served = match served {
        Some(served) => served,
        None => serving.await,
    };
    shutdown::end(&engine).await;
    following.abort();
    // What ended the server comes before what follows from it.
    if let Some(why) = why {
        return Err(ExitError::saying(Exit::Unsuccessful, why));
    }
    worked.into_iter().collect::<anyhow::Result<()>>()?;
    drove??;
    Ok(served??)
}

/// Waits until one of the workers of this process fails, and says how.
async fn first_failed(workers: &mut [EmbeddedWorker]) -> String {
    futures::future::select_all(workers.iter_mut().map(|worker| Box::pin(worker.until_failed()))).await.0
}

/// This program as the user called it, so that a printed line works as it stands.
fn this_program() -> String {
    std::env::args().next().filter(|name| !name.contains(char::is_whitespace)).unwrap_or_else(|| "interlock".to_owned())
}

/// A worker inside this process, for the demo's tasks.
fn embedded_worker(engine: &Engine, stop: CancellationToken) -> JoinHandle<Result<(), WorkerError>> {
    let name = format!("embedded:{}", std::process::id());
    let options = WorkerOptions { name, queues: vec![demo::QUEUE.to_owned()], slots: 64, ..WorkerOptions::default() };
    tokio::spawn(Worker::new(Embedded(engine.clone()), demo::tasks(), options).run(stop))
}

/// Another one that calls other systems and runs commands. Both may take long, so they do not take the demo's places.
fn acting_worker(
    engine: &Engine,
    (connectors, commands): (Option<Connectors>, Option<Commands>),
    stop: CancellationToken,
) -> JoinHandle<Result<(), WorkerError>> {
    let name = format!("acting:{}", std::process::id());
    let mut worker =
        Worker::new(Embedded(engine.clone()), Tasks::new(), WorkerOptions { name, ..WorkerOptions::default() });
    if let Some(connectors) = connectors {
        worker = worker.with_connectors(connectors);
    }
    if let Some(commands) = commands {
        worker = worker.with_commands(commands);
    }
    tokio::spawn(worker.run(stop))
}
