//! One row that cannot be read costs its own run, and no other.

use std::time::Duration;

use interlock_core::ids::{RunId, TenantId};
use interlock_core::plan::StepSpec;
use interlock_core::state::RunState;
use interlock_core::time::Millis;
use interlock_engine::Engine;
use interlock_engine::set_aside::{Item, ItemSetAside};
use interlock_store::{Page, RunFilter, StoreUrl};

use crate::harness::{
    Database, PATIENCE, done, ends, engine, engine_that_loses_workers, hello, plan, plan_with, start, stop, tenant,
    work,
};
use crate::on_both;

/// Changes a run's row behind the engine's back.
pub async fn change(database: &Database, run: RunId, assignment: &str) {
    change_row(database, "run_live", run, assignment).await;
}

/// Changes the one row that a run has in a table.
pub async fn change_row(database: &Database, table: &str, run: RunId, assignment: &str) {
    match &database.url {
        StoreUrl::Sqlite(path) => {
            let connection = rusqlite::Connection::open(path).unwrap();
            connection.busy_timeout(Duration::from_secs(10)).unwrap();
            connection.execute_batch("PRAGMA ignore_check_constraints = ON").unwrap();
            let sql = format!("UPDATE {table} SET {assignment} WHERE run_id = ?1");
            assert_eq!(connection.execute(&sql, [run.as_bytes()]).unwrap(), 1);
        }
        StoreUrl::Postgres(url) => {
            let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
            let connection = tokio::spawn(connection);
            let sql = format!("UPDATE {table} SET {assignment} WHERE run_id = $1");
            assert_eq!(client.execute(&sql, &[&&run.as_bytes()[..]]).await.unwrap(), 1);
            drop(client);
            connection.await.unwrap().unwrap();
        }
        StoreUrl::SqliteMemory(_) => unreachable!("these tests use files and servers"),
    }
}

pub const BROKEN: &str = "step_data = 'x' || coalesce(step_data, '')";
pub const MENDED: &str = "step_data = nullif(substr(step_data, 2), '')";

/// Another engine on the same database, which has nothing in memory.
async fn restarted(database: &Database, engine: Engine) -> Engine {
    stop(engine).await;
    engine_that_loses_workers(database).await
}

/// The run, if it is set aside.
fn set_aside(engine: &Engine, tenant: TenantId, run: RunId) -> Option<ItemSetAside> {
    let aside = engine.health().set_aside();
    aside.into_iter().find(|aside| aside.tenant == tenant && aside.item == Item::Run(run))
}

/// The pause before each try is about twice as long as the one before, from a second on.
fn assert_tried_seldom(engine: &Engine, tenant: TenantId, run: RunId) {
    let aside = set_aside(engine, tenant, run).expect("it is still set aside");
    let seconds = engine.now().since(aside.since).0 / 1_000;
    let most = 2 + (seconds + 1).ilog2();
    assert!((1..=most).contains(&aside.tries), "it was tried {} times in {seconds} seconds", aside.tries);
}

/// Waits until the engine has set the run aside.
pub async fn is_set_aside(engine: &Engine, tenant: TenantId, run: RunId) {
    let seen = async {
        while set_aside(engine, tenant, run).is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.expect("it is set aside");
}

on_both! {
    async fn a_list_goes_on_behind_a_run_that_cannot_be_read(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let plan = plan(vec![StepSpec::task("a", "a")]);
        let mut runs = Vec::new();
        for _ in 0..7 {
            runs.push(engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run);
        }
        for broken in [1, 5, 6] {
            change(database, runs[broken], "reason = 'nonsense'").await;
        }
        let store = engine.store();
        let mut listed = Vec::new();
        let mut after = None;
        loop {
            let page = store.list_runs(tenant, &RunFilter::default(), Page { limit: 2, after }).await.unwrap();
            listed.extend(page.iter().map(|run| run.run));
            after = page.last().map(|run| run.run);
            if page.len() < 2 {
                break;
            }
        }
        assert_eq!(listed, [runs[4], runs[3], runs[2], runs[0]], "all others, in order, and each once");
        assert_eq!(store.unreadable_rows().iter().filter(|(list, _)| *list == "LIST_ALL").count(), 3);
        assert!(!store.live_counts(tenant, None).await.unwrap().is_empty());
        stop(engine).await;
    }

    async fn the_reaper_goes_on_behind_a_run_that_cannot_be_read(database: &Database) {
        let engine = engine_that_loses_workers(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let plan = plan(vec![StepSpec::task("a", "a")]);
        let session = engine.workers().register(hello(3)).await.unwrap().session;
        let mut runs = Vec::new();
        for _ in 0..3 {
            runs.push(engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run);
        }
        let mut claimed = 0;
        while claimed < 3 {
            claimed += engine.workers().poll(session, 3, Duration::from_secs(5)).await.unwrap().len();
        }
        // The worker dies; of what it held, the row of one run is broken.
        change(database, runs[0], BROKEN).await;
        let engine = restarted(database, engine).await;
        work(&engine, 4, |_| async { done("1") });
        for run in &runs[1..] {
            assert_eq!(ends(&engine, tenant, *run).await, RunState::Succeeded);
        }
        is_set_aside(&engine, tenant, runs[0]).await;
        let findings = engine.store().check().await.unwrap();
        let named: Vec<_> = findings.iter().filter(|finding| finding.check == "RUN_READABLE").collect();
        assert_eq!(named.len(), 1, "{findings:?}");
        assert_eq!(named[0].row, runs[0].to_string());
        let (_, unreadable) = engine.store().unreadable_runs(1_000).await.unwrap();
        assert_eq!(unreadable.iter().map(|(_, run, _)| *run).collect::<Vec<_>>(), [runs[0]]);
        // Once an operator has mended the row, the run goes on by itself.
        change(database, runs[0], MENDED).await;
        assert_eq!(ends(&engine, tenant, runs[0]).await, RunState::Succeeded);
        assert_eq!(engine.health().set_aside(), []);
        stop(engine).await;
    }

    async fn a_run_that_cannot_be_read_is_offered_seldom(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let plan = plan(vec![StepSpec::task("a", "a")]);
        let broken = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
        change(database, broken, BROKEN).await;
        let engine = restarted(database, engine).await;
        work(&engine, 4, |_| async { done("1") });
        is_set_aside(&engine, tenant, broken).await;
        let began = engine.now();
        while engine.now().since(began) < Millis(2_500) {
            let good = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
            assert_eq!(ends(&engine, tenant, good).await, RunState::Succeeded);
        }
        assert_tried_seldom(&engine, tenant, broken);
        change(database, broken, MENDED).await;
        assert_eq!(ends(&engine, tenant, broken).await, RunState::Succeeded);
        stop(engine).await;
    }

    async fn timers_fire_beside_a_run_that_cannot_be_read(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let deadline = |plan: &mut interlock_core::plan::Plan| plan.timeout = Some(Millis(1_000));
        let plan = plan_with(vec![StepSpec::task("a", "a")], deadline);
        let broken = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
        change(database, broken, BROKEN).await;
        let engine = restarted(database, engine).await;
        is_set_aside(&engine, tenant, broken).await;
        let began = engine.now();
        while engine.now().since(began) < Millis(2_500) {
            let good = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
            assert_eq!(ends(&engine, tenant, good).await, RunState::Failed);
        }
        assert_tried_seldom(&engine, tenant, broken);
        change(database, broken, MENDED).await;
        assert_eq!(ends(&engine, tenant, broken).await, RunState::Failed);
        stop(engine).await;
    }

    async fn a_row_that_a_list_cannot_read_is_left_out_of_it(database: &Database) {
        let engine = engine_that_loses_workers(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let plan = plan(vec![StepSpec::task("a", "a")]);
        let session = engine.workers().register(hello(2)).await.unwrap().session;
        let broken = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
        let good = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
        let mut claimed = 0;
        while claimed < 2 {
            claimed += engine.workers().poll(session, 2, Duration::from_secs(5)).await.unwrap().len();
        }
        change(database, broken, "attempt = -7").await;
        assert_eq!(engine.store().claims_of(session).await.unwrap().len(), 1);
        engine.workers().heartbeat(session, &[], false).await.expect("the session lives, whatever one of its rows says");
        work(&engine, 4, |_| async { done("1") });
        assert_eq!(ends(&engine, tenant, good).await, RunState::Succeeded);
        let rows = engine.store().unreadable_rows();
        assert!(rows.iter().any(|(list, _)| *list == "LOST_CLAIMS"), "{rows:?}");
        stop(engine).await;
    }
}
