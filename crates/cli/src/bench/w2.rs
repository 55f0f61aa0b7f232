//! W2: single-step runs, started one by one by many callers, then processed from the backlog.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use interlock_worker::{TaskContext, Tasks};
use tokio::task::JoinSet;

use super::BenchArgs;
use super::harness::{Harness, bar, chain, now, start};
use super::report::{Report, percentile, rss_mib};

const CALLERS: usize = 64;
/// Steps that the worker of this workload runs at the same time.
const SLOTS: usize = 1_024;

/// A no-op that counts how often it ran.
fn counting(ran: &Arc<AtomicU64>) -> Tasks {
    let ran = Arc::clone(ran);
    Tasks::new().task("noop", move |_ctx: TaskContext, (): ()| {
        ran.fetch_add(1, Ordering::Relaxed);
        async { Ok(()) }
    })
}

pub async fn run(args: &BenchArgs) -> anyhow::Result<Report> {
    let runs = args.runs.unwrap_or(50_000);
    let callers = args.in_flight.unwrap_or(CALLERS);
    let mut harness = Harness::new(args).await?;
    let plan = chain(1)?;

    let progress = bar(runs, "w2: started one by one", args.json);
    let next = Arc::new(AtomicU64::new(0));
    let mut drivers = JoinSet::new();
    let began = now();
    for _ in 0..callers {
        let (engine, plan, next, progress) =
            (harness.engine.clone(), Arc::clone(&plan), Arc::clone(&next), progress.clone());
        let tenants = harness.tenants.clone();
        drivers.spawn(async move {
            let mut latencies = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= runs {
                    return Ok::<_, anyhow::Error>(latencies);
                }
                let started = now();
                engine.runs().start(start(tenants[number as usize % tenants.len()], &plan)).await?;
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
    let started_per_s = runs as f64 / began.elapsed().as_secs_f64();
    progress.finish_and_clear();

    let progress = bar(runs, "w2: processed", args.json);
    let before = harness.engine.store().stats().await?.live_runs;
    let began = now();
    let ran = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&ran);
    harness.work(move || counting(&counted), args.workers, SLOTS);
    // Counting rows would cost the database more than the runs do, so that begins when all tasks have run.
    while ran.load(Ordering::Relaxed) < before || harness.engine.store().stats().await?.live_runs > 0 {
        progress.set_position(ran.load(Ordering::Relaxed));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let processed_per_s = before as f64 / began.elapsed().as_secs_f64();
    progress.finish_and_clear();

    let mut more = serde_json::Map::new();
    more.insert("started_per_s".into(), started_per_s.into());
    more.insert("processed_per_s".into(), processed_per_s.into());
    let report = Report {
        workload: "w2",
        store: harness.store_name.clone(),
        runs,
        steps: runs,
        in_flight: callers,
        runs_per_s: processed_per_s,
        steps_per_s: processed_per_s,
        p50_ms: percentile(&mut latencies, 0.5),
        p99_ms: percentile(&mut latencies, 0.99),
        rss_mib: rss_mib(),
        more,
    };
    harness.close().await;
    Ok(report)
}
