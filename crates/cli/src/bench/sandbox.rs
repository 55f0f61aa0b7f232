//! Sandbox: how much longer a command takes in the strictest profile than the bare process, from its start until its end is
//! known.

use std::time::Duration;

use anyhow::Context as _;
use interlock_sandbox::{CommandRules, Outcome, Profile, Request, Sandbox, SandboxOptions};
use serde_json::{Map, Value};

use super::BenchArgs;
use super::harness::now;
use super::report::{Report, percentile, rss_mib};

const COMMANDS: u64 = 300;
const WARM_UP: u64 = 10;
const PROFILE: Profile = Profile::ProdCritical;
/// Does nothing.
const PROGRAM: &str = "/usr/bin/true";

pub async fn run(args: &BenchArgs) -> anyhow::Result<Report> {
    let commands = args.runs.unwrap_or(COMMANDS);
    let sandbox = Sandbox::open(SandboxOptions::default()).await.context("a sandbox needs bubblewrap (`bwrap`)")?;
    sandbox.offers(PROFILE).with_context(|| format!("this host cannot keep {}", PROFILE.name()))?;
    let mut rules = CommandRules::default();
    rules.allow.push(PROGRAM.parse()?);

    let (mut bare, mut confined, mut added) = (Vec::new(), Vec::new(), Vec::new());
    let began = now();
    for number in 0..WARM_UP + commands {
        let alone = bare_process().await?;
        let inside = confined_process(&sandbox, &rules).await?;
        if number >= WARM_UP {
            bare.push(micros(alone));
            confined.push(micros(inside));
            added.push(micros(inside.saturating_sub(alone)));
        }
    }
    let per_s = commands as f64 / began.elapsed().as_secs_f64();
    let mut more = Map::new();
    for (name, value) in [
        ("bare_p50_ms", percentile(&mut bare, 0.5)),
        ("bare_p95_ms", percentile(&mut bare, 0.95)),
        ("sandboxed_p50_ms", percentile(&mut confined, 0.5)),
        ("sandboxed_p95_ms", percentile(&mut confined, 0.95)),
        ("added_p95_ms", percentile(&mut added, 0.95)),
    ] {
        more.insert(name.into(), value.into());
    }
    more.insert("profile".into(), Value::from(PROFILE.name()));
    Ok(Report {
        workload: "sandbox",
        store: "none".to_owned(),
        runs: commands,
        steps: 1,
        in_flight: 1,
        runs_per_s: per_s,
        steps_per_s: per_s,
        p50_ms: percentile(&mut added, 0.5),
        p99_ms: percentile(&mut added, 0.99),
        rss_mib: rss_mib(),
        more,
    })
}

async fn bare_process() -> anyhow::Result<Duration> {
    let began = now();
    let output = tokio::process::Command::new(PROGRAM).env_clear().output().await?;
    anyhow::ensure!(output.status.success(), "{PROGRAM} failed");
    Ok(began.elapsed())
}

async fn confined_process(sandbox: &Sandbox, rules: &CommandRules) -> anyhow::Result<Duration> {
    let began = now();
    let command = rules.permit(PROFILE, vec![PROGRAM.to_owned()])?;
    let ended = sandbox.run(Request::new(command)).await?.end().await;
    let elapsed = began.elapsed();
    anyhow::ensure!(ended.outcome == Outcome::Exited { code: 0 }, "{PROGRAM} ended with {:?}", ended.outcome);
    Ok(elapsed)
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
