//! Output: how long a chunk takes from the step that writes it to a watcher over HTTP, at 1,000 chunks a second; and what a
//! sandboxed command that writes more than 50 MB a second costs in memory. Worker, server and watcher are one process here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use interlock_core::ids::{RunId, TenantId};
use interlock_core::limits::OUTPUT_BATCH_CHUNKS_MAX;
use interlock_core::plan::{Plan, StepSpec, Work};
use interlock_core::state::EffectClass;
use interlock_core::work::output::OutputStream;
use interlock_engine::audit::Actor;
use interlock_engine::policy::bundles::{NewPolicy, PolicyChange};
use interlock_engine::{EncodedPlan, Engine};
use interlock_protocol::live::path;
use interlock_protocol::output::OutputView;
use interlock_sandbox::{CommandRules, Profile, Sandbox, SandboxOptions};
use interlock_store::OutputPlace;
use interlock_worker::{CommandOptions, Commands, Tasks};
use serde::Deserialize;
use serde_json::json;

use super::BenchArgs;
use super::front::Front;
use super::harness::{Harness, now, plan, start};
use super::report::{Report, percentile, rss_mib};
use crate::client::fill;
use crate::server::connectors::no_secrets;

/// A little faster than the bar, so that what was really written meets it: a step that is held up is not a flood.
const CHUNKS_PER_S: u64 = 1_050;
const CHUNKS: u64 = 10_000;
/// Chunks that come before the watcher has settled are not counted.
const WARM_UP: u64 = 500;
/// Confines the flood.
const PROFILE: Profile = Profile::DevFlex;
/// Writes some 890 MB of lines, as fast as they are taken.
const FLOOD: [&str; 2] = ["/usr/bin/seq", "100000000"];
/// A machine that takes longer is not measured.
const FLOOD_LASTS: Duration = Duration::from_mins(5);
/// Chunks among which the mark of the cut is: what follows it in its batch has numbers too, and is not kept.
const LAST_CHUNKS: usize = 8 + OUTPUT_BATCH_CHUNKS_MAX;

/// What the flood runs in; not every host has one.
pub async fn sandbox() -> anyhow::Result<Sandbox> {
    let sandbox = Sandbox::open(SandboxOptions::default()).await;
    let sandbox = sandbox.context("the flood of output is a command in a sandbox, which needs bubblewrap (`bwrap`)")?;
    sandbox.offers(PROFILE).with_context(|| format!("this host cannot keep {}", PROFILE.name()))?;
    Ok(sandbox)
}

pub async fn run(args: &BenchArgs, sandbox: Sandbox) -> anyhow::Result<Report> {
    let mut harness = Harness::new(args).await?;
    let began = now();
    harness.work(move || tasks(began), 1, 4);
    harness.work_on(commands(sandbox));
    let front = Front::open(&harness).await?;

    let watched = begin(&harness, &plan("bench-output", vec![StepSpec::task("write", "steady")])?).await?;
    // When the first and the last counted chunk were written.
    let (mut first, mut last) = (None, 0_u64);
    let mut delays = watch(&front, watched, |view, delays: &mut Vec<u64>| {
        let here = now().duration_since(began).as_micros() as u64;
        for line in view.text.lines() {
            if let Some((number, sent)) = line.split_once(' ')
                && number.parse::<u64>().is_ok_and(|number| number >= WARM_UP)
            {
                last = sent.parse().unwrap_or(here);
                first.get_or_insert(last);
                delays.push(here.saturating_sub(last));
            }
        }
    })
    .await?;
    ensure!(delays.len() as u64 + WARM_UP == CHUNKS, "{} of {} chunks came", delays.len(), CHUNKS - WARM_UP);
    let written_in = Duration::from_micros(last.saturating_sub(first.unwrap_or(last)));
    let chunks_per_s = (CHUNKS - WARM_UP - 1) as f64 / written_in.as_secs_f64().max(f64::EPSILON);

    let tenant = harness.tenants[0];
    catalogue_flood(&harness.engine, tenant).await?;
    let before = rss_mib();
    let flood = begin(&harness, &flood_plan()?).await?;
    let peak = Arc::new(Mutex::new(0.0_f64));
    let sampler = {
        let peak = Arc::clone(&peak);
        tokio::spawn(async move {
            loop {
                raise(&peak, rss_mib());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
    };
    let ended = tokio::time::timeout(FLOOD_LASTS, harness.engine.events().wait_for_end(tenant, flood)).await;
    sampler.abort();
    let peak = *peak.lock().unwrap_or_else(PoisonError::into_inner);
    let store = harness.engine.store();
    let run = store.load_runs(&[(tenant, flood)]).await?.pop().context("the flood is gone")?;
    let Ok(ended) = ended else { bail!("the flood is {} after {} s", run.state, FLOOD_LASTS.as_secs()) };
    ended?;
    let output = run.steps[0].output.as_ref();
    let output = output.with_context(|| format!("the flood ended as {}: {:?}", run.state, run.steps[0].last_error))?;
    let flooded: Flooded = output.decode()?;
    let head = store.output_heads(tenant, flood, 1).await?.pop().context("the flood left no output")?;
    let last = OutputPlace { attempt: head.attempt, seq: head.next_seq.saturating_sub(LAST_CHUNKS as u64) };
    let rows = store.output_of_attempt(tenant, flood, (0, last), LAST_CHUNKS).await?;
    let mark = rows.iter().find(|row| row.stream == OutputStream::Status && row.text.contains("output cut"));
    front.close().await?;

    let mut more = serde_json::Map::new();
    more.insert("chunks_per_s".into(), chunks_per_s.into());
    more.insert("flood_mb_per_s".into(), flooded.mb_per_s().into());
    more.insert("flood_kept_bytes".into(), head.bytes.into());
    more.insert("flood_cut_mark".into(), mark.is_some().into());
    more.insert("flood_rss_growth_mib".into(), (peak - before).max(0.0).into());
    let report = Report {
        workload: "output",
        store: harness.store_name.clone(),
        runs: 2,
        steps: 2,
        in_flight: 1,
        runs_per_s: 0.0,
        steps_per_s: 0.0,
        p50_ms: percentile(&mut delays, 0.5),
        p99_ms: percentile(&mut delays, 0.99),
        rss_mib: rss_mib(),
        more,
    };
    harness.close().await;
    Ok(report)
}

fn raise(peak: &Mutex<f64>, rss: f64) {
    let mut peak = peak.lock().unwrap_or_else(PoisonError::into_inner);
    *peak = peak.max(rss);
}

/// What a command's step keeps of how much it has written, and how long that took.
#[derive(Deserialize)]
struct Flooded {
    output_bytes: u64,
    cut_bytes: u64,
    duration_ms: u64,
}

impl Flooded {
    fn mb_per_s(&self) -> f64 {
        (self.output_bytes + self.cut_bytes) as f64 / 1e3 / self.duration_ms.max(1) as f64
    }
}

fn commands(sandbox: Sandbox) -> Commands {
    // Under this profile everything runs that is not denied.
    let (rules, egress) = (CommandRules::default(), Vec::new());
    Commands::new(sandbox, CommandOptions { rules, profiles: vec![PROFILE], egress, credentials: no_secrets() })
}

/// Puts a policy in force that knows the flood's command: for what it does not know it asks two people.
async fn catalogue_flood(engine: &Engine, tenant: TenantId) -> anyhow::Result<()> {
    let mut files = engine.policies().files(tenant, None).await?;
    let data = files.get_mut("data.json").context("the shipped policy has no data")?;
    let mut catalogue: serde_json::Value = serde_json::from_str(data)?;
    catalogue["config"]["commands"]["allow"][FLOOD[0]] = json!([{ "arguments": [FLOOD[1]], "blast_radius": "low" }]);
    *data = catalogue.to_string();
    let by = Actor::unnamed();
    let new = NewPolicy { tenant, files, note: None, by: by.clone() };
    let version = engine.policies().put(new, |_| Ok(None)).await?.version;
    let change = PolicyChange { active: Some(Some(version)), shadow: None, revision: None, by };
    engine.policies().change(tenant, change).await?;
    Ok(())
}

fn flood_plan() -> anyhow::Result<Arc<EncodedPlan>> {
    let argv = FLOOD.map(str::to_owned).to_vec();
    let mut step = StepSpec::new("write", Work::Command { argv, env: BTreeMap::new() });
    step.effect = Some(EffectClass::Read);
    let mut plan = Plan::new("bench-flood", vec![step]);
    plan.rules.profile = Some(PROFILE.name().to_owned());
    Ok(EncodedPlan::new(plan)?)
}

async fn begin(harness: &Harness, plan: &Arc<EncodedPlan>) -> anyhow::Result<RunId> {
    Ok(harness.engine.runs().start(start(harness.tenants[0], plan)).await?.run)
}

/// Reads a step's stream to its end, as a client over HTTP does.
async fn watch(
    front: &Front,
    run: RunId,
    mut each: impl FnMut(&OutputView, &mut Vec<u64>),
) -> anyhow::Result<Vec<u64>> {
    let address = format!("http://{}{}", front.address, fill(path::SSE_OUTPUT, &[("run", &run), ("step", &"write")]));
    let client = reqwest::Client::builder().no_proxy().build()?;
    let mut response = client.get(address).bearer_auth(&front.token).send().await?.error_for_status()?;
    let (mut pending, mut delays) = (Vec::new(), Vec::new());
    while let Some(bytes) = response.chunk().await? {
        pending.extend_from_slice(&bytes);
        while let Some(end) = pending.windows(2).position(|pair| pair == b"\n\n") {
            let block: Vec<u8> = pending.drain(..end + 2).collect();
            let block = String::from_utf8_lossy(&block);
            if block.starts_with("event: stream.end") {
                return Ok(delays);
            }
            if let Some(data) = block.lines().find_map(|line| line.strip_prefix("data: ")) {
                each(&serde_json::from_str(data)?, &mut delays);
            }
        }
    }
    anyhow::bail!("the stream was closed before its end")
}

fn tasks(began: std::time::Instant) -> Tasks {
    let steady = move |ctx: interlock_worker::TaskContext, (): ()| async move {
        let mut tick = tokio::time::interval(Duration::from_micros(1_000_000 / CHUNKS_PER_S));
        for number in 0..CHUNKS {
            tick.tick().await;
            let sent = now().duration_since(began).as_micros();
            ctx.write_stdout(format!("{number} {sent}\n")).await;
        }
        Ok(())
    };
    Tasks::new().task("steady", steady)
}
