//! Ready runs in memory, fairly: round robin over (queue, tenant, workspace), each turn as long as the tenant's weight.
//! This is a bounded hint, never the truth: what does not fit, or what another server made ready, is found by the
//! scan of the store. A claim is decided by the store's guard, so a wrong hint costs one refusal.
//!
//! Inside a group runs are kept apart by what their step asks of a worker ([`Need`]): a session takes from those that it
//! can do, in the order of all of them, and those that no session here can do delay no others.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Hash;
use interlock_core::plan::StepSpec;
use interlock_core::run::Run;
use interlock_core::time::{Millis, Timestamp};

use super::need::Need;
use super::session::SessionInfo;

/// How many ready runs a group keeps in memory by default; the rest waits in the store.
pub const GROUP_READY_MAX: usize = 4_096;
/// How long a tenant that hit its cap is left alone, unless one of its claims ends first.
const THROTTLE_PAUSE: Millis = Millis(200);

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKey {
    pub queue: String,
    pub tenant: TenantId,
    pub workspace: String,
}

impl GroupKey {
    /// Where the run's current step is taken from.
    pub fn of(run: &Run) -> Self {
        let queue = run.spec(run.position).queue.clone();
        Self { queue, tenant: run.tenant, workspace: run.header.workspace.clone() }
    }
}

/// A run whose current step may be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    pub tenant: TenantId,
    pub run: RunId,
    pub priority: i32,
    pub eligible_at: Timestamp,
}

/// Highest priority first, then the longest wait.
pub type Rank = (std::cmp::Reverse<i32>, Timestamp, RunId);

impl Candidate {
    pub const fn rank(&self) -> Rank {
        (std::cmp::Reverse(self.priority), self.eligible_at, self.run)
    }

    pub const fn of(tenant: TenantId, (priority, eligible_at, run): Rank) -> Self {
        Self { tenant, run, priority: priority.0, eligible_at }
    }
}

/// Runs of a group whose steps ask the same of a worker.
#[derive(Default)]
struct WaitingRuns {
    runs: BTreeSet<Rank>,
    /// The store may hold more than fits here.
    overflowed: bool,
    /// No session of this server can do it, as the last scan saw.
    unserved: bool,
    /// Workflows of runs that were found to be unserved: the scan looks for others behind them.
    workflows: BTreeSet<String>,
}

#[derive(Default)]
struct Group {
    waiting: BTreeMap<Need, WaitingRuns>,
    /// The store holds more than the last scan read.
    more_in_store: bool,
    /// Set while the tenant is at its cap.
    throttled_until: Option<Timestamp>,
    /// Claims that ended since the cap was hit: that many may be tried again at once.
    credits: u32,
    weight: u32,
    /// The number of its last turn.
    turn: u64,
}

pub struct ReadyRuns {
    /// How many runs a group keeps; the rest waits in the store.
    group_max: usize,
    groups: HashMap<GroupKey, Group>,
    /// Whose turn it is, per queue: the one whose last turn is longest ago comes first. Where a session takes from
    /// several queues they are one ring.
    turns: HashMap<String, VecDeque<GroupKey>>,
    /// Numbers the turns.
    turn: u64,
    weights: HashMap<TenantId, u32>,
    pressure: Pressure,
}

/// How often the bounds of dispatch have mattered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pressure {
    /// A poll kept places from tenants that are over their share.
    pub places_kept: u64,
    /// A ready run did not fit into its group's memory.
    pub overflows: u64,
}

impl Default for ReadyRuns {
    fn default() -> Self {
        Self::new(GROUP_READY_MAX)
    }
}

impl ReadyRuns {
    pub fn new(group_max: usize) -> Self {
        Self {
            group_max,
            groups: HashMap::new(),
            turns: HashMap::new(),
            turn: 0,
            weights: HashMap::new(),
            pressure: Pressure::default(),
        }
    }

    pub const fn pressure(&self) -> Pressure {
        self.pressure
    }

    pub fn set_weight(&mut self, tenant: TenantId, weight: u32) {
        self.weights.insert(tenant, weight.max(1));
        for (key, group) in &mut self.groups {
            if key.tenant == tenant {
                group.weight = weight.max(1);
            }
        }
    }

    /// Answers whether it was new. A run of which only the scan knows may be here already, with its need.
    pub fn push(&mut self, key: GroupKey, candidate: Candidate, need: Need) -> bool {
        let weight = self.weight(key.tenant);
        let group = self.groups.entry(key.clone()).or_insert_with(|| {
            self.turns.entry(key.queue.clone()).or_default().push_back(key);
            Group { weight, turn: self.turn, ..Group::default() }
        });
        let rank = candidate.rank();
        if need == Need::Unknown && group.waiting.values().any(|waiting| waiting.runs.contains(&rank)) {
            return false;
        }
        if need != Need::Unknown
            && let Some(unknown) = group.waiting.get_mut(&Need::Unknown)
        {
            // The scan came first; now it is known what the run needs.
            unknown.runs.remove(&rank);
        }
        let waiting = group.waiting.entry(need).or_default();
        if waiting.runs.len() >= self.group_max {
            waiting.overflowed = true;
            self.pressure.overflows += 1;
            return false;
        }
        waiting.runs.insert(rank)
    }

    /// The store holds more of this group than was read.
    pub fn more_in_store(&mut self, key: &GroupKey) {
        if let Some(group) = self.groups.get_mut(key) {
            group.more_in_store = true;
        }
    }

    /// A session was given a run that it cannot do: from now on it is known what the run needs.
    pub fn mismatched(&mut self, key: GroupKey, candidate: Candidate, need: Need, workflow: &str) {
        self.push(key.clone(), candidate, need.clone());
        let waiting = self.groups.get_mut(&key).and_then(|group| group.waiting.get_mut(&need));
        if let Some(waiting) = waiting.filter(|waiting| !waiting.workflows.contains(workflow)) {
            waiting.workflows.insert(workflow.to_owned());
        }
    }

    /// What the scan has seen: which needs no session here can meet, and of those, which runs are still there. `found`
    /// has the runs of the groups that were read to their end.
    pub fn compare(&mut self, found: &HashMap<GroupKey, HashSet<RunId>>, is_served: impl Fn(&GroupKey, &Need) -> bool) {
        for (key, group) in &mut self.groups {
            for (need, waiting) in &mut group.waiting {
                waiting.unserved = *need != Need::Unknown && !is_served(key, need);
                // Other servers claim these, and no poll comes here to see that they are gone.
                if waiting.unserved && !group.more_in_store {
                    waiting.runs.retain(|rank| found.get(key).is_some_and(|runs| runs.contains(&rank.2)));
                }
            }
            group.waiting.retain(|_, waiting| !waiting.runs.is_empty() || waiting.overflowed);
        }
    }

    /// Tenants of which runs wait for a worker that the policy permits to take them.
    pub fn denying_tenants(&self) -> HashSet<TenantId> {
        let denies = |group: &Group| group.waiting.keys().any(|need| matches!(need, Need::Permitted { .. }));
        self.groups.iter().filter(|(_, group)| denies(group)).map(|(key, _)| key.tenant).collect()
    }

    /// The tenant has these rules now: whom others kept from a run may come for it again. Answers whether there are such runs.
    pub fn judge_anew(&mut self, tenant: TenantId, in_force: Hash) -> bool {
        let mut freed = Vec::new();
        for (key, group) in self.groups.iter_mut().filter(|(key, _)| key.tenant == tenant) {
            group.waiting.retain(|need, waiting| {
                let is_over = matches!(need, Need::Permitted { bundle, .. } if *bundle != in_force);
                if is_over {
                    freed.extend(waiting.runs.iter().map(|rank| (key.clone(), *rank)));
                }
                !is_over
            });
        }
        let any = !freed.is_empty();
        for (key, rank) in freed {
            self.push(key, Candidate::of(tenant, rank), Need::Unknown);
        }
        any
    }

    /// The workflows of this group's runs that no session here can do.
    pub fn unserved_of(&self, key: &GroupKey) -> Vec<String> {
        let waiting = self.groups.get(key).into_iter().flat_map(|group| group.waiting.values());
        waiting.filter(|waiting| waiting.unserved).flat_map(|waiting| waiting.workflows.iter().cloned()).collect()
    }

    pub fn weight(&self, tenant: TenantId) -> u32 {
        self.weights.get(&tenant).copied().unwrap_or(1)
    }

    /// Takes candidates for a session that has this much room. Tenants that are over their share leave what it keeps.
    pub fn take(
        &mut self,
        info: &SessionInfo,
        room: usize,
        now: Timestamp,
        mut is_over: impl FnMut(TenantId) -> bool,
    ) -> Vec<Candidate> {
        let (queues, unkept) = (&info.queues, room.saturating_sub(info.kept()));
        let mut taken = Vec::new();
        let mut keeps = false;
        // How many turns in a row brought nothing, by queue.
        let mut idle: HashMap<&str, usize> = queues.iter().map(|queue| (queue.as_str(), 0)).collect();
        while taken.len() < room {
            let Some(queue) = self.next_queue(&idle) else { break };
            let turns = self.turns.get_mut(queue).expect("it has a turn to give");
            let Some(key) = turns.pop_front() else { break };
            let group = self.groups.get_mut(&key).expect("every turn has its group");
            self.turn += 1;
            group.turn = self.turn;
            let before = taken.len();
            if info.tenant.is_none_or(|tenant| tenant == key.tenant) {
                let max = if unkept < room && is_over(key.tenant) { unkept } else { room };
                group.take(&key, info, (max, now), &mut taken);
                keeps |= max < room && taken.len() >= max && group.open(now) && group.first_for(info).is_some();
            }
            if let Some(turns) = idle.get_mut(queue) {
                *turns = if taken.len() > before { 0 } else { *turns + 1 };
            }
            if group.is_spent() && group.throttled_until.is_none() {
                self.groups.remove(&key);
            } else {
                turns.push_back(key);
            }
        }
        self.pressure.places_kept += u64::from(keeps);
        taken
    }

    /// Of those that may still have something, the queue whose next group has waited longest for its turn.
    fn next_queue<'a>(&self, idle: &HashMap<&'a str, usize>) -> Option<&'a str> {
        let left = idle.iter().filter_map(|(queue, idle)| {
            let turns = self.turns.get(*queue).filter(|turns| *idle < turns.len())?;
            let group = self.groups.get(turns.front()?)?;
            Some((group.turn, *queue))
        });
        left.min().map(|(_, queue)| queue)
    }

    /// How many of this queue come before a run that this tenant is about to add; none where runs of its own wait,
    /// which it must not overtake. A tenant that has none waiting gets its turn once every other tenant has had its
    /// own, of those that count.
    pub fn ahead_of(
        &self,
        spec: &StepSpec,
        tenant: TenantId,
        now: Timestamp,
        mut counts: impl FnMut(TenantId) -> bool,
    ) -> Option<usize> {
        let mut ahead = 0;
        for key in self.turns.get(&spec.queue).into_iter().flatten() {
            let group = self.groups.get(key).filter(|group| group.len() > 0 && group.open(now));
            let Some(group) = group else { continue };
            if key.tenant == tenant {
                if group.has_before(spec) {
                    return None;
                }
                continue;
            }
            if counts(key.tenant) {
                ahead += group.served_len().min(group.weight as usize);
            }
        }
        Some(ahead)
    }

    /// Whether a session that lets go of a run of this tenant could take another one instead. At its cap the tenant can
    /// take one exactly then.
    pub fn wait_behind(&self, tenant: TenantId, info: &SessionInfo, now: Timestamp) -> bool {
        info.queues.iter().filter_map(|queue| self.turns.get(queue)).flatten().any(|key| {
            let group = self.groups.get(key).filter(|group| group.first_for(info).is_some());
            group.is_some_and(|group| key.tenant == tenant || group.open(now))
        })
    }

    /// The tenant is at its cap: leave it alone for a while.
    pub fn throttle(&mut self, tenant: TenantId, now: Timestamp) {
        for (key, group) in &mut self.groups {
            if key.tenant == tenant {
                group.throttled_until = Some(now + THROTTLE_PAUSE);
            }
        }
    }

    /// A claim of the tenant has ended, so another one fits. Answers whether a run was waiting for that.
    pub fn released(&mut self, tenant: TenantId) -> bool {
        let mut waited = false;
        for (key, group) in &mut self.groups {
            if key.tenant == tenant && group.throttled_until.is_some() {
                group.credits += 1;
                waited |= group.len() > 0;
            }
        }
        waited
    }

    /// Ends the throttles that are over, also where no poll comes to see it: an end that has passed must not be waited
    /// for again.
    pub fn lift_throttles(&mut self, now: Timestamp) {
        for group in self.groups.values_mut() {
            group.lift_throttle(now);
        }
    }

    /// The earliest end of a throttle: its group is looked at again then.
    pub fn next_unthrottled(&self) -> Option<Timestamp> {
        self.groups.values().filter_map(|group| group.throttled_until).min()
    }

    /// Groups whose memory is used up while the store holds more.
    pub fn starved(&mut self) -> bool {
        let mut starved = false;
        for group in self.groups.values_mut() {
            let few = group.len() < self.group_max / 4;
            if group.more_in_store && few {
                group.more_in_store = false;
                starved = true;
            }
            for waiting in group.waiting.values_mut().filter(|waiting| waiting.overflowed) {
                if waiting.runs.len() < self.group_max / 4 {
                    waiting.overflowed = false;
                    starved = true;
                }
            }
        }
        starved
    }

    pub fn len(&self) -> usize {
        self.groups.values().map(Group::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.groups.values().all(|group| group.len() == 0)
    }
}

impl Group {
    fn open(&self, now: Timestamp) -> bool {
        self.credits > 0 || self.throttled_until.is_none_or(|until| until <= now)
    }

    fn lift_throttle(&mut self, now: Timestamp) {
        if self.throttled_until.is_some_and(|until| until <= now) {
            self.throttled_until = None;
            self.credits = 0;
        }
    }

    fn len(&self) -> usize {
        self.waiting.values().map(|waiting| waiting.runs.len()).sum()
    }

    /// Without those that no session here can do.
    fn served_len(&self) -> usize {
        self.waiting.values().filter(|waiting| !waiting.unserved).map(|waiting| waiting.runs.len()).sum()
    }

    /// Nothing is here, and nothing more is in the store.
    fn is_spent(&self) -> bool {
        !self.more_in_store && self.waiting.values().all(|waiting| waiting.runs.is_empty() && !waiting.overflowed)
    }

    /// Whether a run waits that would be overtaken by one of this step.
    fn has_before(&self, spec: &StepSpec) -> bool {
        self.waiting.iter().any(|(need, waiting)| need.may_be(spec) && !waiting.runs.is_empty())
    }

    /// The first run that the session can do, and what it needs.
    fn first_for(&self, info: &SessionInfo) -> Option<(Rank, &Need)> {
        let can_do = self.waiting.iter().filter(|(need, _)| need.is_met_by(info));
        can_do.filter_map(|(need, waiting)| Some((*waiting.runs.first()?, need))).min_by_key(|(rank, _)| *rank)
    }

    fn pop_first_for(&mut self, info: &SessionInfo) -> Option<Rank> {
        // Most groups need one thing only.
        if self.waiting.len() == 1 {
            let (need, waiting) = self.waiting.iter_mut().next()?;
            return if need.is_met_by(info) { waiting.runs.pop_first() } else { None };
        }
        let (rank, need) = self.first_for(info)?;
        let need = need.clone();
        let waiting = self.waiting.get_mut(&need)?;
        waiting.runs.remove(&rank);
        if waiting.runs.is_empty() && !waiting.overflowed {
            self.waiting.remove(&need);
        }
        Some(rank)
    }

    fn take(&mut self, key: &GroupKey, info: &SessionInfo, (max, now): (usize, Timestamp), taken: &mut Vec<Candidate>) {
        self.lift_throttle(now);
        for _ in 0..self.weight {
            if taken.len() >= max || !self.open(now) {
                return;
            }
            let Some(rank) = self.pop_first_for(info) else { return };
            if self.throttled_until.is_some() {
                self.credits -= 1;
            }
            taken.push(Candidate::of(key.tenant, rank));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use interlock_core::ids::SessionId;
    use uuid::Uuid;

    use super::*;

    fn key(tenant: u128) -> GroupKey {
        GroupKey { queue: "q".into(), tenant: TenantId(Uuid::from_u128(tenant)), workspace: "w".into() }
    }

    fn push(ready: &mut ReadyRuns, tenant: u128, run: u128, priority: i32) {
        push_to(ready, "q", tenant, run, priority);
    }

    fn push_to(ready: &mut ReadyRuns, queue: &str, tenant: u128, run: u128, priority: i32) {
        let candidate = Candidate {
            tenant: TenantId(Uuid::from_u128(tenant)),
            run: RunId(Uuid::from_u128(run)),
            priority,
            eligible_at: Timestamp(0),
        };
        ready.push(GroupKey { queue: queue.into(), ..key(tenant) }, candidate, Need::Task("work".into()));
    }

    fn session(tenant: Option<TenantId>, queues: &[&str], slots: u32) -> Arc<SessionInfo> {
        SessionInfo::new(tenant, queues.iter().map(|queue| (*queue).to_owned()).collect(), slots, false)
    }

    fn step(task: &str) -> StepSpec {
        StepSpec { queue: "q".into(), ..StepSpec::task("a", task) }
    }

    fn candidate(run: u128) -> Candidate {
        let (tenant, run) = (TenantId(Uuid::from_u128(1)), RunId(Uuid::from_u128(run)));
        Candidate { tenant, run, priority: 0, eligible_at: Timestamp(0) }
    }

    /// What a session that has this task takes.
    fn take_with(ready: &mut ReadyRuns, task: &str, max: usize) -> Vec<u128> {
        let info = SessionInfo::with_tasks(&["q"], &[task]);
        ready.take(&info, max, Timestamp(0), |_| false).iter().map(|c| c.run.0.as_u128()).collect()
    }

    fn take(ready: &mut ReadyRuns, max: usize) -> Vec<u128> {
        ready.take(&session(None, &["q"], 1), max, Timestamp(0), |_| false).iter().map(|c| c.run.0.as_u128()).collect()
    }

    #[test]
    fn a_denied_session_is_given_the_run_again_under_other_rules_only() {
        let mut ready = ReadyRuns::default();
        let (key, tenant) = (key(1), TenantId(Uuid::from_u128(1)));
        let bundle = Hash([1; 32]);
        let denied = BTreeSet::from([SessionId(Uuid::nil())]);
        let need = Need::Permitted { bundle, denied, need: Box::new(Need::Task("pay".into())) };
        ready.mismatched(key, candidate(5), need, "w");
        assert_eq!(take_with(&mut ready, "pay", 1), [] as [u128; 0]);
        assert_eq!(ready.denying_tenants(), HashSet::from([tenant]));
        assert!(!ready.judge_anew(tenant, bundle), "these are the rules that have denied it");
        assert!(ready.judge_anew(tenant, Hash([2; 32])));
        assert_eq!(take_with(&mut ready, "pay", 1), [5]);
        assert!(ready.denying_tenants().is_empty());
    }

    #[test]
    fn tenants_take_turns_whatever_their_load() {
        let mut ready = ReadyRuns::default();
        for run in 0..100 {
            push(&mut ready, 1, 1000 + run, 0);
        }
        push(&mut ready, 2, 1, 0);
        push(&mut ready, 2, 2, 0);
        assert_eq!(take(&mut ready, 4), [1000, 1, 1001, 2]);
    }

    #[test]
    fn weight_lengthens_a_turn_and_priority_orders_a_group() {
        let mut ready = ReadyRuns::default();
        ready.set_weight(TenantId(Uuid::from_u128(1)), 3);
        for run in 0..10 {
            push(&mut ready, 1, 10 + run, 0);
            push(&mut ready, 2, 30 + run, i32::try_from(run).unwrap());
        }
        assert_eq!(take(&mut ready, 8), [10, 11, 12, 39, 13, 14, 15, 38]);
    }

    #[test]
    fn a_throttled_tenant_waits_for_its_releases() {
        let mut ready = ReadyRuns::default();
        for run in 0..10 {
            push(&mut ready, 1, run, 0);
        }
        ready.throttle(TenantId(Uuid::from_u128(1)), Timestamp(0));
        assert!(take(&mut ready, 5).is_empty());
        assert!(ready.released(TenantId(Uuid::from_u128(1))));
        assert_eq!(take(&mut ready, 5), [0]);
        let later = ready.take(&session(None, &["q"], 1), 2, Timestamp(1_000), |_| false);
        assert_eq!(later.len(), 2);
    }

    #[test]
    fn a_throttle_ends_though_nobody_polls() {
        let mut ready = ReadyRuns::default();
        push(&mut ready, 1, 1, 0);
        ready.throttle(TenantId(Uuid::from_u128(1)), Timestamp(0));
        let end = ready.next_unthrottled().unwrap();
        ready.lift_throttles(Timestamp(end.0 - 1));
        assert_eq!(ready.next_unthrottled(), Some(end));
        ready.lift_throttles(end);
        assert_eq!(ready.next_unthrottled(), None, "nothing is left to wait for");
        assert_eq!(take(&mut ready, 5), [1]);
    }

    #[test]
    fn a_worker_of_one_tenant_sees_no_other() {
        let mut ready = ReadyRuns::default();
        push(&mut ready, 1, 1, 0);
        push(&mut ready, 2, 2, 0);
        let taken = ready.take(&session(Some(TenantId(Uuid::from_u128(2))), &["q"], 1), 5, Timestamp(0), |_| false);
        assert_eq!(taken.len(), 1);
        assert_eq!(take(&mut ready, 5), [1]);
    }

    #[test]
    fn queues_take_turns_in_whichever_order_a_worker_names_them() {
        let mut ready = ReadyRuns::default();
        for run in 0..300 {
            push_to(&mut ready, "q1", 1, 1000 + run, 0);
        }
        push_to(&mut ready, "q2", 1, 1, 0);
        push_to(&mut ready, "q2", 2, 2, 0);
        let both = session(None, &["q1", "q2"], 1);
        let mut taken = |max| {
            let taken = ready.take(&both, max, Timestamp(0), |_| false);
            taken.iter().map(|candidate| candidate.run.0.as_u128()).collect::<Vec<_>>()
        };
        // Also one at a time.
        let one_by_one: Vec<_> = (0..3).flat_map(|_| taken(1)).collect();
        assert_eq!(one_by_one, [1000, 1, 2]);
        assert_eq!(taken(300).len(), 299);
    }

    #[test]
    fn at_its_cap_a_tenant_waits_for_its_own_claims_only() {
        let (one, two) = (TenantId(Uuid::from_u128(1)), TenantId(Uuid::from_u128(2)));
        let mut ready = ReadyRuns::default();
        push(&mut ready, 1, 1, 0);
        ready.throttle(one, Timestamp(0));
        assert_eq!(ready.ahead_of(&step("work"), two, Timestamp(1), |_| true), Some(0));
        assert!(
            ready.wait_behind(one, &session(None, &["q"], 1), Timestamp(1)),
            "its next claim waits for the end of this one"
        );
        assert!(
            !ready.wait_behind(two, &session(None, &["q"], 1), Timestamp(1)),
            "the end of another tenant's claim does not help"
        );
        assert!(!ready.wait_behind(one, &session(None, &["other"], 1), Timestamp(1)));
    }

    #[test]
    fn a_tenant_with_none_waiting_comes_after_one_turn_of_everybody_else() {
        let mut ready = ReadyRuns::default();
        ready.set_weight(TenantId(Uuid::from_u128(2)), 3);
        for run in 0..10 {
            push(&mut ready, 1, 10 + run, 0);
            push(&mut ready, 2, 30 + run, 0);
        }
        let tenant = |number| TenantId(Uuid::from_u128(number));
        let ahead_of =
            |ready: &ReadyRuns, number| ready.ahead_of(&step("work"), tenant(number), Timestamp(0), |_| true);
        assert_eq!(ahead_of(&ready, 3), Some(4));
        assert_eq!(ahead_of(&ready, 1), None, "it would overtake its own");
        assert_eq!(ahead_of(&ReadyRuns::default(), 1), Some(0));
        let but_one = ready.ahead_of(&step("work"), tenant(3), Timestamp(0), |other| other != tenant(2));
        assert_eq!(but_one, Some(1));
    }

    #[test]
    fn the_last_places_are_for_those_who_may_have_them() {
        let (much, little) = (TenantId(Uuid::from_u128(1)), TenantId(Uuid::from_u128(2)));
        let mut ready = ReadyRuns::default();
        for run in 0..10 {
            push(&mut ready, 1, 10 + run, 0);
        }
        let take = |ready: &mut ReadyRuns| ready.take(&session(None, &["q"], 8), 4, Timestamp(0), |t| t == much);
        assert_eq!(take(&mut ready).len(), 3);
        push(&mut ready, 2, 1, 0);
        let tenants: Vec<_> = take(&mut ready).iter().map(|candidate| candidate.tenant).collect();
        assert_eq!(tenants, [much, little, much]);
    }

    #[test]
    fn a_session_takes_what_it_can_do_in_the_order_of_all() {
        let mut ready = ReadyRuns::default();
        for (run, task) in [(1, "a"), (2, "b"), (3, "a"), (4, "b")] {
            ready.push(key(1), candidate(run), Need::Task(task.into()));
        }
        ready.push(key(1), candidate(5), Need::Unknown);
        assert_eq!(take_with(&mut ready, "b", 2), [2, 4]);
        assert_eq!(take_with(&mut ready, "b", 9), [5], "what it needs is not known yet");
        ready.mismatched(key(1), candidate(5), Need::of(&step("a")), "flow");
        assert!(take_with(&mut ready, "b", 9).is_empty());
        assert!(!ready.push(key(1), candidate(5), Need::Unknown), "the scan finds it again, and it is known");
        ready.push(key(1), candidate(6), Need::Unknown);
        ready.push(key(1), candidate(6), Need::Task("a".into()));
        assert_eq!(ready.len(), 4, "a run stands here once");
        assert_eq!(take(&mut ready, 9), [1, 3, 5, 6], "a session that did not say takes all");
    }

    #[test]
    fn what_nobody_here_can_do_stands_in_nobodys_way_and_leaves_with_the_scan() {
        let mut ready = ReadyRuns::default();
        ready.mismatched(key(1), candidate(1), Need::of(&step("absent")), "flow");
        ready.mismatched(key(1), candidate(2), Need::of(&step("absent")), "flow");
        let is_served = |_: &GroupKey, need: &Need| *need != Need::Task("absent".into());
        let found = |runs: &[u128]| {
            HashMap::from([(key(1), runs.iter().map(|run| RunId(Uuid::from_u128(*run))).collect::<HashSet<_>>())])
        };
        ready.compare(&found(&[1, 2]), is_served);
        let tenant = |number| TenantId(Uuid::from_u128(number));
        let ahead = |ready: &ReadyRuns, number| ready.ahead_of(&step("work"), tenant(number), Timestamp(0), |_| true);
        assert_eq!((ahead(&ready, 1), ahead(&ready, 2)), (Some(0), Some(0)));
        assert_eq!((ready.len(), ready.unserved_of(&key(1))), (2, vec!["flow".to_owned()]));
        ready.compare(&found(&[2]), is_served);
        assert_eq!(ready.len(), 1, "another server has taken the other one");
        ready.compare(&HashMap::new(), is_served);
        assert!(ready.is_empty());
    }
}
