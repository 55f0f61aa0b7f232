//! Two servers decide on one run at the same time, each from the same version of it: one of them wins, and what stands
//! in the store is what the winner wrote. Every pair of commands, in every state that a run can stand in.

use interlock_core::decide::{self, Command, CommandOrigin, Completion, DecideContext, Outcome};
use interlock_core::governance::action::Action;
use interlock_core::governance::judge::{AllowDeclared, Judged};
use interlock_core::ids::{ReceiptId, SessionId, SignalId};
use interlock_core::json::Json;
use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_core::plan::{Accept, Gate, OnDenial, Plan, StepSpec, WaitFor, Work};
use interlock_core::run::Run;
use interlock_core::run::approval::Voter;
use interlock_core::run::change::ChangeSet;
use interlock_core::run::receipt::Receipt;
use interlock_core::state::{EffectClass, Reason, ReceiptState};
use interlock_core::time::{Millis, Timestamp};
use interlock_core::work::Claimer;
use interlock_store::{Refusal, Store, SubmitError};
use std::sync::Arc;

use crate::harness::{NOW, StartOptions, TestDatabase, World, command, fresh, plan_of, tasks};
use crate::walk::without_leftovers;

crate::on_every_store!(two_servers_race_every_pair_of_commands, a_completion_races_a_pause);

/// In which state the run is when both decide.
#[derive(Debug, Clone, Copy)]
enum InitialState {
    Ready,
    Running,
    WaitingApproval,
    WaitingSignal,
    Paused,
}

const INITIAL_STATES: [InitialState; 5] = [
    InitialState::Ready,
    InitialState::Running,
    InitialState::WaitingApproval,
    InitialState::WaitingSignal,
    InitialState::Paused,
];

fn gate() -> Gate {
    Gate {
        approvers: vec![],
        quorum: 1,
        message: None,
        on_reject: OnDenial::Pause,
        on_expiry: OnDenial::Fail,
        escalate_after: None,
        expires_after: None,
    }
}

fn plan(standing: InitialState) -> Arc<Plan> {
    let first = match standing {
        InitialState::WaitingApproval => StepSpec::new("gate", Work::Approval(gate())),
        InitialState::WaitingSignal => {
            let until = WaitFor::Signal { signal: "go".into(), key: Some("k".into()), accept: Accept::Any };
            StepSpec::new("wait", Work::Wait { until, timeout: None })
        }
        InitialState::Ready | InitialState::Running | InitialState::Paused => StepSpec::task("first", "noop"),
    };
    plan_of(vec![first, StepSpec::task("second", "noop"), StepSpec::task("third", "noop")])
}

async fn run_in(world: &World, standing: InitialState) -> Run {
    let mut run = world.start(&plan(standing), StartOptions::default()).await;
    match standing {
        InitialState::Running => world.claim(&mut run, SessionId(fresh())).await,
        InitialState::Paused => {
            let pause = command(&run, Command::Pause { reason: "look".into() }, NOW);
            world.apply(&mut run, pause).await;
        }
        InitialState::Ready | InitialState::WaitingApproval | InitialState::WaitingSignal => {}
    }
    run
}

/// Every command that may be given to the run; `decide` refuses what does not fit its state.
fn wishes(run: &Run) -> Vec<Command> {
    let (position, attempt) = (run.position, run.current().attempt);
    let error = || StepError::new(ErrorClass::Terminal, "E1", "it did not work");
    let session = run.current().session();
    let claim_next = || session.map(Claimer::of_all_trades);
    let complete =
        |outcome| Command::Complete(Completion { position, attempt, outcome, claim_next: claim_next(), cost: None });
    let vote = |person: &str, approve| Command::Vote {
        position,
        voter: Voter::new(person.to_owned(), vec![]),
        approve,
        notes: None,
    };
    let receipt = Receipt {
        id: ReceiptId(fresh()),
        position,
        iteration: 0,
        attempt,
        key: format!("key-{}", run.id),
        effect: EffectClass::Unsafe,
        state: ReceiptState::Intent,
        request: Json::null(),
        response: None,
        intent_at: NOW,
        outcome_at: None,
        late: false,
        unsettled: false,
        bundle: None,
    };
    let action = Action::of_effect(run.spec(position), position, "pay".into(), Json::null(), receipt.effect);
    let grant = Judged::by(&AllowDeclared, action, run).grant(run, Timestamp(0)).unwrap();
    vec![
        Command::Claim { session: SessionId(fresh()) },
        complete(Outcome::Completed { output: Json::trusted("{}") }),
        complete(Outcome::Retry { error: error(), backoff: Some(Millis(1)) }),
        complete(Outcome::Dead { error: error() }),
        complete(Outcome::Waiting { signal: "go".into(), key: "k".into(), timeout: None, outbound: vec![] }),
        Command::Release { position, attempt, cost: None },
        Command::LeaseExpired { position, attempt },
        Command::Wake { position, signal: SignalId(fresh()), payload: Json::null(), broadcast: true },
        Command::RecordIntent {
            position,
            attempt,
            receipt: Box::new(receipt),
            grant: Box::new(grant),
            again: false,
            hold: None,
        },
        vote("ada", true),
        vote("bob", false),
        Command::Pause { reason: "look".into() },
        Command::Resume,
        Command::Retry { input: None },
        Command::Skip { reason: "not needed".into(), voter: None },
        Command::Cancel { reason: "no".into(), rollback: false },
        Command::Rollback { reason: "undo it".into(), from: None },
        Command::RestartFrom { position: 0 },
        Command::FailRun { reason: Reason::Deadline, error: error() },
        Command::Park,
    ]
}

fn decided(run: &Run, command: Command) -> Option<Box<ChangeSet>> {
    let decided = decide::decide(run, command, DecideContext::default(), CommandOrigin::system(NOW)).ok()?;
    decided.settle(crate::harness::bound).ok()
}

/// Both submit at once; answers with the run as the winner left it.
async fn race(stores: &[Store; 2], mut run: Run, sets: [Box<ChangeSet>; 2], what: &str) -> Run {
    let [first, second] = sets;
    let (first, second) = futures::join!(stores[0].submit(first), stores[1].submit(second));
    let mut won = Vec::new();
    for answer in [first, second] {
        match answer {
            Ok(change) => won.push(change),
            Err(SubmitError::Refused(
                Refusal::Version | Refusal::VoteExists | Refusal::ReceiptExists | Refusal::SignalConsumed,
            )) => {}
            Err(other) => panic!("{what}: {other}"),
        }
    }
    assert_eq!(won.len(), 1, "{what}: this many of the two were committed");
    run.apply(&won.remove(0));
    run
}

async fn check(world: &World, runs: &[(Run, String)]) {
    for (run, what) in runs {
        let loaded = world.load(run).await;
        assert_eq!(without_leftovers(loaded), without_leftovers(run.clone()), "{what}");
    }
    assert_eq!(world.findings().await, []);
}

async fn two_servers_race_every_pair_of_commands(database: &TestDatabase) {
    let world = database.world().await;
    let stores = [world.store.clone(), database.second(&world.store).await];
    let mut raced = Vec::new();
    for standing in INITIAL_STATES {
        let sample = run_in(&world, standing).await;
        let possible: Vec<usize> = (0..wishes(&sample).len())
            .filter(|wish| decided(&sample, wishes(&sample).swap_remove(*wish)).is_some())
            .collect();
        assert!(possible.len() >= 5, "{standing:?}: {possible:?}");
        for one in &possible {
            for other in &possible {
                let run = run_in(&world, standing).await;
                let sets = [*one, *other].map(|wish| decided(&run, wishes(&run).swap_remove(wish)).unwrap());
                let what = format!("{standing:?}: {:?} against {:?}", wishes(&run)[*one], wishes(&run)[*other]);
                let run = race(&stores, run, sets, &what).await;
                raced.push((run, what));
            }
        }
    }
    check(&world, &raced).await;
}

/// The pair that is hardest to keep apart: their journal rows have different numbers, so that only the version can refuse
/// the second one.
async fn a_completion_races_a_pause(database: &TestDatabase) {
    let world = database.world().await;
    let stores = [world.store.clone(), database.second(&world.store).await];
    let plan = tasks(3);
    let mut raced = Vec::new();
    for round in 0..rounds() {
        let wanted = StartOptions { claim: Some(SessionId(fresh())), ..StartOptions::default() };
        let run = world.start(&plan, wanted).await;
        let complete = crate::harness::completion(&run, NOW);
        let pause = command(&run, Command::Pause { reason: "look".into() }, NOW);
        let what = format!("round {round}");
        let sets = if round % 2 == 0 { [complete, pause] } else { [pause, complete] };
        let run = race(&stores, run, sets, &what).await;
        raced.push((run, what));
    }
    check(&world, &raced).await;
}

/// As many as `INTERLOCK_TEST_RACES` says; a few by default.
pub fn rounds() -> u32 {
    std::env::var("INTERLOCK_TEST_RACES").map_or(50, |rounds| rounds.parse().expect("INTERLOCK_TEST_RACES is a number"))
}
