//! Plans to test with, built from steps of one line each.

use std::collections::BTreeMap;

use crate::json::Json;
use crate::plan::retry::{Backoff, RetryPolicy};
use crate::plan::rules::Workdir;
use crate::plan::{
    Accept, Gate, OnDenial, OnFailure, Plan, RollbackCondition, RollbackSpec, StepSpec, Undo, WaitFor, Work,
};
use crate::state::EffectClass;
use crate::time::Millis;

pub fn plan(steps: Vec<StepSpec>) -> Plan {
    Plan::new("demo", steps)
}

pub fn tasks(count: usize) -> Plan {
    plan((0..count).map(|at| task(&format!("t{at}"))).collect())
}

/// Tasks with conditions, of which a case says whether they hold.
pub fn conditional(count: usize) -> Plan {
    let mut plan = tasks(count);
    for step in &mut plan.steps {
        step.condition = Some("inputs.go".into());
    }
    plan
}

pub fn task(key: &str) -> StepSpec {
    StepSpec::task(key, "work")
}

/// A command whose run has one worker.
pub fn in_workdir(key: &str, rule: Workdir) -> StepSpec {
    let mut step = StepSpec::new(key, Work::Command { argv: vec!["/bin/true".into()], env: BTreeMap::new() });
    step.rules.workdir = Some(rule);
    step
}

/// Commands need a profile that confines them.
pub fn under_profile(steps: Vec<StepSpec>) -> Plan {
    let mut plan = plan(steps);
    plan.rules.profile = Some("dev-flex".into());
    plan
}

pub fn transform(key: &str) -> StepSpec {
    StepSpec::new(key, Work::Transform { value: Json::null() })
}

pub fn signal(key: &str, timeout: Option<Millis>) -> StepSpec {
    let until = WaitFor::Signal { signal: "go".into(), key: None, accept: Accept::SinceRun };
    StepSpec::new(key, Work::Wait { until, timeout })
}

pub fn timer(key: &str, span: Millis) -> StepSpec {
    let until = WaitFor::For(span);
    StepSpec::new(key, Work::Wait { until, timeout: None })
}

pub fn gate(key: &str, rule: OnDenial) -> StepSpec {
    StepSpec::new(
        key,
        Work::Approval(Gate {
            approvers: vec!["sre".into()],
            quorum: 1,
            message: None,
            on_reject: rule,
            on_expiry: rule,
            escalate_after: Some(Millis::from_mins(10)),
            expires_after: Some(Millis::from_hours(24)),
        }),
    )
}

/// Setters for what is rarely set on a step.
pub trait Tuned: Sized {
    fn undoable(self) -> Self;
    fn undoable_when(self, conditions: &[RollbackCondition]) -> Self;
    fn verified(self) -> Self;
    fn effect(self, effect: EffectClass) -> Self;
    fn attempts(self, max: u32) -> Self;
    fn timeout(self, timeout: Millis) -> Self;
    fn when_failed(self, rule: OnFailure) -> Self;
    fn queue(self, queue: &str) -> Self;
}

impl Tuned for StepSpec {
    fn undoable(self) -> Self {
        self.undoable_when(RollbackCondition::ALL)
    }

    fn undoable_when(mut self, conditions: &[RollbackCondition]) -> Self {
        let rollback = RollbackSpec::by(Undo::Handler("undo".into()));
        self.rollback = Some(RollbackSpec { conditions: conditions.to_vec(), ..rollback });
        self
    }

    fn verified(mut self) -> Self {
        self.rollback =
            self.rollback.map(|rollback| RollbackSpec { verify: Some(Undo::Handler("look".into())), ..rollback });
        self
    }

    fn effect(mut self, effect: EffectClass) -> Self {
        self.effect = Some(effect);
        self
    }

    fn attempts(mut self, max_attempts: u32) -> Self {
        self.retry = Some(RetryPolicy { max_attempts, backoff: Backoff::Fixed { delay: Millis(500) } });
        self
    }

    fn timeout(mut self, timeout: Millis) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn when_failed(mut self, rule: OnFailure) -> Self {
        self.on_failure = Some(rule);
        self
    }

    fn queue(mut self, queue: &str) -> Self {
        self.queue = queue.into();
        self
    }
}
