//! Numbers for Prometheus. Labels are bounded: routes by their pattern, never by what stands in it; tenants only where the
//! operator asks for them, and then so many.

use std::collections::HashSet;
use std::fmt::{self, Write as _};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use interlock_core::state::{AssignmentState, RunState};
use interlock_core::time::Timestamp;
use interlock_engine::EngineError;
use interlock_engine::counters::{DURATION_BOUNDS_MS, Histogram as Measured, OTHER, TransitionCount};
use interlock_engine::loops::supervise::LoopHealth;
use interlock_engine::parts::EngineHealth;
use interlock_engine::traces::TracesDropped;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::api_error::ApiError;

/// Counting live runs looks at all of them; this often is enough.
const LIVE_KEPT: Duration = Duration::from_secs(10);
/// Counts of live runs by tenant and state; what is beyond is counted together.
const LIVE_BY_TENANT_MAX: usize = 1_000;
/// Upper bounds of answer times, in seconds.
const ANSWER_BOUNDS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResponseLabels {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Route {
    method: &'static str,
    route: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Hits {
    source: &'static str,
    result: &'static str,
}

/// What became of a request that carried a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hit {
    New,
    Replayed,
    Conflict,
    Mismatch,
    Expired,
    Failed,
}

impl Hit {
    pub fn of(error: &EngineError) -> Self {
        match error {
            EngineError::IdempotencyConflict => Self::Conflict,
            EngineError::IdempotencyMismatch => Self::Mismatch,
            EngineError::IdempotencyExpired { .. } => Self::Expired,
            _ => Self::Failed,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Replayed => "replayed",
            Self::Conflict => "conflict",
            Self::Mismatch => "mismatch",
            Self::Expired => "expired",
            Self::Failed => "failed",
        }
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct BrokerLabels {
    result: &'static str,
}

/// What became of a message from the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokerResult {
    Handled,
    /// It had come before.
    Duplicate,
    /// It, or its ticket, was too old.
    Expired,
    /// Its tenant has too many calls under way.
    Refused,
    /// It was not written by a worker, or was changed since.
    Unreadable,
}

impl BrokerResult {
    pub const ALL: [Self; 5] = [Self::Handled, Self::Duplicate, Self::Expired, Self::Refused, Self::Unreadable];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Handled => "handled",
            Self::Duplicate => "duplicate",
            Self::Expired => "expired",
            Self::Refused => "refused",
            Self::Unreadable => "unreadable",
        }
    }
}

/// How many runs live.
#[derive(Debug, Clone)]
struct Live {
    /// By tenant (empty where tenants are not told apart) and state.
    active: Vec<(String, RunState, u64)>,
    orphaned: u64,
}

/// The numbers of one server.
pub struct Metrics {
    requests: Family<ResponseLabels, Counter>,
    durations: Family<Route, Histogram, fn() -> Histogram>,
    hits: Family<Hits, Counter>,
    broker: Family<BrokerLabels, Counter>,
    live: Mutex<Option<(Instant, Live)>>,
}

impl Default for Metrics {
    fn default() -> Self {
        let durations = Family::new_with_constructor((|| Histogram::new(ANSWER_BOUNDS)) as fn() -> Histogram);
        let broker = Family::<BrokerLabels, Counter>::default();
        for result in BrokerResult::ALL {
            // From the start, so that the first one counts as a change.
            drop(broker.get_or_create(&BrokerLabels { result: result.as_str() }));
        }
        Self { requests: Family::default(), durations, hits: Family::default(), broker, live: Mutex::default() }
    }
}

impl Metrics {
    pub fn answered(&self, method: &Method, route: &str, status: StatusCode, took: Duration) {
        let method = name_of(method);
        let answer = ResponseLabels { method, route: route.to_owned(), status: status.as_u16() };
        self.requests.get_or_create(&answer).inc();
        let ResponseLabels { method, route, .. } = answer;
        self.durations.get_or_create(&Route { method, route }).observe(took.as_secs_f64());
    }

    pub fn idempotency(&self, source: &'static str, hit: Hit) {
        self.hits.get_or_create(&Hits { source, result: hit.as_str() }).inc();
    }

    pub fn broker_message(&self, result: BrokerResult) {
        self.broker.get_or_create(&BrokerLabels { result: result.as_str() }).inc();
    }

    /// The numbers as OpenMetrics text: of this process, and, where `with_runs`, of the runs of all tenants.
    pub async fn text(
        &self,
        health: &EngineHealth,
        sockets: OpenSockets,
        now: Timestamp,
        with_runs: bool,
    ) -> Result<String, ApiError> {
        for (hit, slots) in [Hit::New, Hit::Replayed, Hit::Failed].into_iter().zip(health.counters().slots()) {
            let counted = self.hits.get_or_create(&Hits { source: "scheduler", result: hit.as_str() });
            // Another request for the numbers may have been here.
            counted.inc_by(slots.saturating_sub(counted.get()));
        }
        let mut registry = Registry::with_prefix("interlock");
        registry.register("http_requests", "Answered requests.", self.requests.clone());
        let about = "Time from a request's head to its answer's head; reads that wait for news wait.";
        registry.register_with_unit("http_request_duration", about, Unit::Seconds, self.durations.clone());
        registry.register(
            "idempotency_hits",
            "Requests that carried a key, by what became of them.",
            self.hits.clone(),
        );
        registry.register(
            "broker_messages",
            "Messages that this server has read from the broker, by what became of them.",
            self.broker.clone(),
        );
        if with_runs {
            registry.register_collector(Box::new(sockets));
            registry.register_collector(Box::new(OfRuns {
                live: self.live(health, now).await?,
                transitions: health.counters().transitions(),
                durations: health.counters().durations(),
                loops: health.loops(),
                set_aside: health.set_aside().len() as u64,
                output_refused: health.counters().outputs_refused(),
                late_reports: health.counters().late_reports(),
                traces_dropped: health.traces_dropped(),
                assignments: health.counters().assignments(),
                violations: health.counters().violations(),
                attempts: health.counters().attempts(),
                attempt_results: health.counters().attempt_results(),
                approval_waits: health.counters().approval_waits(),
                fetches: health.counters().fetches(),
            }));
        }
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = encode(&mut text, &registry);
        Ok(text)
    }

    async fn live(&self, health: &EngineHealth, now: Timestamp) -> Result<Live, ApiError> {
        let mut kept = self.live.lock().await;
        if let Some((at, counts)) = &*kept
            && at.elapsed() < LIVE_KEPT
        {
            return Ok(counts.clone());
        }
        let active = active(health).await?;
        let orphaned = health.orphans(now).await?;
        let counts = Live { active, orphaned };
        *kept = Some((Instant::now(), counts.clone()));
        Ok(counts)
    }
}

/// How many runs live, by tenant where these are told apart, and by state.
async fn active(health: &EngineHealth) -> Result<Vec<(String, RunState, u64)>, ApiError> {
    let by_tenant = health.counters().by_tenant();
    let mut active = Vec::new();
    if by_tenant {
        let named = health.store_health().live_by_tenant(LIVE_BY_TENANT_MAX).await?;
        active.extend(named.into_iter().map(|(tenant, state, count)| (tenant.to_string(), state, count)));
    }
    for (state, all) in health.store_health().live_by_state().await? {
        let named: u64 = active.iter().filter(|(_, of, _)| *of == state).map(|(_, _, count)| *count).sum();
        let rest = all.saturating_sub(named);
        if !by_tenant {
            active.push((String::new(), state, rest));
        } else if active.len() >= LIVE_BY_TENANT_MAX && rest > 0 {
            active.push((OTHER.to_owned(), state, rest));
        }
    }
    Ok(active)
}

/// The labels of a number about runs: the tenant's too, where it has one.
fn with_tenant<'a, const N: usize>(labels: [(&'a str, &'a str); N], tenant: &'a str) -> Vec<(&'a str, &'a str)> {
    labels.into_iter().chain((!tenant.is_empty()).then_some(("tenant_id", tenant))).collect()
}

/// The same numbers in the text format 0.0.4, which Prometheus reads unless it is asked for more: counters are declared
/// under the name of their samples, and there are neither units nor an end.
pub fn plain(open_metrics: &str) -> String {
    let is_counter: HashSet<&str> =
        open_metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter")).collect();
    let mut text = String::with_capacity(open_metrics.len());
    for line in open_metrics.lines() {
        let declared = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE "));
        let Some((name, rest)) = declared.and_then(|declared| declared.split_once(' ')) else {
            if !line.starts_with('#') {
                let _ = writeln!(text, "{line}");
            }
            continue;
        };
        let suffix = if is_counter.contains(name) { "_total" } else { "" };
        let _ = writeln!(text, "{} {name}{suffix} {rest}", &line[..6]);
    }
    text
}

/// The label of a method. All unknown methods share one.
fn name_of(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// What the engine counts, as it stands.
#[derive(Debug)]
struct OfRuns {
    live: Live,
    transitions: Vec<TransitionCount>,
    /// By workflow, state and tenant.
    durations: Vec<([String; 3], Measured)>,
    loops: Vec<LoopHealth>,
    set_aside: u64,
    output_refused: u64,
    late_reports: u64,
    traces_dropped: TracesDropped,
    assignments: Vec<(String, AssignmentState, u64)>,
    violations: Vec<(String, u64)>,
    attempts: Vec<([String; 2], Measured)>,
    attempt_results: Vec<([String; 3], u64)>,
    approval_waits: Vec<([String; 1], Measured)>,
    fetches: Vec<([String; 1], Measured)>,
}

/// Connections that stay open at this moment.
#[derive(Debug, Clone, Copy)]
pub struct OpenSockets {
    pub watchers: usize,
    pub workers: usize,
}

impl Collector for OpenSockets {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let about = "Live streams of watchers and channels of workers that are open at this server.";
        let mut open = encoder.encode_descriptor("websocket_active_sessions", about, None, MetricType::Gauge)?;
        for (of, count) in [("watcher", self.watchers), ("worker", self.workers)] {
            open.encode_family(&[("of", of)])?.encode_gauge(&(count as u64))?;
        }
        Ok(())
    }
}

/// Histograms of spans, one for each set of labels. A label without a value is left out.
fn spans<const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, about): (&str, &str),
    labels: [&str; N],
    rows: &[([String; N], Measured)],
) -> Result<(), fmt::Error> {
    let mut spans = encoder.encode_descriptor(name, about, Some(&Unit::Seconds), MetricType::Histogram)?;
    for (values, measured) in rows {
        let bounds = DURATION_BOUNDS_MS.iter().map(|bound| *bound as f64 / 1_000.0).chain([f64::INFINITY]);
        let buckets: Vec<_> = bounds.zip(measured.counts.iter().copied()).collect();
        let (sum, count) = (measured.sum_ms as f64 / 1_000.0, measured.counts.iter().sum());
        let pairs = labels.iter().copied().zip(values.iter().map(String::as_str));
        let labels: Vec<(&str, &str)> = pairs.filter(|(_, value)| !value.is_empty()).collect();
        spans.encode_family(&labels)?.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
    }
    Ok(())
}

impl Collector for OfRuns {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let about = "Runs that have not ended, of all servers on this store.";
        let mut active = encoder.encode_descriptor("runs_active", about, None, MetricType::Gauge)?;
        for (tenant, state, count) in &self.live.active {
            active.encode_family(&with_tenant([("status", state.as_str())], tenant))?.encode_gauge(count)?;
        }
        let about = "Runs whose step a worker has that was not heard of for long, of all servers on this store.";
        let mut orphaned = encoder.encode_descriptor("runs_orphaned", about, None, MetricType::Gauge)?;
        orphaned.encode_gauge(&self.live.orphaned)?;
        let about = "Runs, schedules, bulk jobs and endpoints that this server cannot work on and has set aside.";
        let mut aside = encoder.encode_descriptor("set_aside", about, None, MetricType::Gauge)?;
        aside.encode_gauge(&self.set_aside)?;
        let about = "How often a loop of this server has panicked and was started again.";
        let mut panics = encoder.encode_descriptor("loop_panics", about, None, MetricType::Counter)?;
        for LoopHealth { name, panics: count, .. } in &self.loops {
            panics.encode_family(&[("loop", *name)])?.encode_counter::<NoLabelSet, _, u64>(count, None)?;
        }
        let about = "Batches of output that came for an attempt that was over.";
        let mut refused = encoder.encode_descriptor("output_refused", about, None, MetricType::Counter)?;
        refused.encode_counter::<NoLabelSet, _, u64>(&self.output_refused, None)?;
        let about = "Results that workers reported for attempts that were over.";
        let mut late = encoder.encode_descriptor("late_reports", about, None, MetricType::Counter)?;
        late.encode_counter::<NoLabelSet, _, u64>(&self.late_reports, None)?;
        let about = "Spans, and stretches of runs without spans, that the collector of traces was not told of.";
        let mut dropped = encoder.encode_descriptor("traces_dropped", about, None, MetricType::Counter)?;
        for (of, count) in [("run", self.traces_dropped.runs), ("span", self.traces_dropped.spans)] {
            dropped.encode_family(&[("of", of)])?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        let about = "Offers of runs to workers that have them as a whole, by what became of them, that this server has committed.";
        let mut assignments = encoder.encode_descriptor("worker_assignments", about, None, MetricType::Counter)?;
        for (worker, state, count) in &self.assignments {
            let labels = [("worker_id", worker.as_str()), ("status", state.as_str())];
            assignments.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(count, None)?;
        }
        let about = "Changes of a run's state that this server has committed.";
        let mut transitions = encoder.encode_descriptor("run_transitions", about, None, MetricType::Counter)?;
        for TransitionCount { tenant, from, to, count } in &self.transitions {
            let labels = [("from_state", from.map_or("none", RunState::as_str)), ("to_state", to.as_str())];
            let labels = with_tenant(labels, tenant);
            transitions.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(count, None)?;
        }
        let about = "Commands that a sandbox, a worker's rules or the policy has refused, by profile.";
        let mut violations =
            encoder.encode_descriptor("sandbox_policy_violations", about, None, MetricType::Counter)?;
        for (profile, count) in &self.violations {
            let labels = [("policy_id", profile.as_str())];
            violations.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(count, None)?;
        }
        let about = "Attempts at steps whose end this server has committed, by how they ended.";
        let mut results = encoder.encode_descriptor("execution_attempts", about, None, MetricType::Counter)?;
        for ([environment, connector, result], count) in &self.attempt_results {
            let labels = [("environment", &**environment), ("connector", &**connector), ("result", &**result)];
            results.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(count, None)?;
        }
        let about = ("run_duration", "How long runs took that this server has ended.");
        spans(&mut encoder, about, ["type", "status", "tenant_id"], &self.durations)?;
        let about = ("execution_step_duration", "How long attempts at steps took whose end this server has committed.");
        spans(&mut encoder, about, ["environment", "connector"], &self.attempts)?;
        let about = ("approval_wait_duration", "How long people were waited for, until they decided or it expired.");
        spans(&mut encoder, about, ["environment"], &self.approval_waits)?;
        let about = ("credential_fetch_duration", "How long workers waited for a credential's provider.");
        spans(&mut encoder, about, ["vault_cluster"], &self.fetches)?;
        Ok(())
    }
}
