//! Pushes runs of five no-op steps through a store: a start that claims the first step, then five completions that
//! each take the next one. Prints change sets and steps per second. Instants stand still and ids count up, so that two
//! measurements write the same rows.
//!
//!     cargo run --release -p interlock-store --example store_bench -- sqlite:/tmp/bench.db 1000 5
//!     cargo run --release -p interlock-store --example store_bench -- postgres://… 1000 5

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use interlock_core::decide::{
    self, Asking, Bound, Command, CommandOrigin, Completion, DecideContext, Outcome, Rendered, StartRequest, Used,
};
use interlock_core::governance::judge::AllowDeclared;
use interlock_core::ids::{RunId, ServerId, SessionId, TenantId};
use interlock_core::json::HashHex;
use interlock_core::json::{Hash, Json};
use interlock_core::plan::{Plan, StepSpec};
use interlock_core::run::{Header, Run, Trigger};
use interlock_core::time::Timestamp;
use interlock_core::work::Claimer;
use interlock_store::{EnsurePartitions, Options, PutTenant, Store, StoreUrl, Tenant};
use uuid::Uuid;

const STEPS: usize = 5;
const NOW: Timestamp = Timestamp(1_790_000_000_000);

/// A UUIDv7 of [`NOW`] whose rest is this process and a count.
fn fresh() -> Uuid {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let count = NEXT.fetch_add(1, Ordering::Relaxed);
    let (millis, process) = (NOW.0 as u128, u128::from(std::process::id()));
    Uuid::from_u128(millis << 80 | 0x7 << 76 | 0b10 << 62 | process << 40 | u128::from(count))
}

struct Bench {
    store: Store,
    tenant: TenantId,
    plan: Arc<Plan>,
    encoded: (Hash, Json),
    stop: AtomicBool,
    sets: AtomicU64,
    steps: AtomicU64,
    runs: AtomicU64,
}

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let url = StoreUrl::parse(&args.next().expect("a store's URL")).expect("a store's URL");
    let in_flight: usize = args.next().map_or(1_000, |text| text.parse().expect("a number of runs in flight"));
    let seconds: u64 = args.next().map_or(5, |text| text.parse().expect("a number of seconds"));
    let lanes: usize = args.next().map_or(2, |text| text.parse().expect("a number of lanes"));

    let options = Options { lanes, ..Options::new(ServerId(fresh())) };
    let store = Store::open(&url, options).await.expect("the store opens");
    let tenant = TenantId(Uuid::from_u128(1));
    store.write(PutTenant(Tenant::new(tenant, "bench", NOW))).await.expect("a tenant");
    store.write(EnsurePartitions { now: NOW }).await.expect("partitions");
    let steps = (0..STEPS).map(|index| StepSpec::task(format!("step{index}"), "noop")).collect();
    let plan = Plan::new("bench", steps);
    let encoded = plan.encode();
    let bench = Arc::new(Bench {
        store,
        tenant,
        plan: Arc::new(plan),
        encoded,
        stop: AtomicBool::new(false),
        sets: AtomicU64::new(0),
        steps: AtomicU64::new(0),
        runs: AtomicU64::new(0),
    });
    let tasks: Vec<_> = (0..in_flight).map(|_| tokio::spawn(Arc::clone(&bench).work())).collect();
    // Half a second to warm up.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (sets, steps) = (bench.sets.load(Ordering::Relaxed), bench.steps.load(Ordering::Relaxed));
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let rate = |counter: &AtomicU64, before: u64| (counter.load(Ordering::Relaxed) - before) as f64 / seconds as f64;
    let (sets, steps) = (rate(&bench.sets, sets), rate(&bench.steps, steps));
    let stats = bench.store.stats().await.expect("stats");
    bench.stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.expect("a worker ends well");
    }
    let group = stats.committed as f64 / stats.groups.max(1) as f64;
    println!(
        "{url}  in flight {in_flight}  lanes {lanes}  sets/s {sets:.0}  steps/s {steps:.0}  per group {group:.1}  committed {}",
        stats.committed
    );
    assert_eq!(stats.refused, 0);
}

impl Bench {
    async fn work(self: Arc<Self>) {
        let session = SessionId(fresh());
        while !self.stop.load(Ordering::Relaxed) {
            let mut run = self.start(session).await;
            while !run.state.is_terminal() {
                let completion = Completion {
                    position: run.position,
                    attempt: run.current().attempt,
                    outcome: Outcome::Completed { output: Json::trusted(r#"{"ok":true}"#) },
                    claim_next: Some(Claimer::of_all_trades(session)),
                    cost: None,
                };
                let command = Command::Complete(completion);
                let decided = decide::decide(&run, command, DecideContext::default(), CommandOrigin::system(NOW));
                let change = decided.and_then(|decided| decided.settle(bound)).expect("a running step is completed");
                run.apply(&self.store.submit(change).await.expect("committed"));
                self.sets.fetch_add(1, Ordering::Relaxed);
                self.steps.fetch_add(1, Ordering::Relaxed);
            }
            self.runs.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn start(&self, session: SessionId) -> Run {
        let request = StartRequest {
            tenant: self.tenant,
            run: RunId(fresh()),
            header: Header {
                workspace: "main".into(),
                plan_hash: HashHex(self.encoded.0),
                inputs: Json::trusted(r#"{"n":1}"#),
                subject: None,
                labels: std::collections::BTreeMap::new(),
                trigger: Trigger { kind: "api".into(), reference: None },
                priority: 0,
                created_at: NOW,
                deadline_at: None,
                lineage: None,
                started_by: None,
            },
            plan: Arc::clone(&self.plan),
            plan_hash: self.encoded.0,
            plan_text: self.encoded.1.clone(),
            idempotency: None,
            inherited: vec![],
            starters: vec![],
            used: Used::default(),
            named: vec![],
            queued: None,
            undoes: None,
            claim: Some(Claimer::of_all_trades(session)),
        };
        let (mut run, opening) = decide::open(request).expect("a plan that runs");
        let decided = decide::start(&run, opening, CommandOrigin::system(NOW));
        let change = decided.and_then(|decided| decided.settle(bound)).expect("a plan that runs");
        run.apply(&self.store.submit(change).await.expect("committed"));
        self.sets.fetch_add(1, Ordering::Relaxed);
        run
    }
}

fn bound(asking: &Asking<'_>) -> Bound {
    asking.bind(Rendered::default(), &AllowDeclared)
}
