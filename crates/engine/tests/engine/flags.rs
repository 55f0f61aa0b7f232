//! `worker_orchestration.enabled`, switched off and on while runs are in flight: nothing is lost, nothing is done twice, and a
//! worker elsewhere gets nothing while it is off.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use interlock_core::ids::{RunId, SessionId, TenantId};
use interlock_core::plan::StepSpec;
use interlock_core::state::RunState;
use interlock_core::work::{AttemptRef, WorkerHello};
use interlock_engine::Engine;

use crate::assignments::{commands, does_a_step, offered, patient, quick, register, takes, taking, waits_because};
use crate::harness::{Database, done, ends, engine, engine_with, hello, plan, report, start, stop, tenant, work};
use crate::on_both;

const RUNS: usize = 150;
const STEPS: usize = 4;

/// Which worker has done which step, how often.
type Done = Arc<Mutex<HashMap<(RunId, u32), Vec<&'static str>>>>;

async fn switch(engine: &Engine, tenant: TenantId, on: bool) {
    let mut row = engine.store().tenant(tenant).await.unwrap().unwrap();
    row.settings.worker_orchestration = on;
    engine.tenants().put(row).await.unwrap();
}

/// A worker elsewhere: a session of the tenant, which asks, works and reports as one over HTTP would.
async fn elsewhere(engine: &Engine, tenant: TenantId, done_by: Done) -> SessionId {
    let hello = WorkerHello { tenant: Some(tenant), ..hello(8) };
    let session = engine.workers().register(hello).await.unwrap().session;
    let held: Arc<Mutex<HashMap<RunId, AttemptRef>>> = Arc::default();
    let (beats, beating) = (engine.clone(), Arc::clone(&held));
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let listed: Vec<_> = beating.lock().unwrap().values().copied().collect();
            if beats.workers().heartbeat(session, &listed, false).await.is_err() {
                return;
            }
        }
    });
    let engine = engine.clone();
    tokio::spawn(async move {
        while let Ok(assignments) = engine.workers().poll(session, 8, Duration::from_millis(500)).await {
            for assignment in assignments {
                let (engine, held, done_by) = (engine.clone(), Arc::clone(&held), Arc::clone(&done_by));
                tokio::spawn(async move {
                    let mut next = Some(assignment);
                    while let Some(assignment) = next {
                        held.lock().unwrap().insert(assignment.at.run, assignment.at);
                        tokio::time::sleep(Duration::from_millis(3)).await;
                        let at = (assignment.at.run, assignment.at.position);
                        done_by.lock().unwrap().entry(at).or_default().push("elsewhere");
                        next = report(&engine, session, &assignment, done("1")).await;
                        held.lock().unwrap().remove(&assignment.at.run);
                    }
                });
            }
        }
    });
    session
}

on_both! {
    async fn switching_under_load_loses_nothing_and_does_nothing_twice(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let done_by = Done::default();
        elsewhere(&engine, tenant, Arc::clone(&done_by)).await;
        let inside = Arc::clone(&done_by);
        work(&engine, 4, move |assignment| {
            let at = (assignment.at.run, assignment.at.position);
            inside.lock().unwrap().entry(at).or_default().push("inside");
            async {
                tokio::time::sleep(Duration::from_millis(3)).await;
                done("1")
            }
        });
        let flipping = Arc::new(AtomicBool::new(true));
        let flips = {
            let (engine, flipping) = (engine.clone(), Arc::clone(&flipping));
            tokio::spawn(async move {
                let mut flips = 0;
                while flipping.load(Ordering::Relaxed) {
                    switch(&engine, tenant, flips % 2 == 1).await;
                    flips += 1;
                    tokio::time::sleep(Duration::from_millis(40)).await;
                }
                flips
            })
        };
        let steps = (0..STEPS).map(|number| StepSpec::task(format!("s{number}"), "t")).collect();
        let steps = plan(steps);
        let mut runs = Vec::new();
        for _ in 0..RUNS {
            runs.push(engine.runs().start(start(tenant, &steps, "null")).await.unwrap().run);
        }
        for run in &runs {
            assert_eq!(ends(&engine, tenant, *run).await, RunState::Succeeded);
        }
        flipping.store(false, Ordering::Relaxed);
        assert!(flips.await.unwrap() >= 4);
        {
            let done_by = done_by.lock().unwrap();
            assert_eq!(done_by.len(), RUNS * STEPS, "every step was done");
            assert!(done_by.values().all(|by| by.len() == 1), "none of them twice");
            let by = |who: &str| done_by.values().filter(|by| by[0] == who).count();
            assert!(by("inside") > 0 && by("elsewhere") > 0, "{} inside, {} elsewhere", by("inside"), by("elsewhere"));
        }
        assert!(engine.store().check().await.unwrap().is_empty());
        stop(engine).await;
    }

    async fn a_worker_elsewhere_gets_nothing_while_it_is_off_and_hears_why(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |tenant| tenant.settings.worker_orchestration = false).await;
        let hello = WorkerHello { tenant: Some(tenant), ..hello(2) };
        let session = engine.workers().register(hello).await.unwrap().session;
        let steps = plan(vec![StepSpec::task("a", "t"), StepSpec::task("b", "t")]);
        let run = engine.runs().start(start(tenant, &steps, "null")).await.unwrap().run;
        let workers = engine.workers();
        let poll = |wait| workers.poll(session, 2, Duration::from_millis(wait));
        assert_eq!(poll(300).await.unwrap(), []);
        let notice = engine.workers().notice(session).unwrap();
        assert!(notice.contains("worker_orchestration.enabled is off") && notice.contains("interlock flag set"), "{notice}");

        switch(&engine, tenant, true).await;
        let first = poll(60_000).await.unwrap().remove(0);
        assert_eq!((first.at.run, engine.workers().notice(session)), (run, None));
        // What it has, it finishes; the next step is not its any more.
        switch(&engine, tenant, false).await;
        assert_eq!(report(&engine, session, &first, done("1")).await, None);
        assert_eq!(poll(300).await.unwrap(), []);
        work(&engine, 1, |_| async { done("2") });
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        stop(engine).await;
    }

    async fn a_worker_elsewhere_goes_on_with_the_run_that_it_has_while_it_is_off(database: &Database) {
        let engine = engine_with(database, patient()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let session = register(&engine, "box", Some(tenant)).await;
        let run = engine.runs().start(start(tenant, &commands(2), "null")).await.unwrap().run;
        takes(&engine, session).await;
        switch(&engine, tenant, false).await;
        let other = engine.runs().start(start(tenant, &commands(1), "null")).await.unwrap().run;
        let task = plan(vec![StepSpec::task("t", "work")]);
        let task = engine.runs().start(start(tenant, &task, "null")).await.unwrap().run;
        does_a_step(&engine, session).await;
        does_a_step(&engine, session).await;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        engine.workers().heartbeat(session, &[], false).await.unwrap();
        assert_eq!(engine.workers().poll(session, 1, Duration::from_millis(400)).await.unwrap(), []);
        assert_eq!(engine.workers().take_run_offers(session), [], "neither the run nor the task");
        assert!(engine.workers().notice(session).is_some_and(|notice| notice.contains("the runs that it has")));
        work(&engine, 1, |_| async { done("1") });
        assert_eq!(ends(&engine, tenant, task).await, RunState::Succeeded);

        switch(&engine, tenant, true).await;
        assert_eq!(takes(&engine, session).await.at.run, other);
        does_a_step(&engine, session).await;
        assert_eq!(ends(&engine, tenant, other).await, RunState::Succeeded);
        stop(engine).await;
    }

    async fn a_run_that_needs_a_worker_elsewhere_waits_while_it_is_off_and_does_not_fail(database: &Database) {
        let engine = engine_with(database, quick()).await;
        let tenant = tenant(&engine, |tenant| tenant.settings.worker_orchestration = false).await;
        let session = register(&engine, "box", Some(tenant)).await;
        let run = engine.runs().start(start(tenant, &commands(1), "null")).await.unwrap().run;
        waits_because(&engine, tenant, run, "worker_orchestration.enabled is off").await;
        switch(&engine, tenant, true).await;
        assert_eq!(takes(&engine, session).await.at.run, run);
        does_a_step(&engine, session).await;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        stop(engine).await;
    }

    // An offer that was made before the switch is no attempt: the run stays where it was.
    async fn a_run_that_is_taken_after_the_switch_goes_back(database: &Database) {
        let engine = engine_with(database, patient()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let session = register(&engine, "box", Some(tenant)).await;
        let run = engine.runs().start(start(tenant, &commands(1), "null")).await.unwrap().run;
        let offer = offered(&engine, session).await;
        switch(&engine, tenant, false).await;
        engine.workers().answer_offer(session, taking(&offer)).await.unwrap();
        waits_because(&engine, tenant, run, "worker_orchestration.enabled is off").await;
        switch(&engine, tenant, true).await;
        assert_eq!(takes(&engine, session).await.number, offer.number + 1);
        does_a_step(&engine, session).await;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        stop(engine).await;
    }
}
