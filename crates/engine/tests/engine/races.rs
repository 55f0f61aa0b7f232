//! Two servers, each with an engine of its own, do two things to one run at the same moment: every pair, in every state
//! that a run can stand in. The second command is decided again from what the first one left. Afterwards the run is
//! what its events say, and no effect has two receipts.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use interlock_core::ids::{ReceiptId, RunId, ServerId, SessionId, TenantId};
use interlock_core::json::Json;
use interlock_core::machine::step::Resolution;
use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_core::plan::{Accept, Gate, OnDenial, OnFailure, StepSpec, WaitFor, Work};
use interlock_core::run::Phase;
use interlock_core::run::approval::Voter;
use interlock_core::run::change::Context;
use interlock_core::state::{EffectClass, RunState};
use interlock_core::work::{
    Assignment, EffectAnswer, EffectIntent, EffectOutcome, Report, ReportedOutcome, WorkerHello,
};
use interlock_engine::commands::control::ResolveRequest;
use interlock_engine::commands::signal::SignalRequest;
use interlock_engine::commands::vote::VoteRequest;
use interlock_engine::{Engine, EngineError};
use interlock_store::{Options, Store, StoreUrl};

use crate::harness::{Database, PATIENCE, done, hello, options, plan, reaches, start, stop, tenant};

/// Where the run stands when both begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InitialState {
    Ready,
    Running,
    /// A worker has leave for an unsafe effect.
    InEffect,
    InDoubt,
    WaitingApproval,
    WaitingSignal,
    Paused,
    /// A step failed, and the run waits for an operator.
    Failed,
}

const INITIAL_STATES: [InitialState; 8] = [
    InitialState::Ready,
    InitialState::Running,
    InitialState::InEffect,
    InitialState::InDoubt,
    InitialState::WaitingApproval,
    InitialState::WaitingSignal,
    InitialState::Paused,
    InitialState::Failed,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Claim,
    Complete,
    Fail,
    Lost,
    Intent,
    Outcome,
    Resolve,
    Approve,
    Reject,
    Signal,
    Pause,
    Resume,
    Retry,
    Skip,
    Restart,
    Cancel,
    Rollback,
}

const WISHES: [Wish; 17] = [
    Wish::Claim,
    Wish::Complete,
    Wish::Fail,
    Wish::Lost,
    Wish::Intent,
    Wish::Outcome,
    Wish::Resolve,
    Wish::Approve,
    Wish::Reject,
    Wish::Signal,
    Wish::Pause,
    Wish::Resume,
    Wish::Retry,
    Wish::Skip,
    Wish::Restart,
    Wish::Cancel,
    Wish::Rollback,
];

/// What makes sense in this state, and what comes too late or too early by a moment.
fn is_worth_it(standing: InitialState, wish: Wish) -> bool {
    use Wish::{Approve, Claim, Complete, Fail, Intent, Lost, Outcome, Reject, Resolve, Signal};
    match standing {
        InitialState::Ready | InitialState::Paused | InitialState::Failed => {
            !matches!(wish, Complete | Fail | Lost | Intent | Outcome | Resolve | Approve | Reject | Signal)
        }
        InitialState::Running => !matches!(wish, Claim | Outcome | Resolve | Approve | Reject | Signal),
        InitialState::InEffect => !matches!(wish, Claim | Approve | Reject | Signal),
        InitialState::InDoubt => !matches!(wish, Claim | Intent | Approve | Reject | Signal),
        InitialState::WaitingApproval => !matches!(wish, Complete | Fail | Lost | Intent | Outcome | Resolve | Signal),
        InitialState::WaitingSignal => {
            !matches!(wish, Complete | Fail | Lost | Intent | Outcome | Resolve | Approve | Reject)
        }
    }
}

/// One run, and what its worker has in hand.
struct RacedRun {
    tenant: TenantId,
    run: RunId,
    queue: String,
    session: SessionId,
    assignment: Option<Assignment>,
    receipt: Option<ReceiptId>,
}

fn steps(standing: InitialState, queue: &str) -> Vec<StepSpec> {
    let task = |key: &str| {
        let mut step = StepSpec::task(key, "task");
        queue.clone_into(&mut step.queue);
        step.on_failure = Some(OnFailure::Pause);
        step
    };
    let mut pay = task("pay");
    pay.effect = Some(EffectClass::Unsafe);
    let gate = Gate {
        approvers: vec![],
        quorum: 1,
        message: None,
        on_reject: OnDenial::Pause,
        on_expiry: OnDenial::Fail,
        escalate_after: None,
        expires_after: None,
    };
    let until = WaitFor::Signal { signal: "go".into(), key: None, accept: Accept::Any };
    let first = match standing {
        InitialState::WaitingApproval => StepSpec::new("first", Work::Approval(gate)),
        InitialState::WaitingSignal => StepSpec::new("first", Work::Wait { until, timeout: None }),
        _ => {
            pay.key = "first".into();
            return vec![pay, task("second")];
        }
    };
    vec![first, pay, task("second")]
}

fn failure() -> ReportedOutcome {
    ReportedOutcome::Dead { error: StepError::new(ErrorClass::Terminal, "NO", "it did not work") }
}

impl RacedRun {
    async fn set(engine: &Engine, tenant: TenantId, standing: InitialState, queue: String) -> Self {
        let plan = plan(steps(standing, &queue));
        let run = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
        let session =
            engine.workers().register(WorkerHello { queues: vec![queue.clone()], ..hello(1) }).await.unwrap().session;
        let mut scene = Self { tenant, run, queue, session, assignment: None, receipt: None };
        let operator = || Context::operator("olga");
        match standing {
            InitialState::Ready | InitialState::WaitingApproval | InitialState::WaitingSignal => {}
            InitialState::Paused => drop(engine.runs().pause(tenant, run, "look".into(), operator()).await.unwrap()),
            InitialState::Running | InitialState::InEffect | InitialState::InDoubt | InitialState::Failed => {
                let assignment = engine.workers().poll(session, 1, PATIENCE).await.unwrap().pop().expect("work");
                if matches!(standing, InitialState::InEffect | InitialState::InDoubt) {
                    let answer = engine.workers().intent(session, intent(&assignment)).await.unwrap();
                    let EffectAnswer::Perform { receipt, .. } = answer else { panic!("{answer:?}") };
                    scene.receipt = Some(receipt);
                }
                match standing {
                    InitialState::InDoubt => engine.workers().left_out(assignment.at).await.unwrap(),
                    InitialState::Failed => {
                        drop(engine.workers().complete(session, report(&assignment, failure())).await.unwrap());
                    }
                    _ => {}
                }
                if matches!(standing, InitialState::InDoubt | InitialState::Failed) {
                    reaches(engine, tenant, run, RunState::Paused).await;
                }
                scene.assignment = Some(assignment);
            }
        }
        scene
    }

    async fn do_it(&self, engine: &Engine, wish: Wish) -> Result<(), EngineError> {
        let Self { tenant, run, session, .. } = *self;
        let by = Context::operator("olga");
        let held = || self.assignment.as_ref().expect("a worker has it");
        match wish {
            Wish::Claim => {
                let queues = vec![self.queue.clone()];
                let session = engine.workers().register(WorkerHello { queues, ..hello(1) }).await?.session;
                engine.workers().poll(session, 1, Duration::from_millis(30)).await.map(drop)
            }
            Wish::Complete => engine.workers().complete(session, report(held(), done("1"))).await.map(drop),
            Wish::Fail => engine.workers().complete(session, report(held(), failure())).await.map(drop),
            Wish::Lost => engine.workers().left_out(held().at).await,
            Wish::Intent => engine.workers().intent(session, intent(held())).await.map(drop),
            Wish::Outcome => {
                let (at, epoch, receipt) = (held().at, held().epoch, self.receipt.expect("an intent"));
                engine
                    .workers()
                    .outcome(session, EffectOutcome { at, epoch, receipt, happened: true, response: None })
                    .await
            }
            Wish::Resolve => {
                let (step, reason) = ("first".to_owned(), "looked it up".to_owned());
                let request = ResolveRequest { step, resolution: Resolution::Happened, output: None, reason };
                engine.runs().resolve(tenant, run, request, by).await.map(drop)
            }
            Wish::Approve | Wish::Reject => {
                let loaded = engine.store().load_runs(&[(tenant, run)]).await?.pop().expect("the run");
                let Phase::WaitingApproval(approval) = &loaded.current().phase else { return Ok(()) };
                let voter = Voter::new(format!("{wish:?}"), vec![]);
                let approve = wish == Wish::Approve;
                let vote = VoteRequest { approval: approval.id, voter, approve, notes: None };
                engine.runs().vote(tenant, run, vote).await.map(drop)
            }
            Wish::Signal => {
                let request = SignalRequest {
                    tenant,
                    signal_type: "go".into(),
                    key: run.to_string(),
                    payload: Json::null(),
                    source_id: None,
                    broadcast: false,
                    run: None,
                };
                engine.signals().signal(request).await.map(drop)
            }
            Wish::Pause => engine.runs().pause(tenant, run, "look".into(), by).await.map(drop),
            Wish::Resume => engine.runs().resume(tenant, run, by).await.map(drop),
            Wish::Retry => engine.runs().retry(tenant, run, None, by).await.map(drop),
            Wish::Skip => engine.runs().skip(tenant, run, "not needed".into(), None, by).await.map(drop),
            Wish::Restart => engine.runs().restart_from(tenant, run, "first", by).await.map(drop),
            Wish::Cancel => engine.runs().cancel(tenant, run, "no".into(), false, by).await.map(drop),
            Wish::Rollback => engine.runs().roll_back(tenant, run, "undo it".into(), by).await.map(drop),
        }
    }

    /// The run is what its events say, and no effect was allowed twice.
    async fn check(&self, engine: &Engine, what: &str) {
        let Self { tenant, run, .. } = *self;
        let loaded = engine.store().load_runs(&[(tenant, run)]).await.unwrap().pop().expect(what);
        let events = engine.store().events(tenant, run, 0, 10_000).await.unwrap();
        let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
        assert_eq!(seqs, (1..=loaded.version).collect::<Vec<_>>(), "{what}");
        let receipts = engine.store().receipts(tenant, run).await.unwrap();
        let mut keys: Vec<_> = receipts.iter().map(|row| row.receipt.key.clone()).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), receipts.len(), "{what}: {receipts:?}");
    }
}

fn intent(assignment: &Assignment) -> EffectIntent {
    let (at, epoch) = (assignment.at, assignment.epoch);
    EffectIntent { at, epoch, template: "bank".into(), number: 0, effect: EffectClass::Unsafe, request: Json::null() }
}

fn report(assignment: &Assignment, outcome: ReportedOutcome) -> Report {
    Report {
        at: assignment.at,
        epoch: assignment.epoch,
        outcome,
        claim_next: true,
        cost: None,
        credentials: Vec::new(),
    }
}

pub async fn two_engines(url: &StoreUrl) -> [Engine; 2] {
    let mut engines = Vec::new();
    for _ in 0..2 {
        // Leases outlive the test, so that only the race itself takes a step from its worker.
        let options = options();
        let store = Store::open(url, Options::new(ServerId(options.ids.fresh()))).await.unwrap();
        engines.push(Engine::open(store, options).await.unwrap());
    }
    engines.try_into().ok().unwrap()
}

const AT_ONCE: usize = 24;

async fn race(
    engines: &[Engine; 2],
    tenant: TenantId,
    number: usize,
    (standing, one, other): (InitialState, Wish, Wish),
) {
    let what = format!("{standing:?}: {one:?} against {other:?}");
    let scene = Arc::new(RacedRun::set(&engines[number % 2], tenant, standing, format!("q{number}")).await);
    let racing = [(one, engines[0].clone()), (other, engines[1].clone())].map(|(wish, engine)| {
        let scene = Arc::clone(&scene);
        tokio::spawn(async move { scene.do_it(&engine, wish).await })
    });
    for raced in racing {
        match raced.await.unwrap() {
            // The first one may have ended what the second one wanted to change, or its session.
            Ok(()) | Err(EngineError::Rejected(_) | EngineError::SessionGone) => {}
            Err(error) => panic!("{what}: {error}"),
        }
    }
    scene.check(&engines[number % 2], &what).await;
}

async fn every_pair(url: &StoreUrl) {
    let engines = two_engines(url).await;
    let tenant = tenant(&engines[0], |_| {}).await;
    let pairs = INITIAL_STATES.into_iter().flat_map(|standing| {
        let wishes: Vec<Wish> = WISHES.into_iter().filter(|wish| is_worth_it(standing, *wish)).collect();
        let with = wishes.clone();
        wishes.into_iter().flat_map(move |one| with.clone().into_iter().map(move |other| (standing, one, other)))
    });
    let pairs: Vec<(InitialState, Wish, Wish)> = pairs.collect();
    assert!(pairs.len() > 400, "{}", pairs.len());
    // Each race has a queue and a run of its own, and much of it is waiting.
    futures::stream::iter(pairs.into_iter().enumerate())
        .for_each_concurrent(AT_ONCE, |(number, pair)| race(&engines, tenant, number, pair))
        .await;
    assert_eq!(engines[0].store().check().await.unwrap(), []);
    for engine in engines {
        stop(engine).await;
    }
}

mod sqlite {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn two_engines_race_every_pair_of_commands() {
        // A file has one server; in memory two of them share it.
        let name = format!("races-{}", std::process::id());
        super::every_pair(&interlock_store::StoreUrl::SqliteMemory(name.clone())).await;
        interlock_store::forget_memory(&name);
    }
}

mod postgres {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn two_engines_race_every_pair_of_commands() {
        super::every_pair(&super::Database::postgres().await.url).await;
    }
}
