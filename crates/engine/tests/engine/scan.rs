//! What the scan for ready runs costs while there is nothing to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use interlock_core::ids::ServerId;
use interlock_core::plan::StepSpec;
use interlock_core::time::{Millis, Timestamp};
use interlock_engine::clock::Clock;
use interlock_engine::deliver::NoOtherDestinations;
use interlock_engine::{Engine, EngineOptions};
use interlock_store::{Faults, Mode, Options, Store, StoreUrl};

use crate::harness::{hello, plan, start, stop, tenant};

#[derive(Default)]
struct Counting(AtomicU64);

impl Faults for Counting {
    fn before_read(&self) -> BoxFuture<'static, ()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        std::future::ready(()).boxed()
    }
}

const IDLE: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn a_tenant_at_its_cap_costs_no_reads_while_the_workers_are_full() {
    let reads = Arc::new(Counting::default());
    let clock = Clock::starting_at(Timestamp(1_720_000_000_000));
    let options = EngineOptions {
        clock,
        expressions_in_place: true,
        scan_every: Millis::from_secs(60),
        ..EngineOptions::new(Arc::new(NoOtherDestinations))
    };
    let mode = Mode::Inline(Arc::<Counting>::clone(&reads));
    let store_options = Options { mode, ..Options::new(ServerId(options.ids.fresh())) };
    let store = Store::open(&StoreUrl::SqliteMemory("idle-scan".into()), store_options).await.unwrap();
    let engine = Engine::open(store, options).await.unwrap();
    let tenant = tenant(&engine, |tenant| tenant.caps.max_concurrency = Some(1)).await;
    let session = engine.workers().register(hello(2)).await.unwrap().session;
    let plan = plan(vec![StepSpec::task("a", "a")]);
    let idle = async || {
        let before = reads.0.load(Ordering::Relaxed);
        tokio::time::sleep(IDLE).await;
        reads.0.load(Ordering::Relaxed) - before
    };
    let usual = idle().await;
    engine.runs().start(start(tenant, &plan, "null")).await.unwrap();
    assert_eq!(engine.workers().poll(session, 1, Duration::from_secs(5)).await.unwrap().len(), 1);
    engine.runs().start(start(tenant, &plan, "null")).await.unwrap();
    // Refused for the cap; then the worker has no room left, and does not ask again.
    assert!(engine.workers().poll(session, 1, Duration::from_millis(50)).await.unwrap().is_empty());
    let throttled = idle().await;
    assert!(throttled < usual + 20, "{usual} reads in {IDLE:?} without work, {throttled} behind a throttle");
    stop(engine).await;
}
