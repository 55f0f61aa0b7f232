//! Runs whose commands share a directory: one worker has the run as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use interlock_core::governance::judge::AllowDeclared;
use interlock_core::ids::{RunId, SessionId, TenantId};
use interlock_core::plan::rules::Workdir;
use interlock_core::plan::{StepSpec, WORKDIR, WaitFor, Work, command_capability};
use interlock_core::run::Run;
use interlock_core::run::assignment::AssignmentTimes;
use interlock_core::run::change::Context;
use interlock_core::state::{Detail, EffectClass, PreflightCheck, Reason, RunState};
use interlock_core::time::Millis;
use interlock_core::work::offer::{OfferAnswer, OfferVerdict, RunOffer, RunRef};
use interlock_core::work::{Assignment, EFFECTS, WorkerHello};
use interlock_engine::{EncodedPlan, Engine, EngineOptions, JudgedBy};
use interlock_store::StoreUrl;

use crate::harness::{
    Database, PATIENCE, done, ends, engine_with, hello, options, plan_with, reaches, report, short_leases, start, stop,
    tenant,
};
use crate::on_both;

/// How long a worker may take to answer, and how long each of three attempts to find one may take.
pub fn times(ack: Millis, attempt: Millis) -> EngineOptions {
    let assignment = AssignmentTimes { ack, backoff: vec![attempt; 3], kept: Millis(200) };
    EngineOptions { assignment: Arc::new(assignment), judge: JudgedBy::Judge(Arc::new(AllowDeclared)), ..options() }
}

/// With an attempt to find a worker that is over soon.
pub fn quick() -> EngineOptions {
    times(Millis::from_mins(5), Millis(150))
}

/// With one that takes as long as a test does.
pub fn patient() -> EngineOptions {
    times(Millis::from_mins(5), Millis::from_mins(5))
}

/// The same, and a worker that is lost is noticed within the test.
pub fn losing() -> EngineOptions {
    EngineOptions { session_lease: short_leases().session_lease, ..patient() }
}

pub fn command(key: &str, rule: Workdir) -> StepSpec {
    let env = BTreeMap::from([("APP_ENV".to_owned(), "test".to_owned())]);
    let mut step = StepSpec::new(key, Work::Command { argv: vec!["/bin/true".into()], env });
    step.effect = Some(EffectClass::Idempotent);
    step.rules.workdir = Some(rule);
    step
}

/// A command that shares no directory: any worker of its profile may run it.
pub fn lone_command(key: &str) -> StepSpec {
    let mut step = command(key, Workdir::Run);
    step.rules.workdir = None;
    step
}

pub fn shared(steps: Vec<StepSpec>) -> Arc<EncodedPlan> {
    plan_with(steps, |plan| plan.rules.profile = Some("dev-flex".into()))
}

pub fn commands(count: usize) -> Arc<EncodedPlan> {
    shared((0..count).map(|at| command(&format!("c{at}"), Workdir::Run)).collect())
}

async fn keeper(engine: &Engine, name: &str) -> SessionId {
    register(engine, name, None).await
}

pub async fn register(engine: &Engine, name: &str, tenant: Option<TenantId>) -> SessionId {
    register_with(engine, name, tenant, 4).await
}

/// The same with so many slots.
pub async fn register_with(engine: &Engine, name: &str, tenant: Option<TenantId>, slots: u32) -> SessionId {
    let capabilities = vec![EFFECTS.into(), WORKDIR.into(), command_capability("dev-flex")];
    let hello = WorkerHello { worker: name.into(), tenant, capabilities: Some(capabilities), ..hello(slots) };
    engine.workers().register(hello).await.unwrap().session
}

/// The next run that the session is asked to take.
pub async fn offered(engine: &Engine, session: SessionId) -> RunOffer {
    let asked = async {
        loop {
            engine.workers().heartbeat(session, &[], false).await.unwrap();
            assert_eq!(engine.workers().poll(session, 1, Duration::from_millis(200)).await.unwrap(), []);
            if let Some(offer) = engine.workers().take_run_offers(session).pop() {
                return offer;
            }
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.expect("a run is offered")
}

pub async fn claimed(engine: &Engine, session: SessionId) -> Assignment {
    let asked = async {
        loop {
            engine.workers().heartbeat(session, &[], false).await.unwrap();
            if let Some(claimed) = engine.workers().poll(session, 1, Duration::from_millis(200)).await.unwrap().pop() {
                return claimed;
            }
            assert!(engine.workers().take_run_offers(session).is_empty(), "it has the run already");
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.expect("a step is claimed")
}

pub fn taking(offer: &RunOffer) -> OfferAnswer {
    OfferAnswer {
        tenant: offer.at.tenant,
        run: offer.at.run,
        epoch: offer.epoch,
        number: offer.number,
        answer: OfferVerdict::Acked,
    }
}

fn refusing(offer: &RunOffer, check: PreflightCheck) -> OfferAnswer {
    let answer = OfferVerdict::Refused { check, why: "not here".into(), own_fault: false };
    OfferAnswer { answer, ..taking(offer) }
}

pub async fn takes(engine: &Engine, session: SessionId) -> RunOffer {
    let offer = offered(engine, session).await;
    engine.workers().answer_offer(session, taking(&offer)).await.unwrap();
    offer
}

pub async fn does_a_step(engine: &Engine, session: SessionId) {
    let step = claimed(engine, session).await;
    assert!(step.command.as_ref().is_some_and(|terms| terms.workdir), "{step:?}");
    assert_eq!(report(engine, session, &step, done("1")).await, None);
}

async fn loaded(engine: &Engine, tenant: TenantId, run: RunId) -> Run {
    engine.store().load_runs(&[(tenant, run)]).await.unwrap().pop().unwrap()
}

/// Waits until the run says of its search what has this part, and answers all of it. No attempt may have been counted by then.
pub async fn waits_because(engine: &Engine, tenant: TenantId, run: RunId, part: &str) -> String {
    let looking = async {
        loop {
            let events = engine.store().events(tenant, run, 0, 100).await.unwrap();
            let told = events.into_iter().map(|event| event.event.to_value().unwrap());
            let told = told.filter(|event| event["event"] == "session.unassigned");
            let mut told = told.filter_map(|event| event["why"].as_str().map(str::to_owned));
            if let Some(why) = told.find(|why| why.contains(part)) {
                return why;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let why = tokio::time::timeout(PATIENCE, looking).await.expect("the run says why it waits");
    let run = loaded(engine, tenant, run).await;
    assert!(!run.state.is_terminal(), "{:?}", run.reason);
    assert_eq!(run.notes.assignment.unwrap().failures, [], "{why}");
    why
}

async fn names(engine: &Engine, tenant: TenantId, run: RunId) -> Vec<String> {
    let events = engine.store().events(tenant, run, 0, 100).await.unwrap();
    events.into_iter().map(|event| event.event.to_value().unwrap()["event"].as_str().unwrap().to_owned()).collect()
}

on_both! {
    async fn a_run_is_one_workers_from_its_ack_to_its_end(database: &Database) {
        let engine = engine_with(database, patient()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let run = engine.runs().start(start(tenant, &commands(2), "null")).await.unwrap().run;
        assert_eq!(loaded(&engine, tenant, run).await.detail, Some(Detail::AssigningWorker));
        // A worker that knows nothing of offers gets none, and neither does one that runs no commands.
        let capabilities = Some(vec![EFFECTS.into(), command_capability("dev-flex")]);
        let old = engine.workers().register(WorkerHello { capabilities, ..hello(4) }).await.unwrap().session;
        assert_eq!(engine.workers().poll(old, 1, Duration::from_millis(300)).await.unwrap(), []);
        assert_eq!(engine.workers().take_run_offers(old), []);

        let (one, two) = (keeper(&engine, "one").await, keeper(&engine, "two").await);
        let offer = offered(&engine, one).await;
        assert_eq!((offer.at, offer.number, offer.commands.len()), (RunRef { tenant, run }, 1, 2));
        assert_eq!(offer.commands[0].variables, ["APP_ENV"], "the worker's rules judge names before values are known");
        assert_eq!(engine.workers().poll(two, 1, Duration::from_millis(100)).await.unwrap(), []);
        assert_eq!(engine.workers().take_run_offers(two), [], "one is asked at a time");
        // A session cannot take what another session was offered.
        assert!(engine.workers().answer_offer(two, taking(&offer)).await.is_err());
        engine.workers().answer_offer(one, taking(&offer)).await.unwrap();
        engine.workers().answer_offer(one, taking(&offer)).await.expect("a repeat is harmless");
        let kept = [offer.at];
        assert_eq!(engine.workers().over(one, &kept).await.unwrap(), []);
        assert_eq!(engine.workers().over(two, &kept).await.unwrap(), kept, "another worker's");

        assert_eq!(engine.workers().poll(two, 1, Duration::from_millis(300)).await.unwrap(), []);
        does_a_step(&engine, one).await;
        assert_eq!(engine.workers().poll(two, 1, Duration::from_millis(300)).await.unwrap(), []);
        does_a_step(&engine, one).await;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        assert_eq!(engine.workers().over(one, &kept).await.unwrap(), kept, "the run has ended");
        let names = names(&engine, tenant, run).await;
        assert_eq!(names[1..3], ["session.offered", "session.assigned"], "{names:?}");
        stop(engine).await;
    }

    async fn a_worker_of_another_tenant_neither_sees_nor_answers_an_offer(database: &Database) {
        let engine = engine_with(database, patient()).await;
        let (own, other) = (tenant(&engine, |_| {}).await, tenant(&engine, |_| {}).await);
        let run = engine.runs().start(start(own, &commands(1), "null")).await.unwrap().run;
        let (stranger, ours) =
            (register(&engine, "stranger", Some(other)).await, register(&engine, "ours", Some(own)).await);
        assert_eq!(engine.workers().poll(stranger, 1, Duration::from_millis(300)).await.unwrap(), []);
        assert_eq!(engine.workers().take_run_offers(stranger), []);
        let offer = offered(&engine, ours).await;
        let refused = engine.workers().answer_offer(stranger, taking(&offer)).await.unwrap_err();
        assert_eq!(refused.code(), "RUN_NOT_FOUND");
        let elsewhere = OfferAnswer { tenant: other, run, ..taking(&offer) };
        assert_eq!(engine.workers().answer_offer(stranger, elsewhere).await.unwrap_err().code(), "RUN_NOT_FOUND");
        engine.workers().answer_offer(ours, taking(&offer)).await.unwrap();
        stop(engine).await;
    }

    async fn who_does_not_answer_is_followed_by_the_next(database: &Database) {
        let engine = engine_with(database, times(Millis::from_secs(3), Millis::from_secs(3))).await;
        let tenant = tenant(&engine, |_| {}).await;
        let run = engine.runs().start(start(tenant, &commands(1), "null")).await.unwrap().run;
        let silent = keeper(&engine, "silent").await;
        let late = offered(&engine, silent).await;
        let other = keeper(&engine, "other").await;
        let next = takes(&engine, other).await;
        assert_eq!((next.at.run, next.number), (run, 2));
        assert_eq!(engine.workers().answer_offer(silent, taking(&late)).await.unwrap_err().code(), "ASSIGNMENT_OVER");
        does_a_step(&engine, other).await;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        stop(engine).await;
    }

    async fn a_failed_check_asks_the_next_and_ends_with_its_name(database: &Database) {
        let engine = engine_with(database, patient()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let run = engine.runs().start(start(tenant, &commands(1), "null")).await.unwrap().run;
        for (name, check) in
            [("a", PreflightCheck::Commands), ("b", PreflightCheck::Credentials), ("c", PreflightCheck::Sandbox)]
        {
            let session = keeper(&engine, name).await;
            let offer = offered(&engine, session).await;
            engine.workers().answer_offer(session, refusing(&offer, check)).await.unwrap();
        }
        assert_eq!(ends(&engine, tenant, run).await, RunState::Failed);
        let run = loaded(&engine, tenant, run).await;
        assert_eq!(run.reason, Some(Reason::AssignmentError));
        let told = run.current().last_error.clone().unwrap().message;
        for part in ["a: commands: not here", "b: credentials: not here", "c: sandbox: not here"] {
            assert!(told.contains(part), "{told}");
        }
        stop(engine).await;
    }

    async fn a_run_that_nobody_can_take_fails(database: &Database) {
        let engine = engine_with(database, quick()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let run = engine.runs().start(start(tenant, &commands(1), "null")).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Failed);
        assert_eq!(loaded(&engine, tenant, run).await.reason, Some(Reason::FailedAssignment));
        stop(engine).await;
    }

    async fn a_run_fails_after_as_many_attempts_as_are_set(database: &Database) {
        for attempts in [1, 4] {
            let assignment = AssignmentTimes { backoff: vec![Millis(150); attempts], ..AssignmentTimes::default() };
            let engine = engine_with(database, EngineOptions { assignment: Arc::new(assignment), ..quick() }).await;
            let tenant = tenant(&engine, |_| {}).await;
            let run = engine.runs().start(start(tenant, &commands(1), "null")).await.unwrap().run;
            assert_eq!(ends(&engine, tenant, run).await, RunState::Failed);
            let failures = loaded(&engine, tenant, run).await.notes.assignment.unwrap().failures;
            assert_eq!(failures.len(), attempts, "{failures:?}");
            stop(engine).await;
        }
    }

    async fn busy_workers_do_not_fail_a_run(database: &Database) {
        let engine = engine_with(database, quick()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let busy = keeper(&engine, "busy").await;
        let run = engine.runs().start(start(tenant, &commands(1), "null")).await.unwrap().run;
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            engine.workers().heartbeat(busy, &[], false).await.unwrap();
        }
        assert_eq!(loaded(&engine, tenant, run).await.state, RunState::Pending);
        takes(&engine, busy).await;
        does_a_step(&engine, busy).await;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        stop(engine).await;
    }

    async fn a_worker_lost_between_steps_is_replaced_unasked(database: &Database) {
        let engine = engine_with(database, losing()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let run = engine.runs().start(start(tenant, &commands(2), "null")).await.unwrap().run;
        let dies = keeper(&engine, "dies").await;
        takes(&engine, dies).await;
        does_a_step(&engine, dies).await;
        // It is not heard of again.
        let other = keeper(&engine, "other").await;
        let renewed = engine.clone();
        let renewing = tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(200)).await;
                renewed.workers().heartbeat(other, &[], false).await.unwrap();
            }
        });
        let offer = takes(&engine, other).await;
        assert_eq!((offer.at.run, offer.number), (run, 2));
        renewing.abort();
        does_a_step(&engine, other).await;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        stop(engine).await;
    }

    async fn a_worker_that_leaves_gives_its_runs_up_at_once(database: &Database) {
        let engine = engine_with(database, patient()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let run = engine.runs().start(start(tenant, &commands(2), "null")).await.unwrap().run;
        let (leaves, stays) = (keeper(&engine, "leaves").await, keeper(&engine, "stays").await);
        takes(&engine, leaves).await;
        does_a_step(&engine, leaves).await;
        engine.workers().unregister(leaves).await.unwrap();
        takes(&engine, stays).await;
        does_a_step(&engine, stays).await;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        stop(engine).await;
    }

    async fn a_run_whose_worker_left_in_good_order_waits_for_another_one(database: &Database) {
        let engine = engine_with(database, quick()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let leaves = keeper(&engine, "leaves").await;
        let run = engine.runs().start(start(tenant, &commands(2), "null")).await.unwrap().run;
        takes(&engine, leaves).await;
        does_a_step(&engine, leaves).await;
        engine.workers().unregister(leaves).await.unwrap();
        let why = waits_because(&engine, tenant, run, "waits for another worker").await;
        assert!(why.contains("`leaves` had the run"), "{why}");
        let comes = keeper(&engine, "comes").await;
        takes(&engine, comes).await;
        assert_eq!(loaded(&engine, tenant, run).await.notes.assignment.unwrap().left_by, None);
        does_a_step(&engine, comes).await;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        stop(engine).await;
    }

    async fn a_worker_lost_in_a_command_stops_the_run_until_it_is_reassigned(database: &Database) {
        let engine = engine_with(database, losing()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let run = engine.runs().start(start(tenant, &commands(1), "null")).await.unwrap().run;
        let dies = keeper(&engine, "dies").await;
        takes(&engine, dies).await;
        claimed(&engine, dies).await;
        reaches(&engine, tenant, run, RunState::Paused).await;
        assert_eq!(engine.runs().resume(tenant, run, Context::operator("olga")).await.unwrap_err().code(), "RUN_DIRECTIVE_DUE");
        let other = keeper(&engine, "other").await;
        assert_eq!(engine.workers().poll(other, 1, Duration::from_millis(300)).await.unwrap(), []);
        assert_eq!(engine.workers().take_run_offers(other), [], "no worker gets it without a directive");
        engine.runs().reassign(tenant, run, "the machine is gone".into(), Context::operator("olga")).await.unwrap();
        takes(&engine, other).await;
        does_a_step(&engine, other).await;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        stop(engine).await;
    }

    async fn a_wait_gives_the_worker_up_unless_the_directory_is_kept(database: &Database) {
        let engine = engine_with(database, patient()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let session = keeper(&engine, "one").await;
        for (rule, offers) in [(Workdir::Run, 2), (Workdir::Keep, 1)] {
            // Much longer than the worker is kept.
            let wait = Work::Wait { until: WaitFor::For(Millis::from_secs(3)), timeout: None };
            let steps = vec![command("a", rule), StepSpec::new("w", wait), command("b", rule)];
            let run = engine.runs().start(start(tenant, &shared(steps), "null")).await.unwrap().run;
            let first = takes(&engine, session).await;
            does_a_step(&engine, session).await;
            if offers > 1 {
                assert_eq!(takes(&engine, session).await.number, first.number + 1);
            }
            does_a_step(&engine, session).await;
            assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
            assert_eq!(loaded(&engine, tenant, run).await.notes.assignment.unwrap().number, offers);
            engine.workers().heartbeat(session, &[], false).await.unwrap();
        }
        stop(engine).await;
    }
}

/// Whichever server a worker talks to: the offer of one is answered at the other, and none of them remembers more than rows say.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_assignment_holds_on_two_servers() {
    let database = Database::postgres().await;
    assert!(matches!(database.url, StoreUrl::Postgres(_)));
    let (one, two) = (engine_with(&database, patient()).await, engine_with(&database, patient()).await);
    let tenant = tenant(&one, |_| {}).await;
    let run = one.runs().start(start(tenant, &commands(3), "null")).await.unwrap().run;
    let (session, other) = (keeper(&one, "one").await, keeper(&two, "other").await);
    let offer = offered(&two, session).await;
    assert_eq!(one.workers().poll(other, 1, Duration::from_millis(300)).await.unwrap(), []);
    assert_eq!(one.workers().take_run_offers(other), []);
    one.workers().answer_offer(session, taking(&offer)).await.unwrap();
    two.workers().answer_offer(session, taking(&offer)).await.expect("a repeat, at the other");
    does_a_step(&two, session).await;
    assert_eq!(two.workers().poll(other, 1, Duration::from_millis(300)).await.unwrap(), []);
    does_a_step(&one, session).await;
    assert_eq!(one.workers().poll(other, 1, Duration::from_millis(300)).await.unwrap(), []);
    two.workers().unregister(session).await.unwrap();
    takes(&one, other).await;
    does_a_step(&two, other).await;
    assert_eq!(ends(&one, tenant, run).await, RunState::Succeeded);
    stop(one).await;
    stop(two).await;
}
