//! Random races on an approval, by two servers: people agree and refuse, it expires, the run is canceled, asked again,
//! skipped. However they meet, every approval has one end, which its votes bear out, and what it guards has run only if it
//! was approved.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt as _;
use interlock_core::ids::{ApprovalId, RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::plan::{Gate, OnDenial, StepSpec, Work};
use interlock_core::run::Phase;
use interlock_core::run::approval::{Purpose, Voter};
use interlock_core::run::change::Context;
use interlock_core::run::event::Event;
use interlock_core::state::{ApprovalState, RunState};
use interlock_core::time::Millis;
use interlock_engine::commands::vote::VoteRequest;
use interlock_engine::{Engine, EngineError};
use interlock_store::{ApprovalRow, EventRecord, StoreUrl};

use crate::harness::{Database, PATIENCE, plan, start, stop, tenant};
use crate::races::two_engines;

/// Rounds where `INTERLOCK_TEST_VOTE_RACES` is not set.
const ROUNDS: usize = 2_000;
const AT_ONCE: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Approve(u8),
    Reject(u8),
    Cancel,
    Retry,
    Skip,
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn act(&mut self) -> Act {
        let person = self.below(4) as u8;
        match self.below(10) {
            0..=4 => Act::Approve(person),
            5 | 6 => Act::Reject(person),
            7 => Act::Cancel,
            8 => Act::Retry,
            _ => Act::Skip,
        }
    }
}

fn steps(dice: &mut Dice) -> (u32, Vec<StepSpec>) {
    let quorum = 1 + dice.below(2) as u32;
    let gate = Gate {
        approvers: vec![],
        quorum,
        message: None,
        on_reject: if dice.below(2) == 0 { OnDenial::Fail } else { OnDenial::Pause },
        on_expiry: if dice.below(2) == 0 { OnDenial::Fail } else { OnDenial::Pause },
        escalate_after: None,
        // Now and then it expires in the middle of it all.
        expires_after: Some(if dice.below(3) == 0 { Millis(5 + dice.below(40)) } else { Millis(600_000) }),
    };
    let guarded = StepSpec::new("guarded", Work::Transform { value: Json::trusted("1") });
    (quorum, vec![StepSpec::new("gate", Work::Approval(gate)), guarded])
}

async fn do_it(engine: &Engine, tenant: TenantId, run: RunId, act: Act) -> Result<(), EngineError> {
    let by = Context::operator("olga");
    match act {
        Act::Approve(person) | Act::Reject(person) => {
            let loaded = engine.store().load_runs(&[(tenant, run)]).await?.pop().expect("the run");
            let Phase::WaitingApproval(approval) = &loaded.current().phase else { return Ok(()) };
            let voter = Voter::new(format!("p{person}"), vec![]);
            let approve = matches!(act, Act::Approve(_));
            let vote = VoteRequest { approval: approval.id, voter, approve, notes: None };
            engine.runs().vote(tenant, run, vote).await.map(drop)
        }
        Act::Cancel => engine.runs().cancel(tenant, run, "no".into(), false, by).await.map(drop),
        Act::Retry => engine.runs().retry(tenant, run, None, by).await.map(drop),
        Act::Skip => {
            let voter = Voter::new("p3", vec![]);
            engine.runs().skip(tenant, run, "not needed".into(), Some(voter), by).await.map(drop)
        }
    }
}

async fn round(engines: &[Engine; 2], tenant: TenantId, seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let (quorum, steps) = steps(&mut dice);
    let run = engines[0].runs().start(start(tenant, &plan(steps), "null")).await.unwrap().run;
    let acts: Vec<(usize, u64, Act)> =
        (0..2 + dice.below(5)).map(|_| (dice.below(2) as usize, dice.below(12), dice.act())).collect();
    let racing = acts.iter().map(|(server, pause, act)| async move {
        tokio::time::sleep(Duration::from_millis(*pause)).await;
        match do_it(&engines[*server], tenant, run, *act).await {
            // What comes second may find that there is nothing left to do.
            Ok(()) | Err(EngineError::Rejected(_)) => {}
            Err(error) => panic!("seed {seed}: {act:?}: {error}"),
        }
    });
    futures::future::join_all(racing).await;
    settle(&engines[0], tenant, run).await;
    check(&engines[1], (tenant, run), quorum, seed).await;
}

/// Waits until what was decided has happened.
async fn settle(engine: &Engine, tenant: TenantId, run: RunId) {
    let rests = async {
        loop {
            let loaded = engine.store().load_runs(&[(tenant, run)]).await.unwrap().pop().expect("the run");
            let waits_long = match &loaded.current().phase {
                Phase::WaitingApproval(open) => open.expires_at > engine.now() + Millis(60_000),
                _ => false,
            };
            if loaded.state.is_terminal() || loaded.state == RunState::Paused || waits_long {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, rests).await.is_ok(), "{run} does not come to rest");
}

/// What is there at one moment: between two looks it may expire.
async fn seen(engine: &Engine, tenant: TenantId, run: RunId) -> (Vec<ApprovalRow>, Vec<EventRecord>) {
    loop {
        let before = engine.store().events(tenant, run, 0, 10_000).await.unwrap();
        let approvals = engine.store().approvals_of(tenant, run).await.unwrap();
        let events = engine.store().events(tenant, run, 0, 10_000).await.unwrap();
        if before.len() == events.len() {
            return (approvals, events);
        }
    }
}

async fn check(engine: &Engine, (tenant, run): (TenantId, RunId), quorum: u32, seed: u64) {
    let (approvals, events) = seen(engine, tenant, run).await;
    let mut resolved: BTreeMap<ApprovalId, Vec<ApprovalState>> = BTreeMap::new();
    let (mut begun, mut skipped, mut passed) = (false, BTreeSet::new(), false);
    for event in events.iter().map(|event| event.event.decode::<Event>().unwrap()) {
        match event {
            Event::ApprovalResolved { approval, status, .. } => {
                resolved.entry(approval).or_default().push(status);
                passed |= status == ApprovalState::Approved;
            }
            Event::StepCompleted { step: 1, .. } => {
                assert!(passed, "seed {seed}: it ran before a person had agreed: {events:?}");
                begun = true;
            }
            Event::StepSkipped { step, .. } => drop(skipped.insert(step)),
            _ => {}
        }
    }
    let mut may_pass = false;
    for approval in &approvals {
        let told = resolved.remove(&approval.id).unwrap_or_default();
        let agreed: BTreeSet<&str> =
            approval.votes.iter().filter(|vote| vote.approve).map(|vote| &*vote.person).collect();
        let refused = approval.votes.iter().filter(|vote| !vote.approve).count();
        let people: BTreeSet<&str> = approval.votes.iter().map(|vote| &*vote.person).collect();
        assert_eq!(people.len(), approval.votes.len(), "seed {seed}: one word a person: {approval:?}");
        assert!(approval.quorum >= quorum, "seed {seed}: {approval:?}");
        match approval.state {
            ApprovalState::Requested => assert_eq!(told, [], "seed {seed}: {approvals:#?} {events:#?}"),
            state => assert_eq!(told, [state], "seed {seed}: one end, told once: {approval:?}"),
        }
        match approval.state {
            ApprovalState::Approved => {
                assert!(agreed.len() as u32 >= approval.quorum && refused == 0, "seed {seed}: {approval:?}");
                may_pass = true;
            }
            ApprovalState::Rejected => assert_eq!(refused, 1, "seed {seed}: {approval:?}"),
            ApprovalState::Requested | ApprovalState::Expired | ApprovalState::Canceled => {
                assert!((agreed.len() as u32) < approval.quorum && refused == 0, "seed {seed}: {approval:?}");
            }
        }
        assert!(matches!(approval.purpose, Purpose::Gate | Purpose::Skip), "seed {seed}: {approval:?}");
    }
    assert!(resolved.is_empty(), "seed {seed}: {resolved:?} is told of and not there");
    assert!(!begun || may_pass, "seed {seed}: {approvals:?}");
    let ended = engine.store().load_runs(&[(tenant, run)]).await.unwrap().pop().unwrap();
    if ended.state == RunState::Succeeded {
        assert!(may_pass, "seed {seed}: {approvals:?}");
        assert!(begun || skipped.contains(&1), "seed {seed}: {events:?}");
    }
}

async fn random_races(url: &StoreUrl, rounds: usize) {
    let rounds = std::env::var("INTERLOCK_TEST_VOTE_RACES").map_or(rounds, |text| text.parse().unwrap());
    let engines = two_engines(url).await;
    let tenant = tenant(&engines[0], |_| {}).await;
    futures::stream::iter(0..rounds as u64).for_each_concurrent(AT_ONCE, |seed| round(&engines, tenant, seed)).await;
    assert_eq!(engines[0].store().check().await.unwrap(), []);
    for engine in engines {
        stop(engine).await;
    }
}

mod sqlite {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn thousands_of_random_races_of_votes_have_one_outcome_each() {
        let name = format!("votes-{}", std::process::id());
        super::random_races(&interlock_store::StoreUrl::SqliteMemory(name.clone()), super::ROUNDS).await;
        interlock_store::forget_memory(&name);
    }
}

mod postgres {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn thousands_of_random_races_of_votes_have_one_outcome_each() {
        super::random_races(&super::Database::postgres().await.url, super::ROUNDS / 2).await;
    }
}
