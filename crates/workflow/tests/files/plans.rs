//! A definition as a plan.

use interlock_core::plan::retry::Backoff;
use interlock_core::plan::rules::{StepPhase, ValidationMode};
use interlock_core::plan::{OnDenial, OnFailure, Undo, WaitFor, Work};
use interlock_core::time::Millis;
use interlock_workflow::diagnostic::{Severity, Style};
use interlock_workflow::{Checked, parse};

pub fn checked(text: &str) -> Checked {
    parse("test.yaml", text).unwrap_or_else(|found| panic!("{}", found.render(Style::default())))
}

/// A runbook that uses every kind of field. Its last step has no rollback, and is not told to: its connector may
/// know an inverse.
#[test]
fn a_whole_runbook_is_read() {
    let file = checked(include_str!("restart-primary-db.yaml"));
    let plan = file.plan(3);
    assert_eq!((plan.workflow.as_str(), plan.version), ("restart-primary-db", 3));
    assert_eq!(plan.timeout, Some(Millis::from_hours(2)));
    assert_eq!(plan.on_failure, Some(OnFailure::Rollback));
    assert_eq!(plan.writes_max, Some(10));
    assert_eq!(plan.rules.profile.as_deref(), Some("prod-critical"));
    assert_eq!((plan.rules.spend_max_micros, plan.rules.spend_unit.as_deref()), (Some(2_000_000), Some("USD")));
    assert_eq!((plan.rules.concurrency_max, plan.rules.runs_per_min_max), (Some(5), Some(30)));
    let approval = plan.rules.approval.as_ref().unwrap();
    assert_eq!(approval.mode, Some(ValidationMode::PerStep));
    assert_eq!(approval.on_reject, Some(OnDenial::Pause));
    assert_eq!(plan.steps[0].rules.phase, Some(StepPhase::Prechecks));
    let restart = &plan.steps[1];
    assert_eq!(restart.rules.credentials, ["cred-prod-db-primary"]);
    assert_eq!(restart.rules.requires.as_ref().unwrap().max_latency, Some(Millis(2000)));
    assert!(matches!(&restart.rollback.as_ref().unwrap().by, Undo::Argv(argv) if argv.len() == 3));
    assert!(matches!(&plan.steps[2].work, Work::Wait { until: WaitFor::Signal { signal, .. }, timeout: Some(_) }
        if signal == "monitor.recovered"));
    assert!(
        matches!(&plan.steps[3].work, Work::Connector { operation, .. } if operation == "servicenow.incident.update")
    );
    let on = file.definition.on.as_ref().unwrap();
    assert_eq!(on.schedule.0[0].timezone.as_ref().unwrap().value, "Europe/Berlin");
    assert_eq!(&*on.webhook.0[0].source.as_ref().unwrap().value, "servicenow");
    file.check_runnable().unwrap();
    let (remarks, valid) = file.remarks();
    assert!(valid && !remarks.iter().any(|remark| remark.severity == Severity::Error), "{remarks:?}");
    let (_, text) = plan.encode();
    assert_eq!(text.decode::<interlock_core::plan::Plan>().unwrap(), plan);
}

#[test]
fn a_command_says_what_its_worker_must_offer() {
    let file = checked(
        "name: near
profile: dev-flex
steps:
  - id: a
    run: [/bin/true]
    requires: { max_latency_ms: 50, labels: { rack: a, disk: ssd } }
",
    );
    file.check_runnable().unwrap();
    let requires = file.plan(1).steps[0].rules.requires.clone().unwrap();
    assert_eq!(requires.max_latency, Some(Millis(50)));
    let labels: Vec<String> = requires.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(labels, ["disk=ssd", "rack=a"]);
}

#[test]
fn shorthands_mean_what_they_say() {
    let plan = checked(
        "name: short
on: [webhook, github]
inputs: { n: integer }
approval: { approvers: [ops], quorum: 2, expires_after: 1h }
queue: heavy
steps:
  - { id: a, task: do.it, retry: 3 }
  - { id: b, task: do.it, retry: { backoff: 2s }, queue: light }
  - { id: c, task: do.it, retry: { max_attempts: 9, backoff: { exponential: { base: 1s, cap: 1m } } } }
  - { id: d, approval: 'Go on with ${{ inputs.n }}?' }
  - { id: e, wait: { for: 10m } }
  - { id: f, wait: { until: '${{ steps.a.output.at }}' } }
  - { id: g, transform: { sum: '${{ inputs.n + 1 }}' }, if: '${{ inputs.n > 1 }}' }
",
    )
    .plan(1);
    let retry = |index: usize| plan.steps[index].retry.clone().unwrap();
    assert_eq!(retry(0).max_attempts, 3);
    assert_eq!(retry(1).backoff, Backoff::Fixed { delay: Millis::from_secs(2) });
    assert_eq!(retry(1).max_attempts, 5, "the kind's default");
    assert!(matches!(retry(2).backoff, Backoff::Exponential { factor: 2.0, .. }));
    assert_eq!((plan.steps[0].queue.as_str(), plan.steps[1].queue.as_str()), ("heavy", "light"));
    assert_ne!(plan.steps[6].queue, "heavy", "transforms have a queue of their own");
    let Work::Approval(gate) = &plan.steps[3].work else { panic!() };
    assert_eq!((gate.quorum, gate.approvers.as_slice()), (2, ["ops".to_owned()].as_slice()));
    assert_eq!(gate.expires_after, Some(Millis::from_hours(1)));
    assert_eq!(gate.escalate_after, Some(Millis::from_mins(30)), "not production");
    assert_eq!(gate.on_reject, OnDenial::Fail);
    assert!(matches!(plan.steps[4].work, Work::Wait { until: WaitFor::For(Millis(600_000)), .. }));
    assert_eq!(plan.steps[6].condition.as_deref(), Some("inputs.n > 1"));
    plan.validate().unwrap();
}

#[test]
fn commands_pause_by_default_and_production_escalates_sooner() {
    let file = checked(
        "name: p
profile: prod-standard
steps:
  - { id: a, run: [/bin/true], effect: read }
  - { id: b, approval: { message: ok? } }
",
    );
    let plan = file.plan(1);
    let Work::Approval(gate) = &plan.steps[1].work else { panic!() };
    assert_eq!((gate.on_reject, gate.on_expiry), (OnDenial::Pause, OnDenial::Pause));
    assert_eq!(gate.escalate_after, Some(Millis::from_mins(10)));
}
