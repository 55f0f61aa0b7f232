//! A worker in a process of its own, which reaches the engine through a server on this machine.

use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use interlock_worker::{HttpTransport, Worker, WorkerOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use super::BenchArgs;
use super::front::Front;
use super::harness::{Harness, no_ops};
use crate::server::broker::BrokerArg;

/// What carries its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchTransport {
    /// One WebSocket.
    Websocket,
    /// Requests.
    Http,
    /// A broker (`--broker`).
    Redis,
}

impl BenchTransport {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Websocket => "websocket",
            Self::Http => "http",
            Self::Redis => "redis",
        }
    }
}

pub struct Remote {
    front: Front,
    worker: Child,
}

impl Remote {
    pub async fn start(
        harness: &Harness,
        (over, broker_arg): (BenchTransport, &BrokerArg),
        slots: usize,
    ) -> anyhow::Result<Self> {
        let broker = broker_arg.address()?.filter(|_| over == BenchTransport::Redis);
        anyhow::ensure!(
            over != BenchTransport::Redis || broker.is_some(),
            "--remote=redis needs a Redis: give its address with --broker redis://HOST:PORT or INTERLOCK_BROKER"
        );
        let front = Front::open_with(harness, broker).await?;
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut worker = Command::new(program)
            .args(["bench", "w1", &format!("--remote={}", over.as_str()), "--in-flight", &slots.to_string()])
            .args(["--works-for", &format!("http://{}", front.address)])
            // Not as an argument: it may hold a password.
            .envs(broker_arg.as_text().map(|text| ("INTERLOCK_BROKER", text)))
            .envs(broker_arg.authority().map(|path| ("INTERLOCK_BROKER_CA", path)))
            .stdin(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the worker's process")?;
        let mut input = worker.stdin.take().context("the worker's process has no input")?;
        // The end of the input comes with the end of the benchmark: see `work`.
        input.write_all(format!("{}\n", front.worker).as_bytes()).await?;
        worker.stdin = Some(input);
        Ok(Self { front, worker })
    }

    pub async fn end(mut self) -> anyhow::Result<()> {
        drop(self.worker.stdin.take());
        let ended = self.worker.wait().await?;
        anyhow::ensure!(ended.success(), "the worker's process ended with {ended}");
        self.front.close().await
    }
}

/// The other process: works until its input ends.
pub async fn work(server: &str, args: &BenchArgs) -> anyhow::Result<()> {
    let mut input = tokio::io::stdin();
    let mut key = Vec::new();
    loop {
        let byte = input.read_u8().await.context("no key came by standard input")?;
        if byte == b'\n' {
            break;
        }
        key.push(byte);
    }
    let transport = HttpTransport::new(server, Some(String::from_utf8(key)?))?;
    let transport = match (args.remote, args.broker.address()?) {
        (Some(BenchTransport::Websocket), _) => transport.with_channel(),
        (Some(BenchTransport::Redis), Some(broker)) => transport.with_broker(broker),
        _ => transport,
    };
    let options = WorkerOptions {
        name: "bench-remote".to_owned(),
        slots: args.in_flight.unwrap_or(1_000) as u32,
        poll_wait: Duration::from_secs(5),
        ..WorkerOptions::default()
    };
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        let mut rest = Vec::new();
        // Whatever it is, it is the end.
        let _ = input.read_to_end(&mut rest).await;
        stopping.cancel();
    });
    Box::pin(Worker::new(transport, no_ops(), options).run(stop)).await?;
    Ok(())
}
