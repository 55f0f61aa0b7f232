//! Governance: what it costs that the tasks of a workflow without side effects are judged by policy.
//!
//! The same workload (W1) with tasks that only read, which policy does not judge, and with tasks that are judged one by
//! one; in turns, so that a drift of the machine favours neither.

use std::sync::Arc;

use interlock_core::plan::StepSpec;
use interlock_core::state::EffectClass;
use interlock_engine::EncodedPlan;

use super::BenchArgs;
use super::harness::{Harness, bar, no_ops, plan};
use super::report::{Report, median, percentile, rss_mib};
use super::w1;

const RUNS: u64 = 10_000;
const IN_FLIGHT: usize = 256;
/// How often both are measured.
const ROUNDS: usize = 9;

pub async fn run(args: &BenchArgs) -> anyhow::Result<Report> {
    let runs = args.runs.unwrap_or(RUNS);
    let in_flight = args.in_flight.unwrap_or(IN_FLIGHT);
    let mut harness = Harness::new(args).await?;
    harness.work(no_ops, args.workers, in_flight.max(2));
    let [unjudged, judged] = [Some(EffectClass::Read), None].map(|effect| tasks(args.steps, effect));
    let (unjudged, judged) = (unjudged?, judged?);
    for plan in [&unjudged, &judged] {
        w1::drive(&harness, plan, runs / 10 + 1, in_flight, &bar(runs / 10, "governance: warm-up", args.json)).await?;
    }
    let (mut without, mut with, mut latencies) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        // Every other round the other way round.
        for is_judged in if round.is_multiple_of(2) { [true, false] } else { [false, true] } {
            let what = if is_judged { "judged" } else { "not judged" };
            let progress = bar(runs, &format!("governance: {what}, {round} of {ROUNDS}"), args.json);
            let plan = if is_judged { &judged } else { &unjudged };
            let (mut times, seconds) = w1::drive(&harness, plan, runs, in_flight, &progress).await?;
            let rate = runs as f64 / seconds;
            if is_judged {
                with.push(rate);
                latencies.append(&mut times);
            } else {
                without.push(rate);
            }
        }
    }
    let mut ratios: Vec<f64> = with.iter().zip(&without).map(|(with, without)| with / without).collect();
    let ratio = median(&mut ratios);
    let (with, without) = (median(&mut with), median(&mut without));
    let steps = f64::from(args.steps);
    let mut more = serde_json::Map::new();
    more.insert("steps_per_s_unjudged".into(), (without * steps).into());
    more.insert("ratio".into(), ratio.into());
    more.insert("ratio_min".into(), ratios.first().copied().into());
    more.insert("ratio_max".into(), ratios.last().copied().into());
    let report = Report {
        workload: "governance",
        store: harness.store_name.clone(),
        runs,
        steps: runs * u64::from(args.steps),
        in_flight,
        runs_per_s: with,
        steps_per_s: with * steps,
        p50_ms: percentile(&mut latencies, 0.5),
        p99_ms: percentile(&mut latencies, 0.99),
        rss_mib: rss_mib(),
        more,
    };
    harness.close().await;
    Ok(report)
}

fn tasks(steps: u32, effect: Option<EffectClass>) -> anyhow::Result<Arc<EncodedPlan>> {
    let step = |number| StepSpec { effect, ..StepSpec::task(format!("s{number}"), "noop") };
    plan("bench-governance", (0..steps).map(step).collect())
}
