//! A run that has succeeded is undone by one new run, however many servers are asked at once.

use std::sync::{Arc, Mutex};

use interlock_core::ids::{RunId, TenantId};
use interlock_core::plan::{RollbackCondition, RollbackSpec, StepSpec, Undo};
use interlock_core::rejection::Rejection;
use interlock_core::run::change::Context;
use interlock_core::state::{RunState, StepState};
use interlock_engine::commands::undo::UndoRequest;
use interlock_engine::{Engine, EngineError, Started};

use crate::harness::{Database, done, ends, engine, plan, start, stop, tenant, work};
use crate::on_both;
use crate::races::two_engines;

fn undoable(key: &str) -> StepSpec {
    let by = Undo::Handler(format!("un{key}"));
    let mut step = StepSpec::task(key, key);
    step.rollback = Some(RollbackSpec { conditions: RollbackCondition::ALL.to_vec(), ..RollbackSpec::by(by) });
    step
}

/// A worker that notes what it is asked to do.
fn noting(engine: &Engine) -> Arc<Mutex<Vec<String>>> {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let notes = Arc::clone(&seen);
    work(engine, 4, move |assignment| {
        notes.lock().unwrap().push(assignment.handler.clone());
        async { done("1") }
    });
    seen
}

async fn succeeded(engine: &Engine, tenant: TenantId) -> RunId {
    let steps = vec![undoable("a"), StepSpec::task("b", "b"), undoable("c")];
    let run = engine.runs().start(start(tenant, &plan(steps), "null")).await.unwrap().run;
    assert_eq!(ends(engine, tenant, run).await, RunState::Succeeded);
    run
}

async fn undo(engine: &Engine, tenant: TenantId, run: RunId) -> Result<Started, EngineError> {
    let request = UndoRequest { run, from: 0, reason: "a mistake".into(), key: None };
    engine.runs().undo_as_new(tenant, request, Context::operator("olga")).await
}

on_both! {
    async fn a_succeeded_run_is_undone_newest_first(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let seen = noting(&engine);
        let run = succeeded(&engine, tenant).await;
        let by = undo(&engine, tenant, run).await.unwrap().run;
        assert_ne!(by, run);
        assert_eq!(ends(&engine, tenant, by).await, RunState::Succeeded);
        assert_eq!(*seen.lock().unwrap(), ["a", "b", "c", "unc", "una"]);
        let steps = engine.store().steps(tenant, by).await.unwrap();
        let states: Vec<StepState> = steps.iter().map(|step| step.state).collect();
        let (undone, stands) = (StepState::RolledBack, StepState::Succeeded);
        assert_eq!(states, [undone, stands, undone, stands, stands]);
        let old = engine.store().run_overview(tenant, run).await.unwrap().unwrap();
        assert_eq!((old.state, old.continued_by), (RunState::Succeeded, Some(by)), "it stays what it was");
        let new = engine.store().run_overview(tenant, by).await.unwrap().unwrap();
        assert_eq!((new.resumed_from, new.trigger_type.as_str()), (Some(run), "rollback"));
        let again = undo(&engine, tenant, run).await;
        assert!(matches!(again, Err(EngineError::Rejected(Rejection::NothingToUndo { .. }))), "{again:?}");
        stop(engine).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_at_once_make_one_undo() {
    let database = Database::postgres().await;
    let engines = two_engines(&database.url).await;
    let tenant = tenant(&engines[0], |_| {}).await;
    let seen = noting(&engines[0]);
    for _ in 0..10 {
        let run = succeeded(&engines[0], tenant).await;
        seen.lock().unwrap().clear();
        let asked = (0..6).map(|at| {
            let engine = engines[at % 2].clone();
            tokio::spawn(async move { undo(&engine, tenant, run).await })
        });
        let mut made = Vec::new();
        for asked in futures::future::join_all(asked).await {
            match asked.unwrap() {
                Ok(started) => made.push(started.run),
                Err(EngineError::Rejected(Rejection::Continued { .. } | Rejection::NothingToUndo { .. })) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(made.len(), 1, "{made:?}");
        assert_eq!(ends(&engines[1], tenant, made[0]).await, RunState::Succeeded);
        assert_eq!(*seen.lock().unwrap(), ["unc", "una"]);
    }
    for engine in engines {
        stop(engine).await;
    }
}
