//! A restored store: what was handed out before is refused, runs that act are parked, and effects are not repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::harness::{
    Database, PATIENCE, done, ends, engine, engine_that_loses_workers, engine_with, hello, options, plan, reaches,
    start, stop, tenant, work,
};
use interlock_core::ids::ServerId;
use interlock_core::json::Json;
use interlock_core::plan::{StepSpec, WaitFor, Work};
use interlock_core::run::change::Context;
use interlock_core::state::{EffectClass, Reason, RunState};
use interlock_core::time::Millis;
use interlock_core::work::{EffectAnswer, EffectIntent, Report};
use interlock_engine::{Engine, EngineError, EngineOptions, OpenEngineError};
use interlock_store::{OpenError, Options, RaiseEpoch, RestoreLock, Store, StoreUrl, SubmitError};

use crate::on_both;
use crate::unreadable::{BROKEN, MENDED, change, change_row, is_set_aside};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_fences_parks_and_lets_people_decide() {
    let database = Database::sqlite();
    let StoreUrl::Sqlite(path) = database.url.clone() else { unreachable!() };
    let backup = path.with_extension("backup");

    // The lease of its worker is in the backup.
    let engine_before = engine_that_loses_workers(&database).await;
    let tenant = tenant(&engine_before, |_| {}).await;
    let mut act = StepSpec::task("act", "act");
    act.effect = Some(EffectClass::Keyed);
    let acting = engine_before.runs().start(start(tenant, &plan(vec![act]), "null")).await.unwrap().run;
    let timer = StepSpec::new("sleep", Work::Wait { until: WaitFor::For(Millis(2_000)), timeout: None });
    let waiting = engine_before.runs().start(start(tenant, &plan(vec![timer]), "null")).await.unwrap().run;
    let session = engine_before.workers().register(crate::harness::hello(1)).await.unwrap().session;
    let claimed = engine_before.workers().poll(session, 1, PATIENCE).await.unwrap().pop().unwrap();
    interlock_store::backup_file(&path, &backup).await.unwrap();
    // After the backup the effect happens: the restored store will not know.
    let effects = Arc::new(AtomicU32::new(1));
    let report = Report {
        at: claimed.at,
        epoch: claimed.epoch,
        outcome: done("1"),
        claim_next: false,
        cost: None,
        credentials: Vec::new(),
    };
    engine_before.workers().complete(session, report.clone()).await.unwrap();
    stop(engine_before).await;

    let restored = Database::sqlite();
    let epoch = interlock_store::restore(Some(&backup), &restored.url, Options::new(server())).await.unwrap();
    assert_eq!(epoch, claimed.epoch + 1);
    let store = Store::open(&restored.url, Options::new(server())).await.unwrap();
    let tool = Engine::open(store, EngineOptions { loops: false, ..options() }).await.unwrap();
    let parked = tool.runs().park_restored().await.unwrap().parked;
    assert_eq!(parked.iter().map(|parked| parked.run).collect::<Vec<_>>(), [acting], "only what acts is parked");
    stop(tool).await;

    let after = engine_that_loses_workers(&restored).await;
    let overview = after.store().run_overview(tenant, acting).await.unwrap().unwrap();
    assert_eq!((overview.state, overview.reason), (RunState::Paused, Some(Reason::Restored)));
    assert!(matches!(after.workers().complete(session, report).await, Err(EngineError::StaleEpoch)));
    assert_eq!(ends(&after, tenant, waiting).await, RunState::Succeeded, "what does not act goes on by itself");

    // No worker runs it again until a person says so.
    let counted = Arc::clone(&effects);
    work(&after, 1, move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { done("2") }
    });
    // Longer than a lease: also what the lost session had is not given out again.
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(effects.load(Ordering::SeqCst), 1);
    reaches(&after, tenant, acting, RunState::Paused).await;
    after.runs().resume(tenant, acting, Context::operator("op")).await.unwrap();
    assert_eq!(ends(&after, tenant, acting).await, RunState::Succeeded);
    assert_eq!(effects.load(Ordering::SeqCst), 2);
    assert!(after.store().check().await.unwrap().is_empty());
    stop(after).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_on_a_store_whose_restore_was_interrupted_parks_before_it_dispatches() {
    let database = Database::sqlite();
    let StoreUrl::Sqlite(path) = database.url.clone() else { unreachable!() };
    let backup = path.with_extension("backup");
    let before = engine(&database).await;
    let tenant = tenant(&before, |_| {}).await;
    let mut act = StepSpec::task("act", "act");
    act.effect = Some(EffectClass::Unsafe);
    let mut acting = Vec::new();
    for _ in 0..20 {
        acting.push(before.runs().start(start(tenant, &plan(vec![act.clone()]), "null")).await.unwrap().run);
    }
    stop(before).await;
    interlock_store::backup_file(&path, &backup).await.unwrap();

    // Killed right after the file got its name.
    let restored = Database::sqlite();
    interlock_store::restore(Some(&backup), &restored.url, Options::new(server())).await.unwrap();
    let after = engine(&restored).await;
    let session = after.workers().register(crate::harness::hello(8)).await.unwrap().session;
    let handed = after.workers().poll(session, 8, Duration::from_millis(500)).await.unwrap();
    assert!(handed.is_empty(), "{handed:?}");
    for run in acting {
        let overview = after.store().run_overview(tenant, run).await.unwrap().unwrap();
        assert_eq!((overview.state, overview.reason), (RunState::Paused, Some(Reason::Restored)));
    }
    assert_eq!(after.store().restoring().await.unwrap(), None);
    stop(after).await;
}

fn server() -> ServerId {
    ServerId(options().ids.fresh())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_runs_an_engine_is_told_that_its_store_was_restored() {
    let database = Database::sqlite();
    let engine = engine(&database).await;
    let told = tokio::spawn({
        let engine = engine.clone();
        async move { engine.until_commits_end().await }
    });
    let restored = interlock_store::Restored { had: 1, found: 2 };
    engine.store().refuse_restored(restored);
    let told = tokio::time::timeout(PATIENCE, told).await.unwrap().unwrap();
    assert!(matches!(told, SubmitError::Restored(told) if told == restored), "{told}");
    stop(engine).await;
}

/// A server says that it is at work from before its first look at the store until it is closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_and_a_restore_keep_out_of_each_others_way() {
    let database = Database::postgres().await;
    let serving = engine(&database).await;
    let refused = interlock_store::restore(None, &database.url, Options::new(server())).await.unwrap_err();
    assert!(matches!(refused, OpenError::InService { .. }), "{refused}");
    stop(serving).await;

    let lock = RestoreLock::take(&database.url, Options::new(server())).await.unwrap();
    let epoch = lock.begin(None, false).await.unwrap();
    let store = Store::open(&database.url, Options::new(server())).await.unwrap();
    let kept_out = Engine::open(store.clone(), options()).await.err().expect("a restore is under way");
    assert!(matches!(kept_out, OpenEngineError::Store(OpenError::BeingRestored { .. })), "{kept_out}");
    store.close().await;
    let tool = tool(&database).await;
    tool.runs().park_restored().await.unwrap();
    assert_eq!((tool.store().epoch().await.unwrap(), tool.store().restoring().await.unwrap()), (epoch, None));
    stop(tool).await;
    lock.release().await;
    stop(engine(&database).await).await;
}

/// Marks the store as one that was restored and whose runs are not parked yet.
async fn restored(database: &Database) {
    let store = Store::open(&database.url, Options::new(server())).await.unwrap();
    store.write(RaiseEpoch).await.unwrap();
    store.close().await;
}

/// Waits until no run is listed as not parked: a run leaves the list after the commit that has parked it.
async fn leaves_the_list(engine: &Engine) {
    let left = async {
        while !engine.store().unparked(9).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, left).await.expect("all of them are parked");
}

/// An engine as `interlock db restore` has one.
async fn tool(database: &Database) -> Engine {
    engine_with(database, EngineOptions { loops: false, ..options() }).await
}

on_both! {
    async fn a_run_that_a_restore_cannot_read_is_parked_before_it_goes_on(database: &Database) {
        let before = engine(database).await;
        let tenant = tenant(&before, |_| {}).await;
        let mut act = StepSpec::task("act", "act");
        act.effect = Some(EffectClass::Unsafe);
        let act = plan(vec![act]);
        let mut runs = Vec::new();
        for _ in 0..3 {
            runs.push(before.runs().start(start(tenant, &act, "null")).await.unwrap().run);
        }
        stop(before).await;
        let (good, mended_before, mended_beside) = (runs[0], runs[1], runs[2]);
        for broken in [mended_before, mended_beside] {
            change(database, broken, BROKEN).await;
        }
        restored(database).await;

        let tool = tool(database).await;
        let found = tool.runs().park_restored().await.unwrap();
        assert_eq!(found.parked.iter().map(|parked| parked.run).collect::<Vec<_>>(), [good]);
        let unreadable: Vec<_> = found.unreadable.iter().map(|unreadable| unreadable.run).collect();
        assert_eq!(unreadable, [mended_before, mended_beside]);
        assert_eq!(tool.store().restoring().await.unwrap(), None);
        let findings = tool.store().check().await.unwrap();
        let named = findings.iter().filter(|finding| finding.check == "RUN_UNPARKED");
        assert_eq!(named.count(), 2, "{findings:?}");
        stop(tool).await;

        // One row is mended before a server starts, the other beside it.
        change(database, mended_before, MENDED).await;
        let after = engine(database).await;
        let effects = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&effects);
        work(&after, 3, move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { done("2") }
        });
        reaches(&after, tenant, mended_before, RunState::Paused).await;
        is_set_aside(&after, tenant, mended_beside).await;
        change(database, mended_beside, MENDED).await;
        reaches(&after, tenant, mended_beside, RunState::Paused).await;
        for run in runs {
            let overview = after.store().run_overview(tenant, run).await.unwrap().unwrap();
            assert_eq!((overview.state, overview.reason), (RunState::Paused, Some(Reason::Restored)));
        }
        assert_eq!(effects.load(Ordering::SeqCst), 0, "no worker had any of them before a person has looked");
        leaves_the_list(&after).await;

        after.runs().resume(tenant, mended_beside, Context::operator("op")).await.unwrap();
        assert_eq!(ends(&after, tenant, mended_beside).await, RunState::Succeeded);
        stop(after).await;
        // Who has looked is not asked again.
        let again = engine(database).await;
        again.runs().resume(tenant, mended_before, Context::operator("op")).await.unwrap();
        work(&again, 1, |_| async { done("2") });
        assert_eq!(ends(&again, tenant, mended_before).await, RunState::Succeeded);
        stop(again).await;
    }

    async fn a_receipt_that_cannot_be_read_holds_up_no_restore(database: &Database) {
        let before = engine(database).await;
        let tenant = tenant(&before, |_| {}).await;
        let mut act = StepSpec::task("act", "act");
        act.effect = Some(EffectClass::Unsafe);
        let run = before.runs().start(start(tenant, &plan(vec![act]), "null")).await.unwrap().run;
        let session = before.workers().register(hello(1)).await.unwrap().session;
        let claimed = before.workers().poll(session, 1, PATIENCE).await.unwrap().pop().unwrap();
        let (at, epoch, effect) = (claimed.at, claimed.epoch, EffectClass::Unsafe);
        let intent =
            EffectIntent { at, epoch, template: "act".into(), number: 0, effect, request: Json::trusted("null") };
        let answer = before.workers().intent(session, intent).await.unwrap();
        assert!(matches!(answer, EffectAnswer::Perform { .. }), "{answer:?}");
        stop(before).await;
        change_row(database, "receipts", run, "attempt = -7").await;
        restored(database).await;

        let tool = tool(database).await;
        let found = tool.runs().park_restored().await.unwrap();
        assert_eq!(found.parked.iter().map(|parked| parked.run).collect::<Vec<_>>(), [run]);
        assert!(found.parked[0].open_effects.is_empty() && found.unreadable.is_empty());
        assert_eq!(tool.store().restoring().await.unwrap(), None);
        stop(tool).await;
        let after = engine(database).await;
        assert!(after.store().load_runs(&[(tenant, run)]).await.unwrap()[0].notes.restored);
        stop(after).await;
    }
}
