//! Growth: what a claim and a completion cost when millions of steps are finished, and when many runs wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use interlock_core::plan::{StepSpec, WaitFor, Work};
use interlock_core::time::Millis;
use interlock_engine::EncodedPlan;
use tokio::task::JoinSet;

use super::BenchArgs;
use super::report::{Report, rss_mib};
use super::rig::{Rig, bar, chain, no_ops, now, plan, start};

const PROBE_RUNS: u64 = 20_000;
const IN_FLIGHT: usize = 512;
/// Steps per run while filling up: long runs fill faster.
const FILL_STEPS: u32 = 10;

pub async fn run(args: &BenchArgs) -> anyhow::Result<Vec<Report>> {
    let mut rig = Rig::new(args).await?;
    rig.work(no_ops, args.workers, IN_FLIGHT);
    let fill = chain(FILL_STEPS)?;
    let probe_plan = chain(1)?;
    let mut reports = Vec::new();
    let mut finished = 0;
    let mut base = None;
    for size in &args.sizes {
        let missing = size.saturating_sub(finished) / u64::from(FILL_STEPS);
        drive(&rig, &fill, missing, args.json, &format!("growth: filling to {size}")).await?;
        finished += missing * u64::from(FILL_STEPS);
        let mut report = probe(&rig, &probe_plan, args.json, &format!("growth: at {size}")).await?;
        finished += PROBE_RUNS;
        let base = *base.get_or_insert(report.runs_per_s);
        report.more.insert("finished_steps".into(), (*size).into());
        report.more.insert("cost_ratio".into(), (base / report.runs_per_s).into());
        reports.push(report);
    }
    if args.waiting > 0 {
        reports.push(waiting(&rig, args, &probe_plan, base.unwrap_or(1.0)).await?);
    }
    rig.close().await;
    Ok(reports)
}

/// Runs that wait for an hour: they must cost neither memory nor time.
async fn waiting(rig: &Rig, args: &BenchArgs, probe_plan: &Arc<EncodedPlan>, base: f64) -> anyhow::Result<Report> {
    let timer = StepSpec::new("sleep", Work::Wait { until: WaitFor::For(Millis::from_hours(1)), timeout: None });
    let sleeper = plan("bench-sleeper", vec![timer])?;
    let before_mib = rss_mib();
    let progress = bar(args.waiting, "growth: runs that wait", args.json);
    let next = Arc::new(AtomicU64::new(0));
    let mut drivers = JoinSet::new();
    let waiting = args.waiting;
    for _ in 0..IN_FLIGHT {
        let (engine, sleeper, next, progress) =
            (rig.engine.clone(), Arc::clone(&sleeper), Arc::clone(&next), progress.clone());
        let tenant = rig.tenants[0];
        drivers.spawn(async move {
            while next.fetch_add(1, Ordering::Relaxed) < waiting {
                engine.start(start(tenant, &sleeper)).await?;
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
    let held_mib = rss_mib() - before_mib;
    let mut report = probe(rig, probe_plan, args.json, "growth: beside the waiting").await?;
    report.more.insert("waiting_runs".into(), args.waiting.into());
    report.more.insert("waiting_mib".into(), held_mib.into());
    report.more.insert("cost_ratio".into(), (base / report.runs_per_s).into());
    Ok(report)
}

async fn probe(rig: &Rig, plan: &Arc<EncodedPlan>, json: bool, what: &str) -> anyhow::Result<Report> {
    let seconds = drive(rig, plan, PROBE_RUNS, json, what).await?;
    Ok(Report {
        workload: "growth",
        store: rig.store_name.clone(),
        runs: PROBE_RUNS,
        steps: PROBE_RUNS,
        in_flight: IN_FLIGHT,
        runs_per_s: PROBE_RUNS as f64 / seconds,
        steps_per_s: PROBE_RUNS as f64 / seconds,
        p50_ms: 0.0,
        p99_ms: 0.0,
        rss_mib: rss_mib(),
        more: serde_json::Map::new(),
    })
}

/// Runs this many runs to their end; how long it took.
async fn drive(rig: &Rig, plan: &Arc<EncodedPlan>, runs: u64, json: bool, what: &str) -> anyhow::Result<f64> {
    let progress = bar(runs, what, json);
    let next = Arc::new(AtomicU64::new(0));
    let mut drivers = JoinSet::new();
    let began = now();
    for _ in 0..IN_FLIGHT {
        let (engine, plan, next, progress) =
            (rig.engine.clone(), Arc::clone(plan), Arc::clone(&next), progress.clone());
        let tenant = rig.tenants[0];
        drivers.spawn(async move {
            while next.fetch_add(1, Ordering::Relaxed) < runs {
                engine.start_and_wait(start(tenant, &plan)).await?;
                progress.inc(1);
            }
            Ok::<_, anyhow::Error>(())
        });
    }
    while let Some(driver) = drivers.join_next().await {
        driver??;
    }
    progress.finish_and_clear();
    Ok(began.elapsed().as_secs_f64())
}
