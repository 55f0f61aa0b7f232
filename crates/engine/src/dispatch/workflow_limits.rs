//! Workflows at their limits. A run that the limits of its workflow hold back is taken out of the ready ones and parked
//! here, so that nothing behind it waits; it comes back when a claim of the workflow ends, or when its time has come.
//!
//! Like the ready runs this is a bounded hint: the store decides on every claim, and what does not fit is found by the
//! scan. A hold always has an end at which one run tries again, so a release that this server was not told of costs
//! time only.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use interlock_core::ids::{RunId, TenantId};
use interlock_core::run::Run;
use interlock_core::tenant::caps::ReachedCap;
use interlock_core::time::{Millis, Timestamp};

use super::ready::{Candidate, GROUP_READY_MAX, GroupKey, Rank};

/// How long a workflow at its limit is left alone, unless a claim of it is known to have ended.
const HOLD_PAUSE: Millis = Millis::from_secs(1);
/// The same while other servers commit something: it may be the end of a claim.
const NUDGED_PAUSE: Millis = Millis(200);
/// Workflows that are remembered; past this many, those that are not at a limit are forgotten.
const WORKFLOWS_MAX: usize = 10_000;
/// How many runs come back for each one that found room after a pause, when it is not known how much room there is.
const PROBES: u32 = 2;

/// A workflow with limits of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LimitedWorkflow {
    pub tenant: TenantId,
    pub name: String,
}

impl LimitedWorkflow {
    /// The run's workflow, if it has limits.
    pub fn of(run: &Run) -> Option<Self> {
        if run.plan.rules.caps().is_unlimited() {
            return None;
        }
        Some(Self { tenant: run.tenant, name: run.plan.workflow.clone() })
    }
}

/// Runs that may be tried again, and where they belong.
pub type Freed = Vec<(GroupKey, Candidate)>;

#[derive(Default)]
pub struct WorkflowLimits {
    workflows: BTreeMap<LimitedWorkflow, Workflow>,
    parked: HashSet<RunId>,
    /// Some parking is used up while the store holds more.
    starved: bool,
}

#[derive(Default)]
struct Workflow {
    /// Claims that ended, as far as this server knows.
    releases: u64,
    /// Set while it is at a limit.
    hold: Option<Hold>,
    parked: BTreeMap<GroupKey, ParkedRuns>,
}

struct Hold {
    until: Timestamp,
    since: Timestamp,
    /// The rate holds it: the end of a claim does not help.
    by_rate: bool,
    /// How many runs may try all the same.
    passes: u32,
    /// A pause is over, and those that try find out how much room there is.
    probing: bool,
}

#[derive(Default)]
struct ParkedRuns {
    runs: BTreeSet<Rank>,
    /// The store holds more than fits here.
    overflowed: bool,
}

/// Leave to try a claim, and what was known of the workflow then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    releases: u64,
}

impl WorkflowLimits {
    fn workflow(&mut self, of: &LimitedWorkflow) -> &mut Workflow {
        if self.workflows.len() >= WORKFLOWS_MAX && !self.workflows.contains_key(of) {
            self.workflows.retain(|_, workflow| workflow.hold.is_some());
        }
        self.workflows.entry(of.clone()).or_default()
    }

    /// Leave to try a claim, unless the workflow is at its limit: then the candidate is parked.
    pub fn pass(&mut self, of: &LimitedWorkflow, key: &GroupKey, candidate: Candidate, now: Timestamp) -> Option<Pass> {
        let workflow = self.workflow(of);
        let pass = Pass { releases: workflow.releases };
        let Some(hold) = &mut workflow.hold else { return Some(pass) };
        if hold.until <= now {
            hold.probe(now);
        }
        if hold.passes > 0 {
            hold.passes -= 1;
            return Some(pass);
        }
        self.park(of, key, candidate);
        None
    }

    /// Whether a run of the workflow would be parked now. Tells nothing of what the store would say.
    pub fn holds(&self, of: &LimitedWorkflow, now: Timestamp) -> bool {
        let hold = self.workflows.get(of).and_then(|workflow| workflow.hold.as_ref());
        hold.is_some_and(|hold| hold.until > now && hold.passes == 0)
    }

    /// Puts a run aside until its workflow has room.
    pub fn park(&mut self, of: &LimitedWorkflow, key: &GroupKey, candidate: Candidate) {
        let parked = self.workflow(of).parked.entry(key.clone()).or_default();
        if parked.runs.len() >= GROUP_READY_MAX {
            parked.overflowed = true;
            return;
        }
        parked.runs.insert(candidate.rank());
        self.parked.insert(candidate.run);
    }

    /// The store has refused the claim. Answers false if a claim has ended meanwhile: then it is worth another try at
    /// once, and the candidate is the caller's.
    pub fn refused(
        &mut self,
        of: &LimitedWorkflow,
        pass: Pass,
        held: ReachedCap,
        (key, candidate): (&GroupKey, Candidate),
        now: Timestamp,
    ) -> bool {
        let workflow = self.workflow(of);
        let (until, by_rate) = match held {
            ReachedCap::Concurrency { .. } if workflow.releases != pass.releases => return false,
            ReachedCap::Concurrency { .. } => (now + HOLD_PAUSE, false),
            ReachedCap::Rate { until, .. } => (until.max(now + Millis(1)), true),
        };
        workflow.hold = Some(Hold { until, since: now, by_rate, passes: 0, probing: false });
        self.park(of, key, candidate);
        true
    }

    /// A claim was taken. Where a pause had ended, there may be room for more.
    pub fn claimed(&mut self, of: &LimitedWorkflow) -> Freed {
        let Some(workflow) = self.workflows.get_mut(of) else { return Freed::new() };
        let Some(hold) = workflow.hold.as_mut().filter(|hold| hold.probing) else { return Freed::new() };
        if workflow.parked.is_empty() {
            workflow.hold = None;
            return Freed::new();
        }
        hold.passes += PROBES;
        self.free(of, PROBES)
    }

    /// A claim of the workflow has ended, so another one fits. The run's own version may be one without limits.
    pub fn released(&mut self, tenant: TenantId, name: &str) -> Freed {
        if self.workflows.is_empty() {
            return Freed::new();
        }
        let of = LimitedWorkflow { tenant, name: name.to_owned() };
        if let Some(workflow) = self.workflows.get_mut(&of) {
            workflow.releases += 1;
        }
        self.unused(&of)
    }

    /// Room that a run was given and could not use: another run may.
    pub fn unused(&mut self, of: &LimitedWorkflow) -> Freed {
        let hold = self.workflows.get_mut(of).and_then(|workflow| workflow.hold.as_mut());
        let Some(hold) = hold.filter(|hold| !hold.by_rate) else { return Freed::new() };
        hold.passes += 1;
        self.free(of, 1)
    }

    /// The run that room was meant for is gone: the next run gets it.
    pub fn another(&mut self, of: &LimitedWorkflow) -> Freed {
        let hold = self.workflows.get(of).and_then(|workflow| workflow.hold.as_ref());
        if hold.is_some_and(|hold| hold.passes > 0) { self.free(of, 1) } else { Freed::new() }
    }

    /// Others have committed something, perhaps the end of a claim.
    pub fn nudge(&mut self, now: Timestamp) {
        for hold in self.workflows.values_mut().filter_map(|workflow| workflow.hold.as_mut()) {
            if !hold.by_rate {
                hold.until = hold.until.min((hold.since + NUDGED_PAUSE).max(now));
            }
        }
    }

    /// Pauses that are over: one run of each group tries.
    pub fn lift(&mut self, now: Timestamp) -> Freed {
        let mut due = Vec::new();
        for (of, workflow) in &mut self.workflows {
            let Some(hold) = workflow.hold.as_mut().filter(|hold| hold.until <= now) else { continue };
            if workflow.parked.is_empty() {
                workflow.hold = None;
            } else {
                hold.probe(now);
                due.push(of.clone());
            }
        }
        due.iter().flat_map(|of| self.free(of, 1)).collect()
    }

    /// The earliest end of a pause.
    pub fn next_lift(&self) -> Option<Timestamp> {
        self.workflows.values().filter_map(|workflow| workflow.hold.as_ref()).map(|hold| hold.until).min()
    }

    /// Takes up to `count` runs of each group out of the workflow's parking.
    fn free(&mut self, of: &LimitedWorkflow, count: u32) -> Freed {
        let mut freed = Freed::new();
        let Some(workflow) = self.workflows.get_mut(of) else { return freed };
        for (key, parked) in &mut workflow.parked {
            for _ in 0..count {
                let Some(rank) = parked.runs.pop_first() else { break };
                let candidate = Candidate::of(of.tenant, rank);
                self.parked.remove(&candidate.run);
                freed.push((key.clone(), candidate));
            }
            if parked.overflowed && parked.runs.len() < GROUP_READY_MAX / 4 {
                parked.overflowed = false;
                self.starved = true;
            }
        }
        workflow.parked.retain(|_, parked| !parked.runs.is_empty());
        freed
    }

    pub fn is_parked(&self, run: RunId) -> bool {
        self.parked.contains(&run)
    }

    /// Whether runs of these queues wait for a claim of this run's workflow to end.
    pub fn wait_behind(&self, run: &Run, queues: &[String]) -> bool {
        let workflow = LimitedWorkflow::of(run).and_then(|of| self.workflows.get(&of));
        workflow.is_some_and(|workflow| {
            workflow.hold.as_ref().is_some_and(|hold| !hold.by_rate)
                && workflow.parked.keys().any(|key| queues.contains(&key.queue))
        })
    }

    /// The workflows that have runs of this group parked.
    pub fn parked_of(&self, key: &GroupKey) -> Vec<String> {
        let parking = self.workflows.iter().filter(|(_, workflow)| workflow.parked.contains_key(key));
        parking.map(|(of, _)| of.name.clone()).collect()
    }

    /// Whether the store should be read again.
    pub fn starved(&mut self) -> bool {
        std::mem::take(&mut self.starved)
    }

    pub fn len(&self) -> usize {
        self.parked.len()
    }
}

impl Hold {
    /// The pause is over: one may try, and its answer says how to go on.
    fn probe(&mut self, now: Timestamp) {
        *self = Self { until: now + HOLD_PAUSE, since: now, by_rate: false, passes: 1, probing: true };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const TENANT: TenantId = TenantId(Uuid::from_u128(1));
    const FULL: ReachedCap = ReachedCap::Concurrency { max: 1 };

    fn flow() -> LimitedWorkflow {
        LimitedWorkflow { tenant: TENANT, name: "flow".into() }
    }

    fn key(queue: &str) -> GroupKey {
        GroupKey { queue: queue.into(), tenant: TENANT, workspace: "w".into() }
    }

    fn candidate(number: u128) -> Candidate {
        Candidate { tenant: TENANT, run: RunId(Uuid::from_u128(number)), priority: 0, eligible_at: Timestamp(0) }
    }

    fn numbers(freed: &Freed) -> Vec<u128> {
        freed.iter().map(|(_, candidate)| candidate.run.0.as_u128()).collect()
    }

    /// Runs 1 to `count`: the first one's claim was refused at instant 0, the others found the workflow held.
    fn held(count: u128) -> WorkflowLimits {
        let mut holds = WorkflowLimits::default();
        let pass = holds.pass(&flow(), &key("q"), candidate(1), Timestamp(0)).unwrap();
        assert!(holds.refused(&flow(), pass, FULL, (&key("q"), candidate(1)), Timestamp(0)));
        for number in 2..=count {
            assert_eq!(holds.pass(&flow(), &key("q"), candidate(number), Timestamp(0)), None);
        }
        holds
    }

    #[test]
    fn a_release_lets_one_try_the_longest_waiting_first() {
        let mut holds = held(3);
        assert_eq!((holds.len(), holds.parked_of(&key("q"))), (3, vec!["flow".to_owned()]));
        let freed = holds.released(TENANT, "flow");
        assert_eq!(numbers(&freed), [1]);
        assert!(!holds.is_parked(freed[0].1.run) && holds.is_parked(candidate(2).run));
        assert!(holds.pass(&flow(), &key("q"), candidate(1), Timestamp(1)).is_some());
        assert_eq!(holds.pass(&flow(), &key("q"), candidate(4), Timestamp(1)), None, "the room was for one");
        // Room that could not be used goes to the next one.
        assert_eq!(numbers(&holds.unused(&flow())), [2]);
        // Its run is gone: the next one may use it.
        assert_eq!(numbers(&holds.another(&flow())), [3]);
        assert!(holds.pass(&flow(), &key("q"), candidate(3), Timestamp(1)).is_some());
        assert!(holds.another(&flow()).is_empty(), "no run is let through without room");
    }

    #[test]
    fn a_release_between_the_try_and_its_refusal_is_not_lost() {
        let mut holds = held(2);
        holds.released(TENANT, "flow");
        let pass = holds.pass(&flow(), &key("q"), candidate(1), Timestamp(1)).unwrap();
        holds.released(TENANT, "flow");
        assert!(!holds.refused(&flow(), pass, FULL, (&key("q"), candidate(1)), Timestamp(2)));
        let pass = holds.pass(&flow(), &key("q"), candidate(1), Timestamp(2)).unwrap();
        assert!(holds.refused(&flow(), pass, FULL, (&key("q"), candidate(1)), Timestamp(2)));
    }

    #[test]
    fn when_a_pause_ends_room_is_felt_for() {
        let mut holds = held(10);
        assert!(holds.lift(Timestamp(999)).is_empty());
        assert_eq!(holds.next_lift(), Some(Timestamp(1_000)));
        assert_eq!(numbers(&holds.lift(Timestamp(1_000))), [1]);
        assert!(holds.pass(&flow(), &key("q"), candidate(1), Timestamp(1_000)).is_some());
        assert_eq!(numbers(&holds.claimed(&flow())), [2, 3]);
        let pass = holds.pass(&flow(), &key("q"), candidate(2), Timestamp(1_000)).unwrap();
        assert!(holds.refused(&flow(), pass, FULL, (&key("q"), candidate(2)), Timestamp(1_000)));
        assert_eq!(holds.pass(&flow(), &key("q"), candidate(3), Timestamp(1_000)), None);
        assert_eq!(holds.len(), 9);
    }

    #[test]
    fn others_commits_shorten_a_pause_but_not_a_rate() {
        let mut holds = held(2);
        holds.nudge(Timestamp(50));
        assert_eq!(holds.next_lift(), Some(Timestamp(200)));
        holds.nudge(Timestamp(700));
        assert_eq!(holds.next_lift(), Some(Timestamp(200)));
        let mut rated = WorkflowLimits::default();
        let pass = rated.pass(&flow(), &key("q"), candidate(1), Timestamp(0)).unwrap();
        let rate = ReachedCap::Rate { max: 1, until: Timestamp(30_000) };
        assert!(rated.refused(&flow(), pass, rate, (&key("q"), candidate(1)), Timestamp(0)));
        rated.nudge(Timestamp(500));
        assert!(rated.released(TENANT, "flow").is_empty());
        assert_eq!(rated.next_lift(), Some(Timestamp(30_000)));
        assert_eq!(numbers(&rated.lift(Timestamp(30_000))), [1]);
    }

    #[test]
    fn every_queue_gets_a_try() {
        let mut holds = held(2);
        assert_eq!(holds.pass(&flow(), &key("other"), candidate(7), Timestamp(0)), None);
        assert_eq!(numbers(&holds.released(TENANT, "flow")), [7, 1]);
    }

    #[test]
    fn a_hold_with_nobody_left_ends() {
        let mut holds = held(1);
        assert!(holds.holds(&flow(), Timestamp(1)));
        holds.released(TENANT, "flow");
        assert!(!holds.holds(&flow(), Timestamp(1)), "there is room for the next run");
        assert!(holds.lift(Timestamp(1_000)).is_empty());
        assert!(!holds.holds(&flow(), Timestamp(1_000)) && holds.next_lift().is_none());
    }
}
