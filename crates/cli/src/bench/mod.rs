//! `interlock bench`: the engine measured on the machine it runs on, load generator included. Every completion is
//! durable before the next step begins.

mod approvals;
mod fairness;
mod front;
mod governance;
mod growth;
mod harness;
mod http;
mod output;
mod policy;
mod remote;
mod report;
mod sandbox;
mod w1;
mod w2;
mod watchers;

use clap::{Args, ValueEnum};

use crate::output::say_aside;
use crate::server::broker::BrokerArg;

#[derive(Args)]
pub struct BenchArgs {
    /// What to measure.
    workload: Workload,
    /// Where: `sqlite:PATH` or `postgres://…`; a fresh SQLite file in a temporary folder by default.
    #[arg(long, env = "INTERLOCK_BENCH_STORE")]
    store: Option<String>,
    /// How many runs; each workload has a default.
    #[arg(long)]
    runs: Option<u64>,
    /// How many steps a run has (w1, latency, watchers).
    #[arg(long, default_value_t = 5)]
    steps: u32,
    /// How many runs are under way at the same time (w1, watchers), how many callers start them (w2), or over how
    /// many connections (http).
    #[arg(long)]
    in_flight: Option<usize>,
    /// How many embedded workers share the load.
    #[arg(long, default_value_t = 1)]
    workers: usize,
    /// W1: the tasks run in another process, which talks to a server on this machine; over the WebSocket channel where no
    /// transport is named.
    #[arg(
        long,
        value_enum,
        value_name = "TRANSPORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "websocket"
    )]
    remote: Option<remote::BenchTransport>,
    #[command(flatten)]
    broker: BrokerArg,
    /// The other process: works for the server at this address. Its key comes by standard input.
    #[arg(long, hide = true, value_name = "URL")]
    works_for: Option<String>,
    /// Over how many tenants the runs are spread.
    #[arg(long, default_value_t = 1)]
    tenants: usize,
    /// Watchers: how many WebSockets watch one run.
    #[arg(long, default_value_t = 1_000)]
    watchers: usize,
    /// Growth: the finished steps to grow to. The last of the defaults takes minutes.
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 1_000_000, 10_000_000])]
    sizes: Vec<u64>,
    /// Growth: how many runs wait at the same time.
    #[arg(long, default_value_t = 1_000_000)]
    waiting: u64,
    /// Print exactly one JSON object per workload on stdout, and nothing else.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Workload {
    /// Runs of sequential no-op steps, many at the same time.
    W1,
    /// Single-step runs: started one by one, then processed.
    W2,
    /// W1, one run at a time.
    Latency,
    /// A quiet tenant beside one with 100 times the load.
    Fairness,
    /// The cost of a step as finished steps and waiting runs pile up.
    Growth,
    /// Runs started by `POST /runs`, over 64 kept connections; then at half that rate.
    Http,
    /// W1 beside a run that 1,000 WebSockets watch, and beside one that no client watches.
    Watchers,
    /// Chunks of output from a step to a watcher, and a sandboxed command that writes more than 50 MB a second.
    Output,
    /// W1 with tasks that policy judges, and with tasks that it does not judge.
    Governance,
    /// How long the shipped policy takes for a decision.
    Policy,
    /// From a vote over HTTP until a WebSocket that watches the run has seen it.
    Approvals,
    /// How much longer a command takes in the strictest sandbox than by itself.
    Sandbox,
    /// All of the above but the sandbox, which not every host has; without one, the output is left out too.
    All,
}

pub async fn run(args: BenchArgs) -> anyhow::Result<()> {
    if let Some(server) = &args.works_for {
        return remote::work(server, &args).await;
    }
    let all = args.workload == Workload::All;
    anyhow::ensure!(args.remote.is_none() || args.workload == Workload::W1, "--remote is for w1");
    let wants = |workload| all || args.workload == workload;
    if wants(Workload::W1) {
        w1::run(&args, "w1", args.runs.unwrap_or(40_000), args.in_flight.unwrap_or(1_000)).await?.print(args.json)?;
    }
    if wants(Workload::Latency) {
        w1::run(&args, "latency", args.runs.unwrap_or(2_000), 1).await?.print(args.json)?;
    }
    if wants(Workload::W2) {
        w2::run(&args).await?.print(args.json)?;
    }
    if wants(Workload::Http) {
        http::run(&args).await?.print(args.json)?;
    }
    if wants(Workload::Watchers) {
        watchers::run(&args).await?.print(args.json)?;
    }
    if wants(Workload::Output) {
        match output::sandbox().await {
            Ok(sandbox) => output::run(&args, sandbox).await?.print(args.json)?,
            Err(why) if all => say_aside(&format!("interlock: the output is not measured: {why:#}")),
            Err(why) => return Err(why),
        }
    }
    if wants(Workload::Governance) {
        governance::run(&args).await?.print(args.json)?;
    }
    if wants(Workload::Policy) {
        policy::run(&args).await?.print(args.json)?;
    }
    if wants(Workload::Approvals) {
        approvals::run(&args).await?.print(args.json)?;
    }
    if args.workload == Workload::Sandbox {
        sandbox::run(&args).await?.print(args.json)?;
    }
    if wants(Workload::Fairness) {
        fairness::run(&args).await?.print(args.json)?;
    }
    if wants(Workload::Growth) {
        growth::run(&args).await?.print(args.json)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches as _};

    use super::*;

    #[test]
    fn a_remote_worker_uses_the_channel_where_no_transport_is_named() {
        let read = |line: &[&str]| {
            let command = BenchArgs::augment_args(Command::new("bench"));
            let matches = command.try_get_matches_from([&["bench"], line].concat()).ok()?;
            let args = BenchArgs::from_arg_matches(&matches).unwrap();
            assert!(args.workload == Workload::W1, "{line:?}");
            Some((args.remote.map(remote::BenchTransport::as_str), args.json))
        };
        assert_eq!(read(&["w1"]), Some((None, false)));
        for line in [["w1", "--remote"], ["--remote", "w1"]] {
            assert_eq!(read(&line), Some((Some("websocket"), false)), "{line:?}: what follows is no transport");
        }
        assert_eq!(read(&["w1", "--remote", "--json"]), Some((Some("websocket"), true)));
        for line in [["w1", "--remote=http", "--json"], ["--remote=http", "--json", "w1"]] {
            assert_eq!(read(&line), Some((Some("http"), true)), "{line:?}");
        }
        assert_eq!(read(&["w1", "--remote=redis"]), Some((Some("redis"), false)));
        assert_eq!(read(&["w1", "--remote", "redis"]), None, "a transport stands behind an equals sign");
    }
}
