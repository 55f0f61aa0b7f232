//! A worker of all tenants, as inside a server, runs commands while there is one tenant, and none while there are several.

use std::time::Duration;

use interlock_core::ids::{RunId, SessionId, TenantId};
use interlock_core::plan::StepSpec;
use interlock_core::state::{Reason, RunState};
use interlock_core::time::Millis;
use interlock_core::work::Assignment;
use interlock_engine::Engine;

use crate::assignments::{
    claimed, commands, does_a_step, lone_command, offered, patient, register, shared, takes, taking, times,
};
use crate::harness::{Database, done, ends, engine_with, plan, report, start, stop, tenant};
use crate::on_both;

/// An engine with one tenant, and a worker of all tenants.
async fn with_one_tenant(database: &Database) -> (Engine, TenantId, SessionId) {
    let engine = engine_with(database, patient()).await;
    let first = tenant(&engine, |_| {}).await;
    let inside = register(&engine, "inside", None).await;
    (engine, first, inside)
}

/// A worker of one tenant takes the run as a whole and does its last step.
async fn is_ended_by_own_worker(engine: &Engine, tenant: TenantId, run: RunId) {
    let own = register(engine, "own", Some(tenant)).await;
    assert_eq!(takes(engine, own).await.at.run, run);
    does_a_step(engine, own).await;
    assert_eq!(ends(engine, tenant, run).await, RunState::Succeeded);
}

async fn starts(engine: &Engine, tenant: TenantId) -> RunId {
    engine.runs().start(start(tenant, &shared(vec![lone_command("c")]), "null")).await.unwrap().run
}

async fn polled(engine: &Engine, session: SessionId) -> Vec<Assignment> {
    engine.workers().heartbeat(session, &[], false).await.unwrap();
    engine.workers().poll(session, 4, Duration::from_millis(300)).await.unwrap()
}

async fn set_disabled(engine: &Engine, tenant: TenantId, disabled: bool) {
    let row = engine.store().tenant(tenant).await.unwrap().unwrap();
    let disabled_at = disabled.then(|| engine.now());
    engine.tenants().put(interlock_store::Tenant { disabled_at, ..row }).await.unwrap();
}

on_both! {
    async fn commands_of_the_only_tenant_are_run_and_those_of_several_are_not(database: &Database) {
        let (engine, first, inside) = with_one_tenant(database).await;
        let run = starts(&engine, first).await;
        let step = claimed(&engine, inside).await;
        assert_eq!(report(&engine, inside, &step, done("1")).await, None);
        assert_eq!(ends(&engine, first, run).await, RunState::Succeeded);

        let second = tenant(&engine, |_| {}).await;
        let (of_first, of_second) = (starts(&engine, first).await, starts(&engine, second).await);
        assert_eq!(polled(&engine, inside).await, []);
        // A step that is no command is its own still.
        let task = engine.runs().start(start(second, &plan(vec![StepSpec::task("t", "t")]), "null")).await.unwrap().run;
        let step = claimed(&engine, inside).await;
        assert_eq!(step.at.run, task);
        report(&engine, inside, &step, done("1")).await;
        // A worker of one tenant has that one's commands.
        let own = register(&engine, "own", Some(second)).await;
        let step = claimed(&engine, own).await;
        assert_eq!(step.at.run, of_second);
        report(&engine, own, &step, done("1")).await;
        assert_eq!(engine.workers().poll(own, 1, Duration::from_millis(300)).await.unwrap(), []);

        // What a tenant has begun goes on when it is disabled, and not on the worker of the other one.
        let begun = starts(&engine, second).await;
        engine.workers().unregister(own).await.unwrap();
        set_disabled(&engine, second, true).await;
        let step = claimed(&engine, inside).await;
        assert_eq!(step.at.run, of_first);
        report(&engine, inside, &step, done("1")).await;
        assert_eq!(polled(&engine, inside).await, [], "{begun} is of another tenant");
        set_disabled(&engine, first, true).await;
        assert_eq!(polled(&engine, inside).await, [], "both are disabled");
        set_disabled(&engine, second, false).await;
        assert_eq!(claimed(&engine, inside).await.at.run, begun, "that is the only one now");
        stop(engine).await;
    }

    // A poll that waits has room for the first step of a run that starts, and for the next one of a run that goes on.
    async fn no_command_comes_by_a_start_or_by_a_report_either(database: &Database) {
        let (engine, first, inside) = with_one_tenant(database).await;
        let steps = shared(vec![StepSpec::task("t", "t"), lone_command("c")]);
        let of_first = engine.runs().start(start(first, &steps, "null")).await.unwrap().run;
        let step = claimed(&engine, inside).await;
        assert_eq!((step.at.run, step.step.as_str()), (of_first, "t"));
        let waiting = {
            let engine = engine.clone();
            tokio::spawn(async move { engine.workers().poll(inside, 2, Duration::from_secs(3)).await })
        };
        let second = tenant(&engine, |_| {}).await;
        starts(&engine, second).await;
        assert_eq!(report(&engine, inside, &step, done("1")).await, None, "the next step is a command");
        assert_eq!(waiting.await.unwrap().unwrap(), []);
        stop(engine).await;
    }

    async fn a_tenant_that_comes_between_an_offer_and_its_answer_ends_the_offer(database: &Database) {
        let (engine, first, inside) = with_one_tenant(database).await;
        let run = engine.runs().start(start(first, &commands(1), "null")).await.unwrap().run;
        let offer = offered(&engine, inside).await;
        assert_eq!(offer.at.run, run);
        tenant(&engine, |_| {}).await;
        engine.workers().answer_offer(inside, taking(&offer)).await.unwrap();
        assert_eq!(polled(&engine, inside).await, []);
        assert_eq!(engine.workers().take_run_offers(inside), []);
        is_ended_by_own_worker(&engine, first, run).await;
        stop(engine).await;
    }

    async fn a_run_that_it_has_goes_to_another_worker(database: &Database) {
        let (engine, first, inside) = with_one_tenant(database).await;
        let run = engine.runs().start(start(first, &commands(2), "null")).await.unwrap().run;
        takes(&engine, inside).await;
        does_a_step(&engine, inside).await;
        tenant(&engine, |_| {}).await;
        assert_eq!(polled(&engine, inside).await, []);
        is_ended_by_own_worker(&engine, first, run).await;
        stop(engine).await;
    }

    async fn a_run_that_finds_no_other_worker_says_why(database: &Database) {
        let engine = engine_with(database, times(Millis::from_mins(5), Millis(150))).await;
        let first = tenant(&engine, |_| {}).await;
        tenant(&engine, |_| {}).await;
        register(&engine, "inside", None).await;
        let run = engine.runs().start(start(first, &commands(1), "null")).await.unwrap().run;
        assert_eq!(ends(&engine, first, run).await, RunState::Failed);
        let run = engine.store().load_runs(&[(first, run)]).await.unwrap().pop().unwrap();
        assert_eq!(run.reason, Some(Reason::FailedAssignment));
        let told = run.current().last_error.clone().unwrap().message;
        assert!(told.contains("inside (it is inside a server and serves all tenants, and there are several"), "{told}");
        stop(engine).await;
    }
}

/// The second tenant is made at one server, and the other one has not heard of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_that_another_server_makes_counts_at_the_next_claim() {
    let database = Database::postgres().await;
    let (one, two) = (engine_with(&database, patient()).await, engine_with(&database, patient()).await);
    let first = tenant(&one, |_| {}).await;
    let inside = register(&one, "inside", None).await;
    starts(&one, first).await;
    let step = claimed(&one, inside).await;
    report(&one, inside, &step, done("1")).await;
    let second = tenant(&two, |_| {}).await;
    let run = starts(&two, second).await;
    // Without a heartbeat: nothing but the claim itself asks the store.
    assert_eq!(one.workers().poll(inside, 1, Duration::from_secs(1)).await.unwrap(), []);
    let own = register(&one, "own", Some(second)).await;
    assert_eq!(claimed(&one, own).await.at.run, run, "it was there to be had");
    stop(one).await;
    stop(two).await;
}
