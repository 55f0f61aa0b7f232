//! Steps that call other systems: what is checked in the file, and what they become.

use interlock_core::json::Json;
use interlock_core::plan::{RollbackCondition, Undo, Work};
use interlock_core::state::EffectClass;
use interlock_workflow::diagnostic::{Code, Severity};
use interlock_workflow::{Checked, parse};

fn text(head: &str, steps: &str) -> String {
    format!("name: t\n{head}inputs: {{ n: string }}\nsteps:\n{steps}")
}

/// What is reported about a step: the code, and the text that it points at.
fn found(step: &str) -> Vec<(Code, String)> {
    let text = text("", &format!("  - id: a\n    {step}\n"));
    let (source, list) = match parse("t", &text) {
        Ok(Checked { source, warnings, .. }) => (source, warnings),
        Err(found) => (found.source, found.list),
    };
    list.iter().map(|one| (one.code, source.slice(one.span).trim().to_owned())).collect()
}

fn plan(head: &str, steps: &str) -> interlock_core::plan::Plan {
    let checked = parse("t", &text(head, steps)).unwrap_or_else(|found| panic!("{found}"));
    checked.check_runnable().unwrap();
    let plan = checked.plan(1);
    plan.validate().unwrap();
    plan
}

#[test]
fn what_a_connector_does_not_take_is_refused_where_it_stands() {
    for (step, code, at) in [
        ("uses: slack.pst", Code::UnknownConnector, "slack.pst"),
        ("uses: model.chat\n    with: { model: m, prompt: x }", Code::InvalidValue, "model.chat"),
        (
            "task: t\n    rollback: { uses: model.chat, with: { model: m, prompt: x } }",
            Code::InvalidValue,
            "model.chat",
        ),
        ("uses: slack.post\n    with: { channel: C1, text: x, chanel: C2 }", Code::UnknownField, "chanel"),
        ("uses: slack.post\n    with: { channel: C1 }", Code::MissingField, "{ channel: C1 }"),
        ("uses: slack.post", Code::MissingField, "slack.post"),
        ("uses: slack.post\n    with: { channel: C1, text: 5 }", Code::InvalidValue, "5"),
        (
            "uses: slack.post\n    with: { channel: 'C1', text: '${{ secrets.A }}' }",
            Code::InvalidValue,
            "'${{ secrets.A }}'",
        ),
        ("uses: http.request\n    with: { url: 'https://a', headers: { a: 1 } }", Code::InvalidValue, "1"),
        ("uses: http.request\n    with: { url: 'https://a', auth: { bearer: token } }", Code::InvalidValue, "token"),
        ("uses: github.issue.labels\n    with: { owner: a, repo: b, issue: 1, add: [x, 2] }", Code::InvalidValue, "2"),
        // What no single field can say.
        ("uses: pagerduty.event\n    with: { action: resolve }", Code::InvalidValue, "{ action: resolve }"),
        ("model: m", Code::MissingField, "m"),
        ("model: m\n    with: '${{ inputs }}'", Code::MissingField, "'${{ inputs }}'"),
        ("model: m\n    with: { prompt: x, model: y }", Code::MisplacedField, "model"),
        ("model: m\n    with: { prompt: x, max_tokens: 0 }", Code::InvalidValue, "0"),
        ("task: x\n    rollback: { uses: slack.post }", Code::MissingField, "slack.post"),
        ("task: x\n    rollback: { uses: slack.post, with: { channel: C1 } }", Code::MissingField, "{ channel: C1 }"),
        (
            "uses: email.send\n    with: { to: [a@b.example], subject: s, text: t }\n    rollback: { uses: email.send }",
            Code::InvalidValue,
            "email.send",
        ),
    ] {
        let found = found(step);
        assert!(found.contains(&(code, at.to_owned())), "{step}\n{found:?}");
    }
}

#[test]
fn expressions_and_secrets_stand_where_they_may() {
    for step in [
        "uses: slack.post\n    with: { channel: '${{ inputs.n }}', text: 'to ${{ inputs.n }}' }",
        "uses: slack.post\n    with: '${{ inputs }}'",
        "uses: http.request\n    with: { url: 'https://a', headers: { x-key: '${{ secrets.KEY }}' } }",
        "uses: http.request\n    with: { url: 'https://a', auth: { user: u, password: '${{ secrets.KEY }}' } }",
        "model: m\n    with: { prompt: '${{ inputs.n }}' }",
    ] {
        assert_eq!(found(step), [], "{step}");
    }
}

#[test]
fn a_connector_knows_its_class_and_a_step_can_only_tighten_it() {
    let class = |step: &str| plan("", &format!("  - id: a\n    {step}\n")).steps[0].effect_class();
    let get = "uses: http.request\n    with: { url: 'https://a' }";
    assert_eq!(class(get), EffectClass::Read);
    assert_eq!(class(&format!("{get}\n    effect: unsafe")), EffectClass::Unsafe);
    let post = "uses: slack.post\n    with: { channel: C1, text: x }";
    assert_eq!(class(post), EffectClass::Unsafe);
    assert_eq!(class(&format!("{post}\n    effect: read")), EffectClass::Unsafe);
    let laxer = format!("{post}\n    effect: read");
    assert_eq!(found(&laxer), [(Code::Ineffective, "read".to_owned())]);
    assert_eq!(class("model: m\n    with: { prompt: x }"), EffectClass::Idempotent);
    let open = "uses: http.request\n    with: { url: 'https://a', method: '${{ inputs.n }}' }";
    assert_eq!(class(open), EffectClass::Unsafe, "what is not known is the worst");
}

#[test]
fn a_models_name_is_part_of_what_is_bound() {
    let plan = plan("", "  - id: a\n    model: m\n    with: { prompt: x }\n");
    let Work::Model { model, with: Some(with) } = &plan.steps[0].work else { panic!("{:?}", plan.steps[0].work) };
    assert_eq!((model.as_str(), with.to_value().unwrap()), ("m", serde_json::json!({ "model": "m", "prompt": "x" })));
    let bare = self::plan("", "  - id: a\n    uses: http.request\n    with: { url: 'https://a' }\n");
    assert!(matches!(&bare.steps[0].work, Work::Connector { with: Some(_), .. }));
}

#[test]
fn an_inverse_is_a_rollback_that_a_failure_takes_only_where_it_is_wanted() {
    let post = "  - id: a\n    uses: slack.post\n    with: { channel: C1, text: x }\n";
    let conditions = |plan: &interlock_core::plan::Plan| {
        let rollback = plan.steps[0].rollback.as_ref().unwrap();
        assert_eq!(rollback.by, Undo::Operation("slack.post".into()));
        assert_eq!(rollback.with, None::<Json>);
        rollback.conditions.clone()
    };
    assert_eq!(conditions(&plan("", post)), [RollbackCondition::Manual]);
    assert_eq!(conditions(&plan("on_failure: rollback\n", post)), RollbackCondition::ALL);
    let mail = "  - id: a\n    uses: email.send\n    with: { to: [a@b.example], subject: s, text: t }\n";
    assert!(plan("", mail).steps[0].rollback.is_none());
    // Production demands a way back.
    let prod = text("profile: prod-standard\n", mail);
    assert!(parse("t", &prod).unwrap_err().list.iter().any(|one| one.code == Code::MissingRollback));
    let ok = parse("t", &text("profile: prod-standard\n", post)).unwrap();
    assert!(ok.warnings.iter().all(|one| one.severity == Severity::Warning));
}

#[test]
fn what_is_not_kept_cannot_be_applied() {
    let (step, at) =
        ("uses: slack.post\n    with: { channel: C1, text: x }\n    idempotency: { key: mine }", "{ key: mine }");
    let checked = parse("t", &text("", &format!("  - id: a\n    {step}\n"))).unwrap();
    let refused = checked.check_runnable().unwrap_err();
    assert_eq!(refused.list.len(), 1, "{refused}");
    assert_eq!((refused.list[0].code, checked.source.slice(refused.list[0].span)), (Code::NoExecutor, at));
}
