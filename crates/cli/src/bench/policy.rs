//! Policy: how long the shipped policy takes to decide on what runs ask it, as the engine has asked it a moment ago.

use anyhow::Context as _;
use interlock_core::plan::{BlastRadius, StepSpec};
use interlock_policy::Bundle;
use serde_json::{Value, json};

use super::BenchArgs;
use super::harness::{Harness, now, plan, start};
use super::report::{Report, percentile, rss_mib};

const EVALUATIONS: u64 = 20_000;
const WARM_UP: u64 = 500;

pub async fn run(args: &BenchArgs) -> anyhow::Result<Report> {
    let evaluations = args.runs.unwrap_or(EVALUATIONS);
    let harness = Harness::new(args).await?;
    let bundle = Bundle::shipped();
    let (mut all, mut asked) = (Vec::new(), Vec::new());
    let began = now();
    for (name, input) in questions(&harness).await? {
        let mut times = Vec::with_capacity(evaluations as usize);
        for number in 0..WARM_UP + evaluations {
            let began = now();
            let decided = bundle.decide_text(&input).map_err(|why| anyhow::anyhow!("no decision: {why}"))?;
            std::hint::black_box(decided);
            if number >= WARM_UP {
                // Of nanoseconds the percentiles are microseconds.
                times.push(began.elapsed().as_nanos() as u64);
            }
        }
        asked.push(json!({
            "question": name,
            "bytes": input.len(),
            "p50_us": percentile(&mut times, 0.5),
            "p99_us": percentile(&mut times, 0.99),
        }));
        all.append(&mut times);
    }
    let seconds = began.elapsed().as_secs_f64();
    let mut more = serde_json::Map::new();
    more.insert("evaluations_per_s".into(), (all.len() as f64 / seconds).into());
    more.insert("questions".into(), Value::Array(asked));
    let report = Report {
        workload: "policy",
        store: harness.store_name.clone(),
        runs: all.len() as u64,
        steps: 0,
        in_flight: 1,
        runs_per_s: 0.0,
        steps_per_s: 0.0,
        p50_ms: percentile(&mut all, 0.5) / 1_000.0,
        p99_ms: percentile(&mut all, 0.99) / 1_000.0,
        rss_mib: rss_mib(),
        more,
    };
    harness.close().await;
    Ok(report)
}

/// The question that the engine has put to the policy about a step that reaches far, byte by byte, and the same about one that
/// does not: people are asked for the first, and the second may pass.
async fn questions(harness: &Harness) -> anyhow::Result<[(&'static str, String); 2]> {
    let tenant = harness.tenants[0];
    let step = StepSpec { blast_radius: Some(BlastRadius::High), ..StepSpec::task("s0", "noop") };
    let run = harness.engine.runs().start(start(tenant, &plan("bench-policy", vec![step])?)).await?.run;
    let decisions = harness.engine.for_tenant(tenant).decisions_of(run, 1).await?;
    let far = decisions.first().context("no decision is recorded")?.record.basis.input.as_str().to_owned();
    let near = far.replace("\"high\"", "\"low\"");
    Ok([("reaches far", far), ("does not", near)])
}
