//! W1: runs of sequential no-op tasks, each completion durable before the next begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::ProgressBar;
use interlock_core::state::RunState;
use interlock_engine::EncodedPlan;
use tokio::task::JoinSet;

use super::BenchArgs;
use super::harness::{Harness, bar, chain, no_ops, now, start};
use super::remote::Remote;
use super::report::{Report, percentile, rss_mib};

pub async fn run(args: &BenchArgs, workload: &'static str, runs: u64, in_flight: usize) -> anyhow::Result<Report> {
    let mut harness = Harness::new(args).await?;
    let remote = if let Some(over) = args.remote {
        Some(Remote::start(&harness, (over, &args.broker), in_flight.max(2)).await?)
    } else {
        harness.work(no_ops, args.workers, in_flight.max(2));
        None
    };
    let plan = chain(args.steps)?;
    // A few runs first, so that prepared statements and caches are in place.
    for _ in 0..20 {
        harness.engine.runs().start_and_wait(start(harness.tenants[0], &plan)).await?;
    }
    let progress = bar(runs, workload, args.json);
    let (mut latencies, seconds) = drive(&harness, &plan, runs, in_flight, &progress).await?;
    let report = Report {
        workload,
        store: harness.store_name.clone(),
        runs,
        steps: runs * u64::from(args.steps),
        in_flight,
        runs_per_s: runs as f64 / seconds,
        steps_per_s: runs as f64 * f64::from(args.steps) / seconds,
        p50_ms: percentile(&mut latencies, 0.5),
        p99_ms: percentile(&mut latencies, 0.99),
        rss_mib: rss_mib(),
        more: args.remote.iter().map(|over| ("remote".to_owned(), over.as_str().into())).collect(),
    };
    if let Some(remote) = remote {
        remote.end().await?;
    }
    harness.close().await;
    Ok(report)
}

/// Keeps so many runs under way until all have succeeded. Answers with their times and the seconds they took together.
pub async fn drive(
    harness: &Harness,
    plan: &Arc<EncodedPlan>,
    runs: u64,
    in_flight: usize,
    progress: &ProgressBar,
) -> anyhow::Result<(Vec<u64>, f64)> {
    let next = Arc::new(AtomicU64::new(0));
    let mut drivers = JoinSet::new();
    let began = now();
    for _ in 0..in_flight.max(1) {
        let (engine, plan, next, progress) =
            (harness.engine.clone(), Arc::clone(plan), Arc::clone(&next), progress.clone());
        let tenants = harness.tenants.clone();
        drivers.spawn(async move {
            let mut latencies = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= runs {
                    return Ok::<_, anyhow::Error>(latencies);
                }
                let tenant = tenants[number as usize % tenants.len()];
                let started = now();
                let (_, state) = Box::pin(engine.runs().start_and_wait(start(tenant, &plan))).await?;
                anyhow::ensure!(state == RunState::Succeeded, "a run ended as {state}");
                latencies.push(started.elapsed().as_micros() as u64);
                if number.is_multiple_of(64) {
                    progress.set_position(number);
                }
            }
        });
    }
    let mut latencies = Vec::new();
    while let Some(driver) = drivers.join_next().await {
        latencies.extend(driver??);
    }
    let seconds = began.elapsed().as_secs_f64();
    progress.finish_and_clear();
    Ok((latencies, seconds))
}
