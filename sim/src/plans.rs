//! Workflows by chance: one to six steps of every kind that runs today. What a task does stands in its handler's
//! name, so that a simulated worker needs no definition.

use std::sync::Arc;

use interlock_core::json::Json;
use interlock_core::plan::retry::{Backoff, RetryPolicy};
use interlock_core::plan::rules::PlanRules;
use interlock_core::plan::{
    Accept, Gate, OnDenial, OnFailure, Plan, RollbackCondition, RollbackSpec, StepSpec, Undo, WaitFor, Work,
};
use interlock_core::state::EffectClass;
use interlock_core::tenant::caps::Caps;
use interlock_core::time::Millis;
use interlock_engine::EncodedPlan;
use interlock_engine::commands::subject::START_SIGNAL;
use serde_json::json;

use crate::dice::Dice;
use crate::swarm::Swarm;

/// The queue that only some workers serve.
pub const SIDE_QUEUE: &str = "side";
/// What waits wait for.
pub const SIGNAL: &str = "go";
/// What tasks ask for when they wait.
pub const REPLY: &str = "reply";
/// Where tasks send their questions.
pub const DESTINATION: &str = "desk";

/// Whether a condition holds for an input.
type Holds = fn(i64) -> bool;

/// Conditions over a run's inputs, and for which `n` they hold.
const CONDITIONS: [(&str, Holds); 3] =
    [("inputs.n % 2 == 0", |n| n % 2 == 0), ("${{ inputs.n % 3 != 0 }}", |n| n % 3 != 0), ("inputs.n > 0", |n| n > 0)];

/// Whether a condition holds for a run with this `n`; of those that are over inputs alone.
pub fn holds(condition: &str, n: i64) -> Option<bool> {
    CONDITIONS.iter().find(|(text, _)| *text == condition).map(|(_, holds)| holds(n))
}

/// How soon the steps of hasty worlds are given up.
const GIVEN_UP_AFTER: Millis = Millis(2_000);

/// What a task does, as its handler's name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behaviour {
    /// Asks a person and waits for the reply before it completes.
    pub asks: bool,
    pub class: EffectClass,
    /// How many effects it has, one after the other.
    pub effects: u32,
    /// Whether its input is rendered from a template.
    pub bound: bool,
}

impl Behaviour {
    fn name(self, verb: &str) -> String {
        let input = if self.bound { "bound" } else { "plain" };
        format!("{verb}.{}.{}.{input}", self.class, self.effects)
    }

    pub fn parse(handler: &str) -> Option<Self> {
        let mut parts = handler.split('.');
        let asks = parts.next()? == "ask";
        let class = parts.next()?.parse().ok()?;
        let effects = parts.next()?.parse().ok()?;
        Some(Self { asks, class, effects, bound: parts.next()? == "bound" })
    }
}

/// What was added to workflows later, thrown with dice of its own so that the rest stays as it was.
#[expect(clippy::struct_excessive_bools, reason = "each is a throw of its own")]
pub struct WorkflowVariant {
    /// What all runs of the workflow together may do.
    limits: Caps,
    /// Its waits wait for starts that became signals.
    hears_of_starts: bool,
    /// See [`Swarm`].
    hasty: bool,
    gated: bool,
    rush: bool,
    eager: bool,
    verifies: bool,
}

impl WorkflowVariant {
    pub fn new(dice: &Dice, swarm: &Swarm) -> Self {
        let limits = Caps {
            max_concurrency: dice.one_in(3).then(|| dice.between(1..=2) as u32),
            max_runs_per_min: dice.one_in(6).then(|| dice.between(4..=30) as u32),
        };
        let Swarm { hasty, gated, rush, eager, verifies, .. } = *swarm;
        Self { limits, hears_of_starts: dice.one_in(3), hasty, gated, rush, eager, verifies }
    }

    fn change(&self, step: &mut StepSpec) {
        if let Work::Wait { until: WaitFor::Signal { signal, key, .. }, .. } = &mut step.work
            && self.hears_of_starts
        {
            // Their key is the subject, which is what a wait without one takes.
            (*signal, *key) = (START_SIGNAL.into(), None);
        }
        if let Work::Task { handler, .. } = &mut step.work
            && let Some(behaviour) = Behaviour::parse(handler).filter(|_| self.hasty)
        {
            let class = EffectClass::Unsafe;
            *handler = Behaviour { asks: false, effects: 1, class, ..behaviour }.name("work");
            (step.effect, step.timeout) = (Some(class), Some(GIVEN_UP_AFTER));
        }
        if let Work::Task { handler, .. } = &step.work
            && let Some(behaviour) = Behaviour::parse(handler).filter(|_| self.verifies && step.rollback.is_none())
        {
            let undoing = Behaviour { asks: false, effects: 1, ..behaviour };
            step.rollback = Some(RollbackSpec {
                with: Some(json_of(&json!({ "undo": step.key }))),
                conditions: RollbackCondition::ALL.to_vec(),
                ..RollbackSpec::by(Undo::Handler(undoing.name("undo")))
            });
        }
        if let Some(rollback) = &mut step.rollback
            && let Some(undoing) = Behaviour::parse(rollback.by.handler()).filter(|_| self.verifies)
        {
            let looking = Behaviour { class: EffectClass::Read, effects: 0, ..undoing };
            rollback.verify = Some(Undo::Handler(looking.name("look")));
        }
    }

    /// A gate that is approved soon, and a step behind it whose first failure is for people.
    fn guarded_steps(&self) -> Option<[StepSpec; 2]> {
        let behaviour = Behaviour { asks: false, class: EffectClass::Read, effects: 1, bound: false };
        let gate = Gate {
            approvers: Vec::new(),
            quorum: 1,
            message: None,
            on_reject: OnDenial::Pause,
            on_expiry: OnDenial::Pause,
            escalate_after: None,
            expires_after: Some(Millis(40_000)),
        };
        let mut task = StepSpec::new("s1", Work::Task { handler: behaviour.name("work"), with: None });
        task.effect = Some(behaviour.class);
        task.retry = Some(RetryPolicy { max_attempts: 1, backoff: Backoff::Fixed { delay: Millis(0) } });
        task.on_failure = Some(OnFailure::Pause);
        self.gated.then(|| [StepSpec::new("s0", Work::Approval(gate)), task])
    }
}

/// A workflow version, checked and encoded.
pub fn workflow(dice: &Dice, number: u64, twist: &WorkflowVariant) -> Arc<EncodedPlan> {
    let mut steps: Vec<StepSpec> = (0..dice.between(1..=6)).map(|position| step(dice, position)).collect();
    if let Some(guarded) = twist.guarded_steps() {
        steps.splice(..steps.len().min(2), guarded);
    }
    for step in &mut steps {
        twist.change(step);
    }
    if twist.eager {
        let key = Some("${{ inputs.order }}".to_owned());
        let until = WaitFor::Signal { signal: SIGNAL.into(), key, accept: Accept::SinceRun };
        steps[0] = StepSpec::new("s0", Work::Wait { until, timeout: None });
    }
    let mut plan = Plan {
        workflow: format!("flow-{number}"),
        version: 1,
        on_failure: dice.weighted(&[
            (3, None),
            (2, Some(OnFailure::Pause)),
            (2, Some(OnFailure::Rollback)),
            (1, Some(OnFailure::Fail)),
        ]),
        timeout: dice.one_in(6).then(|| Millis(dice.between(8_000..=60_000))),
        writes_max: dice.one_in(12).then(|| dice.between(1..=4) as u32),
        rules: PlanRules {
            // What most of a rush is about is held back by its limit.
            concurrency_max: if twist.rush && number == 0 { Some(2) } else { twist.limits.max_concurrency },
            runs_per_min_max: twist.limits.max_runs_per_min,
            ..PlanRules::default()
        },
        steps,
    };
    if twist.verifies {
        plan.on_failure = Some(OnFailure::Rollback);
    }
    EncodedPlan::new(plan).unwrap_or_else(|error| panic!("the generator makes valid plans: {error}"))
}

/// A workflow of tasks that behave alike, and that nothing limits.
pub fn alike(workflow: &str, behaviour: Behaviour, tasks: usize) -> Arc<EncodedPlan> {
    let task = |position| {
        let mut spec = StepSpec::task(format!("s{position}"), behaviour.name("work"));
        spec.effect = Some(behaviour.class);
        spec.retry = Some(RetryPolicy { max_attempts: 4, backoff: Backoff::Fixed { delay: Millis(0) } });
        spec
    };
    let plan = Plan::new(workflow, (0..tasks).map(task).collect());
    EncodedPlan::new(plan).unwrap_or_else(|error| panic!("`{workflow}` is a valid plan: {error}"))
}

fn step(dice: &Dice, position: u64) -> StepSpec {
    let key = format!("s{position}");
    let kind = dice.weighted(&[(12, 'k'), (2, 't'), (2, 'w'), (2, 'f'), (1, 'u'), (2, 'a')]);
    let mut spec = match kind {
        't' => StepSpec::new(key, Work::Transform { value: transform() }),
        'w' => StepSpec::new(key, signal_wait(dice)),
        'f' => StepSpec::new(key, timer(WaitFor::For(Millis(dice.between(50..=4_000))))),
        'u' => StepSpec::new(key, timer(WaitFor::Until("${{ inputs.until }}".into()))),
        'a' => StepSpec::new(key, Work::Approval(gate(dice))),
        _ => task(dice, key),
    };
    if dice.one_in(6) {
        spec.condition = Some(dice.pick(&CONDITIONS).0.into());
    }
    if position > 0 && dice.one_in(20) {
        // Holds where the first step is a task that ran; cannot be evaluated where it is not.
        spec.condition = Some("steps.s0.output.attempt > 0".into());
    }
    spec
}

fn transform() -> Json {
    json_of(&json!({ "sum": "${{ inputs.n + 1 }}", "order": "for ${{ inputs.order }}" }))
}

fn timer(until: WaitFor) -> Work {
    Work::Wait { until, timeout: None }
}

fn signal_wait(dice: &Dice) -> Work {
    let accept = *dice.pick(&[Accept::SinceRun, Accept::SinceRun, Accept::SinceStep, Accept::Any]);
    let key = (!dice.one_in(3)).then(|| "${{ inputs.order }}".to_owned());
    let timeout = dice.one_in(2).then(|| Millis(dice.between(500..=15_000)));
    Work::Wait { until: WaitFor::Signal { signal: SIGNAL.into(), key, accept }, timeout }
}

fn gate(dice: &Dice) -> Gate {
    let rule = || *dice.pick(&[OnDenial::Fail, OnDenial::Pause]);
    Gate {
        approvers: if dice.one_in(2) { vec!["ops".into()] } else { Vec::new() },
        quorum: dice.between(1..=2) as u32,
        message: None,
        on_reject: rule(),
        on_expiry: rule(),
        escalate_after: Some(Millis(dice.between(500..=8_000))),
        expires_after: Some(Millis(dice.between(2_000..=40_000))),
    }
}

fn task(dice: &Dice, key: String) -> StepSpec {
    let behaviour = Behaviour {
        asks: dice.one_in(5),
        class: *dice.pick(EffectClass::ALL),
        effects: dice.between(0..=2) as u32,
        bound: dice.one_in(3),
    };
    let verb = if behaviour.asks { "ask" } else { "work" };
    let with = behaviour.bound.then(|| json_of(&json!({ "bound": "${{ inputs.order }}", "n": "${{ inputs.n }}" })));
    let undo = json_of(&json!({ "undo": key }));
    let mut spec = StepSpec::new(key, Work::Task { handler: behaviour.name(verb), with });
    // Whoever sends a message does more than read.
    let sends = behaviour.asks && behaviour.class == EffectClass::Read;
    spec.effect = Some(if sends { EffectClass::Idempotent } else { behaviour.class });
    spec.retry = (!dice.one_in(15)).then(|| retry(dice));
    spec.timeout = dice.one_in(3).then(|| Millis(dice.between(1_500..=9_000)));
    spec.on_failure = dice.weighted(&[(6, None), (1, Some(OnFailure::Pause)), (1, Some(OnFailure::Fail))]);
    spec.resumable = !dice.one_in(5);
    if dice.one_in(6) {
        spec.queue = SIDE_QUEUE.into();
    }
    if dice.one_in(3) {
        let undoing = Behaviour { asks: false, effects: 1, ..behaviour };
        let conditions = match dice.between(0..=3) {
            0 => vec![RollbackCondition::Failure],
            1 => vec![RollbackCondition::Manual],
            _ => RollbackCondition::ALL.to_vec(),
        };
        spec.rollback = Some(RollbackSpec {
            with: Some(undo),
            conditions,
            ..RollbackSpec::by(Undo::Handler(undoing.name("undo")))
        });
    }
    spec
}

fn retry(dice: &Dice) -> RetryPolicy {
    let backoff = if dice.one_in(2) {
        Backoff::Fixed { delay: Millis(dice.between(0..=1_500)) }
    } else {
        Backoff::Exponential { base: Millis(200), factor: 2.0, cap: Millis(3_000) }
    };
    RetryPolicy { max_attempts: dice.between(1..=4) as u32, backoff }
}

pub fn json_of(value: &serde_json::Value) -> Json {
    Json::trusted(value.to_string())
}
