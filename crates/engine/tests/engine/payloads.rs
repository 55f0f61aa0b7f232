//! Payloads too long for a row: through a run and a restart, seen by workers and expressions, lost, altered, swept.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::{Hash, Json};
use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_core::plan::{Accept, OnFailure, RollbackCondition, RollbackSpec, StepSpec, Undo, WaitFor, Work};
use interlock_core::run::change::Context;
use interlock_core::state::{EffectClass, RunState, StepState};
use interlock_core::time::Millis;
use interlock_core::work::ReportedOutcome;
use interlock_engine::commands::signal::SignalRequest;
use interlock_engine::payloads::{Objects, PayloadOptions};
use interlock_engine::{Engine, EngineOptions, StartRun};
use interlock_store::Sweep;

use crate::harness::{
    Database, PATIENCE, done, ends, engine_with, hello, options, plan, plan_with, reaches, short_leases, start, stop,
    tenant, work,
};
use crate::on_both;

const INLINE_MAX: usize = 2_000;

/// A folder for one test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("interlock-payloads-{}-{number}", std::process::id())))
    }

    pub fn options(&self) -> EngineOptions {
        let objects = Objects::folder(&self.0).unwrap();
        let payloads = PayloadOptions { inline_max: INLINE_MAX, ..PayloadOptions::new(objects) };
        EngineOptions { payloads: Some(payloads), ..options() }
    }

    /// The objects that are there.
    pub fn objects(&self) -> Vec<PathBuf> {
        fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { walk(&path, found) } else { found.push(path) }
            }
        }
        let mut found = Vec::new();
        walk(&self.0, &mut found);
        found
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn long(letter: &str) -> String {
    format!("{{\"text\":\"{}\"}}", letter.repeat(10_000))
}

/// Two tasks, the second of which runs if an expression sees what is at the end of the long texts.
fn two_steps() -> Arc<interlock_engine::EncodedPlan> {
    let mut second = StepSpec::task("second", "t");
    let sees = "size(inputs.text) == 10000 && size(steps.first.output.text) == 10000";
    second.condition = Some(sees.to_owned());
    plan(vec![StepSpec::task("first", "t"), second])
}

on_both! {
    async fn a_long_payload_goes_through_a_run_and_a_restart(database: &Database) {
        let folder = Folder::new();
        let engine = engine_with(database, folder.options()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let run = engine.runs().start(start(tenant, &two_steps(), &long("i"))).await.unwrap().run;
        let row = engine.store().run_overview(tenant, run).await.unwrap().unwrap();
        assert!(row.inputs.len() < 300, "the row holds a reference: {:?}", row.inputs);
        assert_eq!(folder.objects().len(), 1);
        stop(engine).await;

        let engine = engine_with(database, folder.options()).await;
        let seen: Arc<Mutex<Vec<Json>>> = Arc::default();
        let heard = Arc::clone(&seen);
        let worker = work(&engine, 1, move |assignment| {
            heard.lock().unwrap().push(assignment.input);
            async { done(&long("o")) }
        });
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        worker.abort();
        let inputs = Json::trusted(long("i"));
        assert_eq!(*seen.lock().unwrap(), [inputs.clone(), inputs], "both steps ran, on the whole input");
        let row = engine.store().run_overview(tenant, run).await.unwrap().unwrap();
        let output = engine.payloads().unwrap().fetch(tenant, &row.output.unwrap()).await.unwrap();
        assert_eq!(output, Json::trusted(long("o")));
        assert_eq!(folder.objects().len(), 2, "both steps answered the same: one object");

        stop(engine).await;
    }

    async fn a_lost_or_altered_payload_fails_the_step_that_needs_it(database: &Database) {
        let folder = Folder::new();
        let mut engine = engine_with(database, folder.options()).await;
        let tenant = tenant(&engine, |_| {}).await;
        // What changes something is judged first, and a policy cannot judge what cannot be read: that run stops.
        let reads = StepSpec { effect: Some(EffectClass::Read), ..StepSpec::task("only", "t") };
        let (once, changes) = (plan(vec![reads]), plan(vec![StepSpec::task("only", "t")]));
        for (letter, code) in [("a", "PAYLOAD_ALTERED"), ("m", "PAYLOAD_MISSING")] {
            let before = folder.objects();
            let run = engine.runs().start(start(tenant, &once, &long(letter))).await.unwrap().run;
            let judged = engine.runs().start(start(tenant, &changes, &long(letter))).await.unwrap().run;
            let object = folder.objects().into_iter().find(|path| !before.contains(path)).unwrap();
            if letter == "a" {
                std::fs::write(&object, long("b")).unwrap();
            } else {
                std::fs::remove_file(&object).unwrap();
            }
            // What an engine has in memory it need not read.
            stop(engine).await;
            engine = engine_with(database, folder.options()).await;
            let session = engine.workers().register(hello(2)).await.unwrap().session;
            for _ in 0..2 {
                let polled = engine.workers().poll(session, 2, Duration::from_millis(500)).await.unwrap();
                assert!(polled.is_empty(), "no worker is handed a reference: {polled:?}");
            }
            assert_eq!(ends(&engine, tenant, run).await, RunState::Failed);
            reaches(&engine, tenant, judged, RunState::Paused).await;
            let step = engine.store().steps(tenant, run).await.unwrap().remove(0);
            assert_eq!(step.state, StepState::Failed);
            assert!(step.error.unwrap().as_str().contains(code), "{code}");
            engine.workers().unregister(session).await.unwrap();
        }
        stop(engine).await;
    }

    async fn a_signal_may_be_long(database: &Database) {
        let folder = Folder::new();
        let engine = engine_with(database, folder.options()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let mut last = StepSpec::task("last", "t");
        last.condition = Some("size(steps.wait.output.text) == 10000".into());
        let until = WaitFor::Signal { signal: "go".into(), key: None, accept: Accept::Any };
        let plan = plan(vec![StepSpec::new("wait", Work::Wait { until, timeout: None }), last]);
        let run = engine.runs().start(StartRun { subject: Some("s".into()), ..start(tenant, &plan, "{}") }).await.unwrap().run;
        reaches(&engine, tenant, run, RunState::WaitingSignal).await;
        let payload = Json::trusted(long("s"));
        let signal = SignalRequest { tenant, signal_type: "go".into(), key: "s".into(), payload, source_id: None, broadcast: false, run: None };
        engine.signals().signal(signal).await.unwrap();
        let ran: Arc<Mutex<u32>> = Arc::default();
        let count = Arc::clone(&ran);
        let worker = work(&engine, 1, move |_| {
            *count.lock().unwrap() += 1;
            async { done("1") }
        });
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        worker.abort();
        assert_eq!(*ran.lock().unwrap(), 1, "the expression saw the whole signal");
        let steps = engine.store().steps(tenant, run).await.unwrap();
        let output = steps[0].output.clone().unwrap();
        assert!(output.len() < 300, "{output:?}");
        assert_eq!(engine.payloads().unwrap().fetch(tenant, &output).await.unwrap(), Json::trusted(long("s")));
        stop(engine).await;
    }

    async fn a_rollback_is_given_the_whole_of_what_it_undoes(database: &Database) {
        let folder = Folder::new();
        let (session_lease, effect_settles_after) = (short_leases().session_lease, Millis(100));
        let losing = || EngineOptions { session_lease, effect_settles_after, ..folder.options() };
        let engine = engine_with(database, losing()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let mut pay = StepSpec::task("pay", "t");
        let conditions = RollbackCondition::ALL.to_vec();
        let with = Some(Json::trusted(r#"{"reason":"no"}"#));
        pay.rollback = Some(RollbackSpec { with, conditions, ..RollbackSpec::by(Undo::Handler("refund".into())) });
        let plan = plan(vec![pay, StepSpec::task("ship", "t")]);
        let run = engine.runs().start(start(tenant, &plan, &long("i"))).await.unwrap().run;
        let worker = work(&engine, 1, |assignment| async move {
            match assignment.step.as_str() {
                "pay" => done(&long("o")),
                // The worker that has it is gone with the engine.
                _ => std::future::pending().await,
            }
        });
        until(async || engine.store().steps(tenant, run).await.unwrap()[0].state == StepState::Succeeded).await;
        worker.abort();
        stop(engine).await;

        // The server that undoes it has nothing in memory.
        let engine = engine_with(database, losing()).await;
        let undone: Arc<Mutex<Vec<Json>>> = Arc::default();
        let heard = Arc::clone(&undone);
        let worker = work(&engine, 1, move |assignment| {
            let outcome = if assignment.step == "rollback:pay" {
                heard.lock().unwrap().push(assignment.input);
                done(&long("r"))
            } else {
                dead()
            };
            async { outcome }
        });
        assert_eq!(ends(&engine, tenant, run).await, RunState::Failed);
        worker.abort();
        let whole = format!(r#"{{"input":{},"output":{},"with":{{"reason":"no"}}}}"#, long("i"), long("o"));
        assert_eq!(*undone.lock().unwrap(), [Json::trusted(whole)]);
        let steps = engine.store().steps(tenant, run).await.unwrap();
        assert_eq!(steps[0].state, StepState::RolledBack);
        let answered = steps[2].output.clone().unwrap();
        assert_eq!(engine.payloads().unwrap().fetch(tenant, &answered).await.unwrap(), Json::trusted(long("r")));
        stop(engine).await;
    }

    async fn a_resumed_run_refers_to_what_it_keeps(database: &Database) {
        let folder = Folder::new();
        let engine = engine_with(database, folder.options()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let first = engine.runs().start(start(tenant, &two_steps(), &long("i"))).await.unwrap().run;
        let worker = work(&engine, 1, |assignment| async move {
            if assignment.step == "first" { done(&long("o")) } else { dead() }
        });
        assert_eq!(ends(&engine, tenant, first).await, RunState::Failed);
        worker.abort();
        stop(engine).await;

        let engine = engine_with(database, folder.options()).await;
        let second = engine.runs().resume_as_new(tenant, first, None, None, Context::operator("op")).await.unwrap().run;
        let seen: Arc<Mutex<Vec<(String, Json)>>> = Arc::default();
        let heard = Arc::clone(&seen);
        let worker = work(&engine, 1, move |assignment| {
            heard.lock().unwrap().push((assignment.step, assignment.input));
            async { done("1") }
        });
        assert_eq!(ends(&engine, tenant, second).await, RunState::Succeeded);
        worker.abort();
        let expected = ("second".to_owned(), Json::trusted(long("i")));
        assert_eq!(*seen.lock().unwrap(), [expected], "its condition saw the output that the new run keeps");
        for letter in ["i", "o"] {
            let hash = Hash::of(long(letter).as_bytes());
            for run in [first, second] {
                let bytes = engine.store().payload_bytes(tenant, run, hash).await.unwrap();
                assert_eq!(bytes, Some(long(letter).len() as u64), "{run} does not hold `{letter}`");
            }
        }
        assert_eq!(folder.objects().len(), 2, "one object for both runs");
        stop(engine).await;
    }

    async fn a_restart_finds_what_earlier_steps_answered(database: &Database) {
        let folder = Folder::new();
        let engine = engine_with(database, folder.options()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let mut last = StepSpec::task("last", "t");
        last.condition = Some("size(steps.second.output.text) == 10000 && steps.first.output.text == 'short'".into());
        let mut steps = two_steps().plan.steps.clone();
        steps.push(last);
        let plan = plan_with(steps, |plan| plan.on_failure = Some(OnFailure::Pause));
        let run = engine.runs().start(start(tenant, &plan, &long("i"))).await.unwrap().run;
        let worker = work(&engine, 1, |assignment| async move {
            match assignment.step.as_str() {
                "first" => done(&long("o")),
                _ => dead(),
            }
        });
        reaches(&engine, tenant, run, RunState::Paused).await;
        worker.abort();
        stop(engine).await;

        // From the second step, which sees the long output of the first.
        let engine = engine_with(database, folder.options()).await;
        engine.runs().restart_from(tenant, run, "second", Context::operator("op")).await.unwrap();
        let worker = work(&engine, 1, |assignment| async move {
            assert_eq!(assignment.input, Json::trusted(long("i")));
            match assignment.step.as_str() {
                "second" => done(&long("s")),
                _ => dead(),
            }
        });
        until(async || engine.store().steps(tenant, run).await.unwrap()[1].state == StepState::Succeeded).await;
        // The last one is skipped: what the first answered is long.
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        worker.abort();
        let steps = engine.store().steps(tenant, run).await.unwrap();
        let states: Vec<_> = steps.iter().map(|step| (step.attempt, step.state)).collect();
        let expected = [(1, StepState::Succeeded), (2, StepState::Succeeded), (0, StepState::Skipped)];
        assert_eq!(states, expected, "{steps:#?}");
        let payloads = engine.payloads().unwrap();
        for (step, letter) in [(0, "o"), (1, "s")] {
            let output = steps[step].output.clone().unwrap();
            assert_eq!(payloads.fetch(tenant, &output).await.unwrap(), Json::trusted(long(letter)));
        }
        stop(engine).await;
    }

    async fn objects_go_when_their_runs_have_gone(database: &Database) {
        let folder = Folder::new();
        let engine = engine_with(database, folder.options()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let ended = finished(&engine, tenant, &["g", "k"].map(long)).await;
        assert_eq!(folder.objects().len(), 2);
        stop(engine).await;

        let mut later = EngineOptions { sweep_every: Millis(50), ..folder.options() };
        later.retention = Some(Sweep { runs_kept: Some(Millis(0)), ..Sweep::new(later.clock.now()) });
        later.payloads.as_mut().unwrap().on_its_way = Millis(0);
        let engine = engine_with(database, later).await;
        let gone = async {
            while !folder.objects().is_empty() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, gone).await.expect("the objects go");
        for run in ended {
            assert!(engine.store().run_overview(tenant, run).await.unwrap().is_none());
        }
        stop(engine).await;
    }
}

fn dead() -> ReportedOutcome {
    ReportedOutcome::Dead { error: StepError::new(ErrorClass::Invalid, "NO", "no") }
}

/// Waits until something is so.
async fn until(is_so: impl AsyncFn() -> bool) {
    let seen = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.expect("it comes to be");
}

async fn finished(engine: &Engine, tenant: TenantId, inputs: &[String]) -> Vec<RunId> {
    let once = plan(vec![StepSpec::task("only", "t")]);
    let worker = work(engine, 1, |_| async { done("1") });
    let mut runs = Vec::new();
    for inputs in inputs {
        let run = engine.runs().start(start(tenant, &once, inputs)).await.unwrap().run;
        assert_eq!(ends(engine, tenant, run).await, RunState::Succeeded);
        runs.push(run);
    }
    worker.abort();
    runs
}
