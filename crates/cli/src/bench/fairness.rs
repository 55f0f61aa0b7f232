//! Fairness: how long a quiet tenant's step waits for a worker, alone, beside a neighbour with 100 times the load, and
//! beside one that asks for all that the machine can give.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use interlock_core::ids::{RunId, TenantId};
use interlock_worker::Tasks;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::BenchArgs;
use super::harness::{Harness, bar, chain, now, start};
use super::report::{Report, percentile, rss_mib};

const SLOTS: usize = 64;
const QUIET_EVERY: Duration = Duration::from_millis(10);
/// The noisy tenant has so many callers for the quiet one's only one, and so many steps for each of its steps.
const NOISE: u32 = 100;

/// When a run's step began to run, told by the task itself.
type StartTimes = Arc<Mutex<HashMap<RunId, Instant>>>;

pub async fn run(args: &BenchArgs) -> anyhow::Result<Report> {
    let samples = args.runs.unwrap_or(1_000);
    let mut harness = Harness::new(args).await?;
    let (quiet, noisy) = (harness.tenant("quiet").await?, harness.tenant("noisy").await?);
    let began: StartTimes = Arc::default();
    let tasks = {
        let began = Arc::clone(&began);
        move || {
            let began = Arc::clone(&began);
            Tasks::new().task("noop", move |ctx: interlock_worker::TaskContext, (): ()| {
                if ctx.tenant() == quiet {
                    began.lock().unwrap_or_else(PoisonError::into_inner).insert(ctx.run(), now());
                }
                async { Ok(()) }
            })
        }
    };
    harness.work(tasks, args.workers, SLOTS);
    measure(&harness, quiet, &began, samples / 10, args.json, "fairness: warm-up").await?;
    let mut alone = measure(&harness, quiet, &began, samples, args.json, "fairness: alone").await?;

    // Each caller's runs have some steps, so it starts them less often than the quiet tenant starts its own.
    let pace = Some(QUIET_EVERY * args.steps);
    let noise = Noise::begin(&harness, noisy, args.steps, pace)?;
    let mut beside = measure(&harness, quiet, &began, samples, args.json, "fairness: beside the noise").await?;
    noise.end().await;
    let noise = Noise::begin(&harness, noisy, args.steps, None)?;
    let mut flooded = measure(&harness, quiet, &began, samples, args.json, "fairness: in the flood").await?;
    noise.end().await;

    let mut more = serde_json::Map::new();
    let (alone_p50, alone_p99) = (percentile(&mut alone, 0.5), percentile(&mut alone, 0.99));
    let (p50_ms, p99_ms) = (percentile(&mut beside, 0.5), percentile(&mut beside, 0.99));
    more.insert("alone_p50_ms".into(), alone_p50.into());
    more.insert("alone_p99_ms".into(), alone_p99.into());
    more.insert("p99_ratio".into(), (p99_ms / alone_p99.max(0.001)).into());
    more.insert("flooded_p50_ms".into(), percentile(&mut flooded, 0.5).into());
    more.insert("flooded_p99_ms".into(), percentile(&mut flooded, 0.99).into());
    let report = Report {
        workload: "fairness",
        store: harness.store_name.clone(),
        runs: samples,
        steps: samples,
        in_flight: NOISE as usize,
        runs_per_s: 1.0 / QUIET_EVERY.as_secs_f64(),
        steps_per_s: 1.0 / QUIET_EVERY.as_secs_f64(),
        p50_ms,
        p99_ms,
        rss_mib: rss_mib(),
        more,
    };
    harness.close().await;
    Ok(report)
}

/// The neighbour's callers.
struct Noise {
    stop: CancellationToken,
    callers: JoinSet<()>,
}

impl Noise {
    /// Each caller starts a run at this pace, one after the other; without a pace, as soon as its last one has ended.
    fn begin(harness: &Harness, tenant: TenantId, steps: u32, pace: Option<Duration>) -> anyhow::Result<Self> {
        let (stop, plan) = (CancellationToken::new(), chain(steps)?);
        let mut callers = JoinSet::new();
        for number in 0..NOISE {
            let (engine, stop, plan) = (harness.engine.clone(), stop.clone(), Arc::clone(&plan));
            let mut ticks = pace.map(|pace| tokio::time::interval_at((now() + pace * number / NOISE).into(), pace));
            callers.spawn(async move {
                while !stop.is_cancelled() {
                    if let Some(ticks) = &mut ticks {
                        ticks.tick().await;
                    }
                    if engine.runs().start_and_wait(start(tenant, &plan)).await.is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Self { stop, callers })
    }

    async fn end(mut self) {
        self.stop.cancel();
        while self.callers.join_next().await.is_some() {}
    }
}

/// Starts single-step runs at an even pace; how long each waited until its step ran, in microseconds.
async fn measure(
    harness: &Harness,
    tenant: TenantId,
    began: &StartTimes,
    samples: u64,
    json: bool,
    what: &str,
) -> anyhow::Result<Vec<u64>> {
    let plan = chain(1)?;
    let progress = bar(samples, what, json);
    let mut waits = Vec::new();
    let mut pace = tokio::time::interval(QUIET_EVERY);
    for _ in 0..samples {
        pace.tick().await;
        let asked = now();
        let (started, _) = harness.engine.runs().start_and_wait(start(tenant, &plan)).await?;
        let ran = began.lock().unwrap_or_else(PoisonError::into_inner).remove(&started.run);
        waits.push(ran.map_or(0, |ran| ran.duration_since(asked).as_micros() as u64));
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(waits)
}
