//! From a run to the input document, and from a decision to what the core makes of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use interlock_core::governance::action::Action;
use interlock_core::governance::judge::{Decision, Judge};
use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::HashHex;
use interlock_core::json::{Hash, Json};
use interlock_core::plan::rules::{ApprovalRules, ValidationMode};
use interlock_core::plan::{BlastRadius, OnDenial, Plan, StepSpec, Undo, Work};
use interlock_core::run::{Header, Lineage, Notes, Run, Step, Trigger};
use interlock_core::state::{Control, EffectClass, RunState};
use interlock_core::time::{Millis, Timestamp};
use interlock_policy::{Bundle, NO_MODE, PolicyInput, Undecided, core_decision};

fn run(plan: Plan) -> Run {
    let header = Header {
        workspace: "default".into(),
        plan_hash: HashHex(Hash::of(b"plan")),
        inputs: Json::trusted("{}"),
        subject: None,
        labels: BTreeMap::new(),
        trigger: Trigger { kind: "api".into(), reference: None },
        priority: 0,
        created_at: Timestamp(0),
        deadline_at: None,
        lineage: None,
        started_by: Some("ada".into()),
    };
    Run {
        tenant: TenantId::from_bytes([1; 16]),
        id: RunId::from_bytes([2; 16]),
        header: Arc::new(header),
        steps: plan.steps.iter().map(|_| Step::default()).collect(),
        plan: Arc::new(plan),
        added: Arc::new(Vec::new()),
        version: 1,
        control: Control::Active,
        state: RunState::Running,
        detail: None,
        reason: None,
        position: 0,
        notes: Notes::default(),
        finished_at: None,
        named_bundle: None,
    }
}

fn action(run: &Run, position: u32) -> Action {
    Action::of_step(run.spec(position), position, Json::trusted(r#"{"a":1}"#)).expect("the step is governed")
}

fn decided_on(run: &Run, position: u32, input: Json) -> Decision {
    let action = Action::of_step(run.spec(position), position, input).expect("the step is governed");
    Bundle::shipped().judge(&action, run).decision
}

fn judged(run: &Run, position: u32) -> Decision {
    Bundle::shipped().judge(&action(run, position), run).decision
}

fn gate(quorum: u32) -> StepSpec {
    let gate = serde_json::from_value(serde_json::json!({ "quorum": quorum })).unwrap();
    StepSpec::new("gate", Work::Approval(gate))
}

#[test]
fn a_first_workflow_stays_a_first_workflow() {
    let run = run(Plan::new("demo", vec![StepSpec::task("a", "t"), StepSpec::task("b", "t")]));
    let input = PolicyInput::of(&action(&run, 0), run.spec(0), &run);
    assert_eq!((input.workflow.mode.as_str(), input.step.last, input.fields.as_str()), (NO_MODE, false, r#"{"a":1}"#));
    assert_eq!(judged(&run, 0), Decision::Allow);
    assert!(!Bundle::shipped().depends_on_bound(&input));
}

/// Of what a step does that has said it only reads, no other step is the last one.
#[test]
fn final_only_asks_about_what_a_reading_step_changes() {
    let demo = |effect| {
        let mut plan = Plan::new("demo", vec![StepSpec { effect, ..StepSpec::task("a", "t") }]);
        plan.rules.approval = Some(ApprovalRules { mode: Some(ValidationMode::FinalOnly), ..ApprovalRules::default() });
        run(plan)
    };
    let announced = Action { blast_radius: BlastRadius::Low, ..action(&demo(None), 0) };
    let decision = |action: &Action| Bundle::shipped().judge(action, &demo(Some(EffectClass::Read))).decision;
    assert_eq!(decision(&Action { effect: EffectClass::Read, ..announced.clone() }), Decision::Allow);
    assert!(matches!(decision(&announced), Decision::NeedsApproval { .. }), "{:?}", decision(&announced));
}

#[test]
fn what_needs_two_keys_gets_a_gate_of_two() {
    let far = StepSpec { blast_radius: Some(BlastRadius::High), ..StepSpec::task("a", "t") };
    let Decision::NeedsApproval { reasons, terms } = judged(&run(Plan::new("demo", vec![far])), 0) else {
        panic!("nobody is asked")
    };
    assert!(reasons.iter().any(|reason| reason == "two_keys: its blast radius is high"), "{reasons:?}");
    assert_eq!((terms.gate.quorum, terms.gate.on_reject), (2, OnDenial::Fail));
    let gate = terms.gate;
    assert_eq!((gate.escalate_after, gate.expires_after), (Some(Millis::from_mins(30)), Some(Millis::from_hours(24))));
}

#[test]
fn a_gate_of_the_workflow_answers_for_the_next_step_that_is_asked_about() {
    let tasks = |gates: Vec<StepSpec>| {
        let mut steps = gates;
        steps.extend([StepSpec::task("a", "t"), StepSpec::task("b", "t")]);
        let mut plan = Plan::new("demo", steps);
        plan.rules.approval = Some(ApprovalRules { mode: Some(ValidationMode::PerStep), ..ApprovalRules::default() });
        run(plan)
    };
    let gated = tasks(vec![gate(1)]);
    assert_eq!(judged(&gated, 1), Decision::Allow);
    assert!(matches!(judged(&gated, 2), Decision::NeedsApproval { .. }), "the gate is used up");
    let mut perhaps = gate(1);
    perhaps.condition = Some("inputs.x".into());
    assert!(matches!(judged(&tasks(vec![perhaps]), 1), Decision::NeedsApproval { .. }), "it may be skipped");
}

#[test]
fn a_command_is_judged_by_its_vector() {
    let command = |argv: &[&str]| {
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        // What it comes to counts, not what stands in the workflow.
        let input = Json::trusted(serde_json::json!({ "argv": argv, "env": {} }).to_string());
        let work = Work::Command { argv: vec!["/usr/bin/uptime".to_owned()], env: BTreeMap::new() };
        decided_on(&run(Plan::new("demo", vec![StepSpec::new("c", work)])), 0, input)
    };
    assert!(matches!(command(&["/sbin/reboot"]), Decision::Deny { .. }));
    let Decision::NeedsApproval { terms, .. } = command(&["/opt/thing"]) else { panic!("nobody is asked") };
    assert_eq!((terms.gate.quorum, terms.gate.on_reject), (2, OnDenial::Pause), "the workflow has commands");
    assert_eq!(command(&["/usr/bin/uptime"]), Decision::Allow);
    assert!(matches!(command(&[]), Decision::NeedsApproval { .. }), "an unknown command");
}

#[test]
fn what_could_not_be_decided_is_refused() {
    let run = run(Plan::new("demo", vec![StepSpec::task("a", "t")]));
    let decision = core_decision(Err(Undecided::Undefined), &run.plan);
    assert!(matches!(decision, Decision::Undecided { .. }), "{decision:?}");
}

/// A run that asks before each step, at the rollback of its only one.
fn rolling_back() -> Run {
    let mut undone = StepSpec::task("a", "t");
    undone.effect = Some(EffectClass::Unsafe);
    let mut plan = Plan::new("demo", vec![undone]);
    plan.rules.approval = Some(ApprovalRules { mode: Some(ValidationMode::PerStep), ..ApprovalRules::default() });
    let mut run = run(plan);
    let by = Undo::Handler("undo".into());
    let rollback = StepSpec::new("rollback:a", Work::Rollback { undoes: 0, by, with: None, verifies: false });
    Arc::make_mut(&mut run.added).push(rollback);
    run.steps.push(Step::default());
    run
}

/// What undoes a step, and what it does on the way, is covered as long as no person has replaced it.
#[test]
fn a_rollback_and_its_effects_are_covered_unless_somebody_has_changed_it() {
    let mut run = rolling_back();
    let effect = |run: &Run| {
        let action = Action::of_effect(run.spec(1), 1, "bank:refund".into(), Json::null(), EffectClass::Unsafe);
        Bundle::shipped().judge(&action, run).decision
    };
    assert_eq!(decided_on(&run, 1, run.input(1)), Decision::Allow);
    assert_eq!(effect(&run), Decision::Allow);
    let other = Json::trusted(r#"{"amount":7}"#.to_owned());
    assert!(matches!(decided_on(&run, 1, other.clone()), Decision::NeedsApproval { .. }));
    run.steps[1].input = Some(other);
    assert!(matches!(effect(&run), Decision::NeedsApproval { .. }));
}

/// What looks at a rollback is let through because it reads. An effect of it that changes something is not covered by that.
#[test]
fn what_verifies_a_rollback_is_asked_about_once_it_changes_something() {
    let mut run = rolling_back();
    let by = Undo::Handler("look".into());
    let mut verify = StepSpec::new("verify:a", Work::Rollback { undoes: 0, by, with: None, verifies: true });
    verify.effect = Some(EffectClass::Read);
    Arc::make_mut(&mut run.added).push(verify);
    run.steps.push(Step::default());
    let effect = |class| {
        let action = Action::of_effect(run.spec(2), 2, "bank:refund".into(), Json::null(), class);
        Bundle::shipped().judge(&action, &run).decision
    };
    assert_eq!(decided_on(&run, 2, run.input(2)), Decision::Allow);
    assert_eq!(effect(EffectClass::Read), Decision::Allow);
    assert!(matches!(effect(EffectClass::Unsafe), Decision::NeedsApproval { .. }));
}

/// What a run has only taken over from one that has ended did not fail in this run: undoing it needs approval. The
/// preview of a run that has ended says so beforehand.
#[test]
fn what_undoes_an_inherited_step_is_judged_anew() {
    let mut run = rolling_back();
    run.steps[0].attempt = 1;
    let asks = |run: &Run| matches!(decided_on(run, 1, run.input(1)), Decision::NeedsApproval { .. });
    let lineage = Lineage { root_run_id: run.id, resumed_from: run.id, resume_count: 1 };
    Arc::make_mut(&mut run.header).lineage = Some(lineage);
    assert!(!asks(&run), "the run has done it itself");
    run.steps[0].attempt = 0;
    assert!(asks(&run), "it was done before");
    Arc::make_mut(&mut run.header).lineage = None;
    run.steps[0].attempt = 1;
    run.state = RunState::Succeeded;
    assert!(asks(&run), "it has ended");
}
