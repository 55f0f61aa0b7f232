//! Workers that are connected and are given less: by a fault of their own, or because an operator says so.

use std::time::Duration;

use interlock_core::ids::{SessionId, TenantId};
use interlock_core::plan::StepSpec;
use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_core::state::{FaultCheck, PreflightCheck, RunState, WorkerState};
use interlock_core::time::Millis;
use interlock_core::work::ReportedOutcome;
use interlock_core::work::fault::{CanaryReport, SANDBOX_NOT_ATTESTED, WorkerMaintenance};
use interlock_core::work::offer::{OfferAnswer, OfferVerdict, RunOffer};
use interlock_engine::{Engine, EngineOptions};
use interlock_store::{SessionRow, SetSessionMaintenance};

use crate::assignments::{
    claimed, commands, does_a_step, lone_command, losing, offered, patient, quick, register, register_with, shared,
    takes, taking, times, waits_because,
};
use crate::harness::{Database, PATIENCE, done, ends, engine_with, plan, report, start, stop, tenant};
use crate::on_both;

fn failing(offer: &RunOffer, check: PreflightCheck, own_fault: bool) -> OfferAnswer {
    let answer = OfferVerdict::Refused { check, why: "the disk is full".into(), own_fault };
    OfferAnswer { answer, ..taking(offer) }
}

async fn row(engine: &Engine, session: SessionId) -> SessionRow {
    engine.store().session(session).await.unwrap().unwrap()
}

/// Whether the session is asked to take a run; a step must not come instead.
async fn is_offered(engine: &Engine, session: SessionId) -> bool {
    engine.workers().heartbeat(session, &[], false).await.unwrap();
    assert_eq!(engine.workers().poll(session, 1, Duration::from_millis(400)).await.unwrap(), []);
    !engine.workers().take_run_offers(session).is_empty()
}

async fn becomes_errored(engine: &Engine, session: SessionId) -> SessionRow {
    let looking = async {
        loop {
            let row = row(engine, session).await;
            if row.state == WorkerState::Errored {
                return row;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.expect("it becomes errored")
}

async fn maintain(engine: &Engine, tenant: TenantId, session: SessionId, lasts: Option<Millis>) {
    let maintenance = WorkerMaintenance {
        by: Some("olga".into()),
        reason: "a new disk".into(),
        since: engine.now(),
        until: lasts.map(|lasts| engine.now() + lasts),
    };
    set_maintenance(engine, tenant, session, Some(maintenance)).await;
}

async fn set_maintenance(
    engine: &Engine,
    tenant: TenantId,
    session: SessionId,
    maintenance: Option<WorkerMaintenance>,
) {
    engine.store().write(SetSessionMaintenance { tenant, session, maintenance }).await.unwrap();
    engine.workers().maintained(session).await.unwrap();
}

on_both! {
    async fn a_worker_at_fault_is_passed_over_until_its_canaries_pass(database: &Database) {
        let engine = engine_with(database, patient()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let session = register(&engine, "box", Some(tenant)).await;
        let first = engine.runs().start(start(tenant, &commands(1), "null")).await.unwrap().run;
        let offer = offered(&engine, session).await;
        engine.workers().answer_offer(session, failing(&offer, PreflightCheck::Workdir, true)).await.unwrap();
        let errored = row(&engine, session).await;
        let fault = errored.fault.unwrap();
        assert_eq!((errored.state, fault.check, fault.run), (WorkerState::Errored, FaultCheck::Workdir, Some(first)));
        assert_eq!(fault.why, "the disk is full");

        let second = engine.runs().start(start(tenant, &commands(1), "null")).await.unwrap().run;
        assert!(!is_offered(&engine, session).await, "it is given no run");
        // Tasks need no sandbox.
        let task = plan(vec![StepSpec::task("t", "work")]);
        let task = engine.runs().start(start(tenant, &task, "null")).await.unwrap().run;
        let step = claimed(&engine, session).await;
        assert_eq!(step.at.run, task);
        report(&engine, session, &step, done("1")).await;

        assert!(engine.workers().asks_for_canary(session).await.unwrap());
        let failed = CanaryReport { passed: false, why: Some("seccomp does not hold".into()) };
        engine.workers().canary(session, &failed).await.unwrap();
        assert_eq!(row(&engine, session).await.fault.unwrap().check, FaultCheck::Canary);
        assert!(!engine.workers().asks_for_canary(session).await.unwrap(), "not again at once");
        assert!(!is_offered(&engine, session).await);
        engine.workers().canary(session, &CanaryReport { passed: true, why: None }).await.unwrap();
        let well = row(&engine, session).await;
        assert_eq!((well.state, well.fault), (WorkerState::Online, None));
        assert_eq!(takes(&engine, session).await.at.run, second);
        stop(engine).await;
    }

    async fn what_the_run_asks_for_is_no_fault_of_the_worker(database: &Database) {
        let engine = engine_with(database, patient()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let session = register(&engine, "box", Some(tenant)).await;
        for (check, own_fault) in [(PreflightCheck::Credentials, false), (PreflightCheck::Commands, true)] {
            engine.runs().start(start(tenant, &commands(1), "null")).await.unwrap();
            let offer = offered(&engine, session).await;
            engine.workers().answer_offer(session, failing(&offer, check, own_fault)).await.unwrap();
            let row = row(&engine, session).await;
            assert_eq!((row.state, row.fault), (WorkerState::Online, None), "{check}");
        }
        stop(engine).await;
    }

    async fn a_run_that_it_takes_after_the_pause_ends_the_fault(database: &Database) {
        let options = EngineOptions { fault_pause: Millis(300), ..patient() };
        let engine = engine_with(database, options).await;
        let tenant = tenant(&engine, |_| {}).await;
        let session = register(&engine, "box", Some(tenant)).await;
        engine.runs().start(start(tenant, &commands(1), "null")).await.unwrap();
        let offer = offered(&engine, session).await;
        engine.workers().answer_offer(session, failing(&offer, PreflightCheck::Credentials, true)).await.unwrap();
        assert_eq!(row(&engine, session).await.state, WorkerState::Errored);
        engine.workers().canary(session, &CanaryReport { passed: true, why: None }).await.unwrap();
        assert_eq!(row(&engine, session).await.state, WorkerState::Errored, "a canary tries no credentials out");
        let second = engine.runs().start(start(tenant, &commands(1), "null")).await.unwrap().run;
        assert_eq!(takes(&engine, session).await.at.run, second);
        assert_eq!(row(&engine, session).await.state, WorkerState::Online);
        stop(engine).await;
    }

    async fn a_command_that_is_not_attested_is_a_fault(database: &Database) {
        let engine = engine_with(database, patient()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let session = register(&engine, "box", Some(tenant)).await;
        let steps = shared(vec![lone_command("c")]);
        let run = engine.runs().start(start(tenant, &steps, "null")).await.unwrap().run;
        let step = claimed(&engine, session).await;
        let error = StepError::new(ErrorClass::Unclassified, SANDBOX_NOT_ATTESTED, "landlock is off");
        report(&engine, session, &step, ReportedOutcome::Retry { error, backoff: None }).await;
        let errored = row(&engine, session).await;
        let fault = errored.fault.unwrap();
        assert_eq!((errored.state, fault.check, fault.run), (WorkerState::Errored, FaultCheck::Attestation, Some(run)));
        stop(engine).await;
    }

    async fn three_offers_without_an_answer_are_a_fault_which_its_next_session_inherits(database: &Database) {
        // An offer lasts long enough to be seen on a busy machine.
        let engine = engine_with(database, times(Millis::from_secs(2), Millis(150))).await;
        let tenant = tenant(&engine, |_| {}).await;
        let session = register(&engine, "box", Some(tenant)).await;
        let run = engine.runs().start(start(tenant, &commands(1), "null")).await.unwrap().run;
        for _ in 0..3 {
            assert_eq!(offered(&engine, session).await.at.run, run);
        }
        let fault = becomes_errored(&engine, session).await.fault.unwrap();
        assert_eq!((fault.check, fault.run), (FaultCheck::Assignments, Some(run)));
        engine.workers().unregister(session).await.unwrap();
        let next = register(&engine, "box", Some(tenant)).await;
        assert_eq!(row(&engine, next).await.state, WorkerState::Errored);
        let another = register(&engine, "another", Some(tenant)).await;
        assert_eq!(row(&engine, another).await.state, WorkerState::Online);
        stop(engine).await;
    }

    async fn a_worker_that_was_offline_is_asked_after_the_others(database: &Database) {
        let engine = engine_with(database, losing()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let lost = register(&engine, "box", Some(tenant)).await;
        while !row(&engine, lost).await.is_over(engine.now()) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let stays = register(&engine, "stays", Some(tenant)).await;
        let back = register(&engine, "box", Some(tenant)).await;
        let (workers, wait) = (engine.workers(), Duration::from_millis(1_500));
        let run = engine.runs().start(start(tenant, &commands(1), "null")).await.unwrap().run;
        assert!(!is_offered(&engine, back).await, "another one comes first that has not asked for work yet");
        // Both wait for work, and the one that has come back has the more room.
        workers.heartbeat(stays, &[], false).await.unwrap();
        let (one, other) = tokio::join!(workers.poll(stays, 1, wait), workers.poll(back, 4, wait));
        assert_eq!((one.unwrap(), other.unwrap()), (Vec::new(), Vec::new()));
        assert_eq!(workers.take_run_offers(back), []);
        let offers = workers.take_run_offers(stays);
        assert_eq!(offers.iter().map(|offer| offer.at.run).collect::<Vec<_>>(), [run]);
        workers.answer_offer(stays, taking(&offers[0])).await.unwrap();

        // Where there is no other, it is asked.
        workers.unregister(stays).await.unwrap();
        assert_eq!(takes(&engine, back).await.at.run, run);
        stop(engine).await;
    }

    async fn a_worker_without_room_keeps_no_run_from_one_that_was_offline(database: &Database) {
        // Much longer than the test waits.
        let engine = engine_with(database, EngineOptions { fault_pause: Millis::from_mins(10), ..losing() }).await;
        let tenant = tenant(&engine, |_| {}).await;
        let lost = register(&engine, "box", Some(tenant)).await;
        while !row(&engine, lost).await.is_over(engine.now()) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let stays = register_with(&engine, "stays", Some(tenant), 1).await;
        engine.runs().start(start(tenant, &commands(1), "null")).await.unwrap();
        takes(&engine, stays).await;
        let held = claimed(&engine, stays).await;
        let back = register(&engine, "box", Some(tenant)).await;
        let run = engine.runs().start(start(tenant, &commands(1), "null")).await.unwrap().run;
        let asked = async {
            loop {
                engine.workers().heartbeat(stays, &[held.at], false).await.unwrap();
                engine.workers().heartbeat(back, &[], false).await.unwrap();
                assert_eq!(engine.workers().poll(back, 1, Duration::from_millis(400)).await.unwrap(), []);
                if let Some(offer) = engine.workers().take_run_offers(back).pop() {
                    return offer;
                }
            }
        };
        let offer = tokio::time::timeout(PATIENCE, asked).await.expect("it is asked while the other one is busy");
        assert_eq!(offer.at.run, run);
        assert!(!row(&engine, stays).await.is_over(engine.now()), "the other one is still there");
        stop(engine).await;
    }

    async fn a_worker_in_maintenance_keeps_its_run_and_takes_nothing_new(database: &Database) {
        let engine = engine_with(database, patient()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let session = register(&engine, "box", Some(tenant)).await;
        let run = engine.runs().start(start(tenant, &commands(2), "null")).await.unwrap().run;
        takes(&engine, session).await;
        maintain(&engine, tenant, session, None).await;
        let other = engine.runs().start(start(tenant, &commands(1), "null")).await.unwrap().run;
        let task = plan(vec![StepSpec::task("t", "work")]);
        let task = engine.runs().start(start(tenant, &task, "null")).await.unwrap().run;
        does_a_step(&engine, session).await;
        does_a_step(&engine, session).await;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        assert!(!is_offered(&engine, session).await, "neither the run nor the task");
        let kept = row(&engine, session).await;
        assert_eq!((kept.state, kept.state_at(engine.now())), (WorkerState::Online, WorkerState::Maintenance));
        assert!(engine.workers().notice(session).is_some_and(|notice| notice.contains("maintenance")));

        // A worker that is started again is still in maintenance.
        engine.workers().unregister(session).await.unwrap();
        let session = register(&engine, "box", Some(tenant)).await;
        assert_eq!(row(&engine, session).await.state_at(engine.now()), WorkerState::Maintenance);
        assert!(!is_offered(&engine, session).await);
        set_maintenance(&engine, tenant, session, None).await;
        let step = loop {
            engine.workers().heartbeat(session, &[], false).await.unwrap();
            for offer in engine.workers().take_run_offers(session) {
                assert_eq!(offer.at.run, other);
                engine.workers().answer_offer(session, taking(&offer)).await.unwrap();
            }
            let polled = engine.workers().poll(session, 1, Duration::from_millis(200)).await.unwrap().pop();
            if let Some(step) = polled.filter(|step| step.at.run == task) {
                break step;
            }
        };
        report(&engine, session, &step, done("1")).await;
        assert_eq!(ends(&engine, tenant, task).await, RunState::Succeeded);
        stop(engine).await;
    }

    async fn a_run_waits_for_a_worker_in_maintenance_and_does_not_fail(database: &Database) {
        let engine = engine_with(database, quick()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let session = register(&engine, "box", Some(tenant)).await;
        maintain(&engine, tenant, session, None).await;
        let run = engine.runs().start(start(tenant, &commands(1), "null")).await.unwrap().run;
        let why = waits_because(&engine, tenant, run, "out of service").await;
        assert!(why.contains("`box` (maintenance)"), "{why}");
        assert!(!is_offered(&engine, session).await);
        set_maintenance(&engine, tenant, session, None).await;
        assert_eq!(takes(&engine, session).await.at.run, run);
        does_a_step(&engine, session).await;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        stop(engine).await;
    }

    async fn maintenance_ends_when_its_time_is_over(database: &Database) {
        let engine = engine_with(database, patient()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let session = register(&engine, "box", Some(tenant)).await;
        maintain(&engine, tenant, session, Some(Millis(500))).await;
        let run = engine.runs().start(start(tenant, &commands(1), "null")).await.unwrap().run;
        assert_eq!(takes(&engine, session).await.at.run, run);
        assert_eq!(row(&engine, session).await.state_at(engine.now()), WorkerState::Online);
        stop(engine).await;
    }
}
