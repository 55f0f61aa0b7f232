//! Growth: what a claim and a completion cost when millions of steps are finished, and when many runs wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use interlock_core::plan::{StepSpec, WaitFor, Work};
use interlock_core::time::Millis;
use interlock_engine::EncodedPlan;
use serde::Serialize;
use tokio::task::JoinSet;

use super::BenchArgs;
use super::harness::{Harness, bar, chain, no_ops, plan, start};
use super::report::{Report, percentile, rss_mib};
use super::w1::drive;

/// A probe is this many single-step runs, and the best of a few counts: what the machine does beside it only slows.
const PROBE_RUNS: u64 = 10_000;
const PROBES: usize = 3;
const IN_FLIGHT: usize = 512;
/// Steps per run while filling up: long runs fill faster.
const FILL_STEPS: u32 = 10;

/// The cost at one size of the store.
#[derive(Serialize)]
struct Point {
    finished_steps: u64,
    waiting_runs: u64,
    /// What the waiting runs added to the memory of the process.
    waiting_mib: f64,
    runs_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    /// What a run costs here beside what it cost at the first size.
    cost_ratio: f64,
}

pub async fn run(args: &BenchArgs) -> anyhow::Result<Report> {
    let mut harness = Harness::new(args).await?;
    harness.work(no_ops, args.workers, IN_FLIGHT);
    let fill = chain(FILL_STEPS)?;
    let mut points: Vec<Point> = Vec::new();
    let mut finished = 0;
    for size in &args.sizes {
        let missing = size.saturating_sub(finished) / u64::from(FILL_STEPS);
        let progress = bar(missing, &format!("growth: filling to {size}"), args.json);
        drive(&harness, &fill, missing, IN_FLIGHT, &progress).await?;
        finished += missing * u64::from(FILL_STEPS);
        let point = probe(&harness, args.json, finished, points.first()).await?;
        finished += PROBE_RUNS * PROBES as u64;
        points.push(point);
    }
    if args.waiting > 0 {
        let before_mib = rss_mib();
        fall_asleep(&harness, args.waiting, args.json).await?;
        let waiting_mib = rss_mib() - before_mib;
        let point = probe(&harness, args.json, finished, points.first()).await?;
        points.push(Point { waiting_runs: args.waiting, waiting_mib, ..point });
    }
    let last = points.last().ok_or_else(|| anyhow::anyhow!("growth needs --sizes or --waiting"))?;
    let mut more = serde_json::Map::new();
    let (runs_per_s, p50_ms, p99_ms) = (last.runs_per_s, last.p50_ms, last.p99_ms);
    more.insert("cost_ratio".into(), last.cost_ratio.into());
    more.insert("points".into(), serde_json::to_value(&points)?);
    let report = Report {
        workload: "growth",
        store: harness.store_name.clone(),
        runs: PROBE_RUNS,
        steps: PROBE_RUNS,
        in_flight: IN_FLIGHT,
        runs_per_s,
        steps_per_s: runs_per_s,
        p50_ms,
        p99_ms,
        rss_mib: rss_mib(),
        more,
    };
    harness.close().await;
    Ok(report)
}

/// Starts runs that wait for hours: they must cost neither memory nor time.
async fn fall_asleep(harness: &Harness, waiting: u64, json: bool) -> anyhow::Result<()> {
    let timer = StepSpec::new("sleep", Work::Wait { until: WaitFor::For(Millis::from_hours(10)), timeout: None });
    let sleeper: Arc<EncodedPlan> = plan("bench-sleeper", vec![timer])?;
    let progress = bar(waiting, "growth: runs that wait", json);
    let next = Arc::new(AtomicU64::new(0));
    let mut drivers = JoinSet::new();
    for _ in 0..IN_FLIGHT {
        let (engine, sleeper, next, progress) =
            (harness.engine.clone(), Arc::clone(&sleeper), Arc::clone(&next), progress.clone());
        let tenant = harness.tenants[0];
        drivers.spawn(async move {
            while next.fetch_add(1, Ordering::Relaxed) < waiting {
                engine.runs().start(start(tenant, &sleeper)).await?;
                progress.inc(1);
            }
            Ok::<_, anyhow::Error>(())
        });
    }
    while let Some(driver) = drivers.join_next().await {
        driver??;
    }
    progress.finish_and_clear();
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(())
}

async fn probe(harness: &Harness, json: bool, finished_steps: u64, first: Option<&Point>) -> anyhow::Result<Point> {
    let plan = chain(1)?;
    let mut best: Option<(Vec<u64>, f64)> = None;
    for _ in 0..PROBES {
        let progress = bar(PROBE_RUNS, &format!("growth: at {finished_steps}"), json);
        let (latencies, seconds) = drive(harness, &plan, PROBE_RUNS, IN_FLIGHT, &progress).await?;
        if best.as_ref().is_none_or(|(_, least)| seconds < *least) {
            best = Some((latencies, seconds));
        }
    }
    let (mut latencies, seconds) = best.unwrap_or_default();
    let runs_per_s = PROBE_RUNS as f64 / seconds;
    Ok(Point {
        finished_steps,
        waiting_runs: 0,
        waiting_mib: 0.0,
        runs_per_s,
        p50_ms: percentile(&mut latencies, 0.5),
        p99_ms: percentile(&mut latencies, 0.99),
        cost_ratio: first.map_or(1.0, |first| first.runs_per_s / runs_per_s),
    })
}
