//! Approvals: from the moment at which a person's vote is sent over HTTP until a WebSocket that watches the run has got that
//! it is decided.

use anyhow::{Context as _, ensure};
use interlock_core::ids::RunId;
use interlock_core::plan::{Plan, StepSpec};
use interlock_engine::EncodedPlan;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::BenchArgs;
use super::front::Front;
use super::harness::{Harness, bar, now, start};
use super::report::{Report, percentile, rss_mib};
use super::watchers::Watcher;

const APPROVALS: u64 = 2_000;
const IN_FLIGHT: usize = 8;
const WARM_UP: u64 = 50;
const PERSON: &str = "bench-approver";

pub async fn run(args: &BenchArgs) -> anyhow::Result<Report> {
    let approvals = args.runs.unwrap_or(APPROVALS);
    let in_flight = args.in_flight.unwrap_or(IN_FLIGHT).max(1);
    let harness = Harness::new(args).await?;
    let front = std::sync::Arc::new(Front::open(&harness).await?);
    let voter = Voter::sign_in(&front).await?;
    let progress = bar(approvals, "approvals", args.json);
    measure(&harness, &front, &voter, WARM_UP, in_flight).await?;
    let began = now();
    let mut times = measure(&harness, &front, &voter, approvals, in_flight).await?;
    let seconds = began.elapsed().as_secs_f64();
    progress.finish_and_clear();
    let report = Report {
        workload: "approvals",
        store: harness.store_name.clone(),
        runs: times.len() as u64,
        steps: 0,
        in_flight,
        runs_per_s: times.len() as f64 / seconds,
        steps_per_s: 0.0,
        p50_ms: percentile(&mut times, 0.5),
        p99_ms: percentile(&mut times, 0.99),
        rss_mib: rss_mib(),
        more: serde_json::Map::new(),
    };
    if let Some(front) = std::sync::Arc::into_inner(front) {
        front.close().await?;
    }
    harness.close().await;
    Ok(report)
}

/// So many approvals, so many of them at the same time; the microseconds that each took.
async fn measure(
    harness: &Harness,
    front: &std::sync::Arc<Front>,
    voter: &Voter,
    approvals: u64,
    in_flight: usize,
) -> anyhow::Result<Vec<u64>> {
    let mut drivers = JoinSet::new();
    for number in 0..in_flight as u64 {
        let share = approvals / in_flight as u64 + u64::from(number < approvals % in_flight as u64);
        let (engine, tenant, front, voter) =
            (harness.engine.clone(), harness.tenants[0], std::sync::Arc::clone(front), voter.clone());
        drivers.spawn(async move {
            let gate: StepSpec =
                serde_json::from_value(json!({ "key": "gate", "kind": "approval", "message": "go?" }))?;
            let plan = EncodedPlan::new(Plan::new("bench-approvals", vec![gate]))?;
            let mut times = Vec::with_capacity(share as usize);
            for _ in 0..share {
                let run = engine.runs().start(start(tenant, &plan)).await?.run;
                let watcher = Watcher::open(&front, run, 0).await?;
                let sent = now();
                let (voted, seen) = tokio::join!(voter.approve(run), watcher.until("approval.resolved", now));
                voted?;
                times.push(seen?.duration_since(sent).as_micros() as u64);
            }
            Ok::<_, anyhow::Error>(times)
        });
    }
    let mut times = Vec::new();
    while let Some(driver) = drivers.join_next().await {
        times.extend(driver??);
    }
    Ok(times)
}

/// A person who may approve, signed in with a password as usual.
#[derive(Clone)]
struct Voter {
    http: reqwest::Client,
    at: String,
    token: String,
}

impl Voter {
    async fn sign_in(front: &Front) -> anyhow::Result<Self> {
        let (http, at) = (reqwest::Client::new(), format!("http://{}/api/v1", front.address));
        let password: String = std::iter::repeat_with(fastrand::alphanumeric).take(24).collect();
        let person = json!({ "name": PERSON, "roles": ["approver"], "password": password });
        let made = http.post(format!("{at}/users")).bearer_auth(&front.admin).json(&person).send().await?;
        ensure!(
            made.status().is_success(),
            "the server does not take a person: {}; measure in a fresh store",
            made.status()
        );
        let login = json!({ "by": "password", "name": PERSON, "password": password });
        let signed_in: Value = http.post(format!("{at}/auth/token")).json(&login).send().await?.json().await?;
        let token = signed_in["token"].as_str().context("the person cannot sign in")?.to_owned();
        Ok(Self { http, at, token })
    }

    async fn approve(&self, run: RunId) -> anyhow::Result<()> {
        let url = format!("{}/runs/{run}/approve", self.at);
        let answer = self.http.post(url).bearer_auth(&self.token).json(&json!({ "approve": true })).send().await?;
        ensure!(answer.status().is_success(), "a vote was refused: {}", answer.status());
        Ok(())
    }
}
