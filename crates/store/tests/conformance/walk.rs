//! Random walks: whatever `decide` makes of a run, the store gives it back. The same walk on every database leaves the
//! same rows.

use interlock_core::decide::{
    self, Asking, Bound, Command, CommandOrigin, Completion, DecideContext, Outbound, Outcome,
};
use interlock_core::ids::{SessionId, SignalId};
use interlock_core::json::Json;
use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_core::plan::{Accept, Gate, OnFailure, RollbackSpec, StepSpec, Undo, WaitFor, Work};
use interlock_core::run::approval::Voter;
use interlock_core::run::{Phase, Run};
use interlock_core::state::{Reason, StepState};
use interlock_core::time::{Millis, Timestamp};
use interlock_core::work::Claimer;
use interlock_store::{SignalRow, Store, StoreSignal};
use uuid::Uuid;

use crate::harness::{NOW, StartOptions, TestDatabase, World, plan_of, start_set};

crate::on_every_store!(walks_come_back_as_they_were, walks_of_two_servers_at_once_leave_the_same);

/// A small generator, so that a walk is its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

fn steps(dice: &mut Dice) -> Vec<StepSpec> {
    let count = 2 + dice.roll(4);
    (0..count)
        .map(|index| {
            let key = format!("s{index}");
            match dice.roll(6) {
                0 => StepSpec::new(
                    key,
                    Work::Wait {
                        until: WaitFor::Signal { signal: "go".into(), key: Some("k".into()), accept: Accept::Any },
                        timeout: Some(Millis::from_secs(60)),
                    },
                ),
                1 => StepSpec::new(
                    key,
                    Work::Approval(Gate {
                        approvers: vec![],
                        quorum: 1 + dice.roll(2) as u32,
                        message: Some("may it?".into()),
                        on_reject: interlock_core::plan::OnDenial::Pause,
                        on_expiry: interlock_core::plan::OnDenial::Fail,
                        escalate_after: Some(Millis::from_secs(20)),
                        expires_after: Some(Millis::from_secs(50)),
                    }),
                ),
                2 => StepSpec::new(key, Work::Wait { until: WaitFor::For(Millis::from_secs(30)), timeout: None }),
                _ => {
                    let mut step = StepSpec::task(key, "noop");
                    step.on_failure = [None, Some(OnFailure::Pause), Some(OnFailure::Rollback)][dice.roll(3) as usize];
                    step.rollback = (dice.roll(2) == 0).then(|| RollbackSpec {
                        by: Undo::Handler("undo".into()),
                        with: None,
                        conditions: interlock_core::plan::RollbackCondition::ALL.to_vec(),
                        verify: None,
                    });
                    step
                }
            }
        })
        .collect()
}

fn error(class: ErrorClass) -> StepError {
    StepError::new(class, "E1", "it \"did\" not work")
}

fn command(run: &Run, dice: &mut Dice, session: SessionId, signal: SignalId) -> Command {
    let (position, attempt) = (run.position, run.current().attempt);
    let complete = |outcome, dice: &mut Dice| {
        let claim_next = (dice.roll(2) == 0).then(|| Claimer::of_all_trades(session));
        Command::Complete(Completion { position, attempt, outcome, claim_next, cost: None })
    };
    let output = Json::trusted(format!(r#"{{"at":{position},"text":"ü"}}"#));
    match dice.roll(24) {
        0..=4 => Command::Claim { session },
        5..=8 => complete(Outcome::Completed { output }, dice),
        9 => complete(Outcome::Retry { error: error(ErrorClass::Unavailable), backoff: Some(Millis(1)) }, dice),
        10 => complete(Outcome::Dead { error: error(ErrorClass::Terminal) }, dice),
        11 => {
            let outbound = vec![Outbound { destination: "hook".into(), payload: output }];
            let waiting = Outcome::Waiting {
                signal: "go".into(),
                key: "k".into(),
                timeout: Some(Millis::from_secs(40)),
                outbound,
            };
            complete(waiting, dice)
        }
        12 => Command::Release { position, attempt, cost: None },
        13 => Command::LeaseExpired { position, attempt },
        14 | 15 => Command::Wake { position, signal, payload: output, broadcast: false },
        16 => Command::Tick,
        17 | 18 => {
            let person = format!("p{}", dice.roll(3));
            let voter = Voter::new(person, vec![]);
            Command::Vote { position, voter, approve: dice.roll(4) != 0, notes: Some("ok".into()) }
        }
        19 => Command::Pause { reason: "look".into() },
        20 => Command::Resume,
        21 => Command::Retry { input: (dice.roll(2) == 0).then_some(output) },
        22 if dice.roll(3) == 0 => Command::Cancel { reason: "no".into(), rollback: dice.roll(2) == 0 },
        22 if dice.roll(2) == 0 => Command::RestartFrom { position: dice.roll(u64::from(position) + 1) as u32 },
        22 => Command::Skip { reason: "not needed".into(), voter: None },
        _ if dice.roll(3) == 0 => Command::FailRun { reason: Reason::Deadline, error: error(ErrorClass::Timeout) },
        _ => Command::Rollback { reason: "undo it".into(), from: None },
    }
}

/// Removes what a finished step has in memory and no code reads again; and of a terminal run the control, which has no
/// meaning any more.
pub fn without_leftovers(mut run: Run) -> Run {
    if run.state.is_terminal() {
        run.control = interlock_core::state::Control::Active;
    }
    for step in &mut run.steps {
        if step.state().is_finished() {
            step.open_intent = None;
            step.interrupted = None;
            if !matches!(step.state(), StepState::Failed | StepState::RolledBack) {
                step.last_error = None;
            }
        }
    }
    run
}

/// The changes go through the two stores in turn.
async fn walk(world: &World, other: &Store, seed: u64) -> Vec<String> {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let plan = plan_of(steps(&mut dice));
    let id = interlock_core::ids::RunId(Uuid::from_u128(u128::from(seed) << 64 | 7));
    let wanted = StartOptions { id: Some(id), subject: Some(format!("S{seed}")), ..StartOptions::default() };
    let (mut run, change) = start_set(world.tenant, &plan, wanted);
    run.apply(&world.store.submit(change).await.unwrap());
    let session = SessionId(Uuid::from_u128(u128::from(seed) << 64 | 9));
    let mut now = NOW;
    let mut trace = Vec::new();
    for turn in 0..60u128 {
        if run.state.is_terminal() {
            break;
        }
        let signal = SignalId(Uuid::from_u128(u128::from(seed) << 64 | turn << 16 | 1));
        let command = command(&run, &mut dice, session, signal);
        let is_wake = matches!(command, Command::Wake { .. });
        now = Timestamp(now.0 + dice.roll(9_000) as i64);
        let skips = dice.roll(6) == 0;
        let name = format!("{command:?}");
        let decided = decide::decide(&run, command, DecideContext::default(), CommandOrigin::system(now));
        let bound = |asking: &Asking<'_>| {
            if skips && asking.has_condition() { Bound::condition_false() } else { crate::harness::bound(asking) }
        };
        let Ok(change) = decided.and_then(|decided| decided.settle(bound)) else { continue };
        if is_wake && matches!(run.current().phase, Phase::WaitingSignal(_)) {
            let row = SignalRow {
                tenant: run.tenant,
                id: signal,
                signal_type: "go".into(),
                key: "k".into(),
                received_at: now,
                expires_at: now + Millis::from_hours(1),
                payload: Json::trusted("{}"),
                source_id: None,
                broadcast: false,
                run: None,
            };
            world.store.write(StoreSignal(row)).await.unwrap();
        }
        let store = if turn % 2 == 0 { &world.store } else { other };
        let committed = store.submit(change).await;
        run.apply(&committed.unwrap_or_else(|error| panic!("seed {seed}: {name}: {error}")));
        let loaded = world.load(&run).await;
        assert_eq!(without_leftovers(loaded), without_leftovers(run.clone()), "seed {seed} after {name}");
        trace.push(format!("{} {}", name.split([' ', '(']).next().unwrap_or(""), run.state));
    }
    for step in world.store.steps(run.tenant, run.id).await.unwrap() {
        let expected = &run.steps[step.position as usize];
        assert_eq!(step.state, expected.state(), "seed {seed}: {step:?} is {expected:?}");
        trace.push(format!("{step:?}"));
    }
    for event in world.store.events(run.tenant, run.id, 0, 10_000).await.unwrap() {
        trace.push(format!("{event:?}"));
    }
    for approval in world.store.approvals_of(run.tenant, run.id).await.unwrap() {
        trace.push(format!("{approval:?}"));
    }
    trace.push(format!("{:?}", world.store.run_overview(run.tenant, run.id).await.unwrap()));
    trace
}

const SEEDS: u64 = 60;

async fn walks_come_back_as_they_were(database: &TestDatabase) {
    let world = database.world().await;
    // The reference is SQLite in memory; the walk on the store under test must leave the same.
    let reference = TestDatabase::memory();
    let reference_world = reference.world().await;
    for seed in 1..=SEEDS {
        let here = walk(&world, &world.store, seed);
        let there = walk(&reference_world, &reference_world.store, seed);
        let (here, there) = futures::join!(here, there);
        assert_eq!(here, there, "seed {seed}");
    }
    assert_eq!(world.findings().await, []);
}

/// Walks that are under way at the same time, each through two servers: their groups are mixed, and leave what the walks
/// leave one after the other.
async fn walks_of_two_servers_at_once_leave_the_same(database: &TestDatabase) {
    let world = database.world().await;
    let second = database.second(&world.store).await;
    let reference = TestDatabase::memory();
    let reference_world = reference.world().await;
    for first in (1..=SEEDS).step_by(AT_ONCE as usize) {
        let walks: Vec<_> = (first..first + AT_ONCE)
            .map(|seed| {
                let (world, second) = (world.clone(), second.clone());
                tokio::spawn(async move { walk(&world, &second, seed).await })
            })
            .collect();
        for (seed, walked) in (first..).zip(walks) {
            let here = walked.await.unwrap();
            assert_eq!(here, walk(&reference_world, &reference_world.store, seed).await, "seed {seed}");
        }
    }
    assert_eq!(world.findings().await, []);
}

const AT_ONCE: u64 = 12;
