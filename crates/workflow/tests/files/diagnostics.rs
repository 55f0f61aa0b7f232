//! What is refused, where, and with which words.

use std::collections::BTreeSet;

use interlock_workflow::diagnostic::{Code, Diagnostics, Style};
use interlock_workflow::parse;

fn refused(text: &str) -> Diagnostics {
    parse("test.yaml", text).expect_err(text)
}

/// The codes of a file with the texts that they underline.
fn found(text: &str) -> Vec<(Code, String)> {
    let found = match parse("test.yaml", text) {
        Ok(checked) => interlock_workflow::diagnostic::Diagnostics { source: checked.source, list: checked.warnings },
        Err(found) => found,
    };
    found.list.iter().map(|one| (one.code, found.source.slice(one.span).to_owned())).collect()
}

/// A file of one task, with this line in its step.
fn step(line: &str) -> String {
    format!(
        "name: t\ninputs: {{ n: integer, text: string }}\nsteps:\n  - id: first\n    task: a\n  - id: a\n    {line}\n"
    )
}

#[test]
fn several_mistakes_are_shown_at_once_with_what_to_write() {
    let shown = refused(
        "name: deploy
inputs:
  service: { type: strnig, required: true }
steps:
  - id: build
    task: ci.build
    timeot: 60s
  - id: build
    task: ci.push
    timeout: 60
    if: steps.biuld.output.ok
  - id: note
    run: systemctl restart db
",
    )
    .render(Style::default());
    insta::assert_snapshot!(shown);
}

#[test]
fn every_mistake_is_found_where_it_stands() {
    use Code as C;
    let cases: &[(String, Code, &str)] = &[
        (step("task: x y"), C::InvalidName, "x y"),
        (step("taks: x"), C::UnknownField, "taks"),
        (step("effect: red"), C::InvalidValue, "red"),
        (step("description: hi"), C::StepKind, "a"),
        (step("{ task: a }"), C::Syntax, ""),
        (step("task: a\n    wait: { for: 1s }"), C::StepKind, "{ for: 1s }"),
        (step("transform: 1\n    retry: 3"), C::MisplacedField, "3"),
        (step("wait: { for: 1s }\n    timeout: 5s"), C::MisplacedField, "5s"),
        (step("wait: { signal: go, for: 1s }"), C::StepKind, "{ signal: go, for: 1s }"),
        (step("wait: { for: 0s }"), C::InvalidValue, "0s"),
        (step("wait: { for: soon }"), C::InvalidValue, "soon"),
        (step("task: a\n    retry: 0"), C::InvalidValue, "0"),
        (step("task: a\n    confidence_score: 1.5"), C::InvalidValue, "1.5"),
        (step("task: a\n    idempotency: { dedupe: tenant }"), C::MissingField, "{ dedupe: tenant }"),
        (
            step("run: [/bin/true]\n    effect: read\n    idempotency: { dedupe: tenant, window: 1h }"),
            C::MisplacedField,
            "{ dedupe: tenant, window: 1h }",
        ),
        (step("run: [/bin/true]\n    idempotency: { dedupe: tenant, window: 40d }"), C::InvalidValue, "40d"),
        (step("task: a\n    rollback: { task: b, uses: c }"), C::StepKind, "{ task: b, uses: c }"),
        (step("task: a\n    rollback: { task: b, with: '${{ inputs.n }}' }"), C::FixedValue, "'${{ inputs.n }}'"),
        (step("task: a\n    with: { x: '${{ inputs.m }}' }"), C::UndeclaredInput, "m"),
        (
            step("task: a\n    with: { x: \"${{ steps.first.output.ok }} ${{ steps.frist.output }}\" }"),
            C::UnknownStep,
            "frist",
        ),
        (step("task: a\n    with: >-\n      one ${{ inputs.n }}\n      two ${{ steps.a.output }}"), C::LaterStep, "a"),
        (step("task: a\n    with: '${{ inputs.n'"), C::ExpressionSyntax, "${{"),
        (step("task: a\n    with: '${{ inputs. }}'"), C::ExpressionSyntax, ""),
        (step("task: a\n    if: inputs.n"), C::ExpressionType, "inputs.n"),
        (step("task: a\n    if: inputs.n + inputs.text == 1"), C::ExpressionType, "+"),
        (step("task: a\n    if: lower(inputs.text) == 'x'"), C::UnknownFunction, "lower"),
        (step("task: a\n    with: 'x ${{ secrets.A }}'"), C::SecretUse, "secrets.A"),
        (step("transform: '${{ secrets.A }}'"), C::SecretUse, "secrets.A"),
        (step("task: a\n    approval: hm"), C::StepKind, "hm"),
        (step("approval: { quorum: 0 }"), C::InvalidValue, "0"),
        ("name: t\nsteps: []\n".into(), C::MissingField, "[]"),
        ("name: t\n".into(), C::MissingField, ""),
        ("name: validate\nsteps: [{ id: a, task: a }]\n".into(), C::InvalidName, "validate"),
        ("name: t\nname: u\nsteps: [{ id: a, task: a }]\n".into(), C::DuplicateKey, "name"),
        (
            "name: t\ninputs: { a: { type: string, default: 1 } }\nsteps: [{ id: a, task: a }]\n".into(),
            C::InvalidDefault,
            "1",
        ),
        (
            "name: t\ninputs: { a: { type: string, pattern: '(' } }\nsteps: [{ id: a, task: a }]\n".into(),
            C::InvalidValue,
            "'('",
        ),
        (
            "name: t\ninputs: { a: { type: string, min: 1 } }\nsteps: [{ id: a, task: a }]\n".into(),
            C::MisplacedField,
            "1",
        ),
        (
            "name: t\non: { schedule: { cron: '61 * * * *' } }\nsteps: [{ id: a, task: a }]\n".into(),
            C::InvalidSchedule,
            "'61 * * * *'",
        ),
        (
            "name: t\non: { schedule: { cron: '0 * * * *', timezone: Mars/One } }\nsteps: [{ id: a, task: a }]\n"
                .into(),
            C::InvalidSchedule,
            "Mars/One",
        ),
        ("name: t\non: { webhok: {} }\nsteps: [{ id: a, task: a }]\n".into(), C::UnknownField, "webhok"),
        (
            "name: t\non: { github: { filter: 'evnt.x == 1' } }\nsteps: [{ id: a, task: a }]\n".into(),
            C::UnknownReference,
            "evnt",
        ),
        ("name: t\non: { slack: { inputs: { x: 1 } } }\nsteps: [{ id: a, task: a }]\n".into(), C::UndeclaredInput, "x"),
        ("name: t\nprofile: prod-standard\nsteps: [{ id: a, task: a }]\n".into(), C::MissingRollback, "a"),
        (
            "name: t\napproval: { mode: final_only }\nsteps: [{ id: a, task: a }]\n".into(),
            C::FinalOnlyTooFar,
            "final_only",
        ),
        (
            "name: t\nprofile: prod-standart\nsteps: [{ id: a, task: a, effect: read }]\n".into(),
            C::UnknownProfile,
            "prod-standart",
        ),
        ("name: t\nlimits: { concurrency: 0 }\nsteps: [{ id: a, task: a }]\n".into(), C::InvalidValue, "0"),
        ("name: t\nlimits: { unit: 5 euros }\nsteps: [{ id: a, task: a }]\n".into(), C::InvalidValue, "5 euros"),
        (
            "name: t\nsteps: [{ id: a, task: a, phase: main }, { id: b, task: a, phase: prechecks }]\n".into(),
            C::PhaseOrder,
            "prechecks",
        ),
        ("name: t\non_failure: rollback\nsteps: [{ id: a, task: a }]\n".into(), C::Ineffective, "t"),
        (step("task: a\n    confidence_score: 0.5"), C::MisplacedField, "0.5"),
        (step("wait: { for: 1s }\n    destructive: true"), C::MisplacedField, "true"),
        (step("uses: slack.pots"), C::UnknownConnector, "slack.pots"),
    ];
    for (text, code, underlined) in cases {
        let all = found(text);
        let hit = all.iter().any(|(one, text)| one == code && (underlined.is_empty() || text == underlined));
        assert!(hit, "expected {code:?} at `{underlined}`, found {all:?} in\n{text}");
    }
    let tested: BTreeSet<_> = cases.iter().map(|(_, code, _)| *code).collect();
    let elsewhere = [C::TooLarge, C::WrongType, C::DuplicateStep, C::ExpressionTooLarge, C::NoExecutor, C::Unexpected];
    let untested: Vec<_> =
        Code::ALL.iter().filter(|code| !tested.contains(code) && !elsewhere.contains(code)).collect();
    assert!(untested.is_empty(), "no case for {untested:?}");
}

#[test]
fn production_and_final_only_accept_what_keeps_to_the_rules() {
    for text in [
        "name: t\nprofile: prod-critical\nsteps: [{ id: a, task: a, rollback: { task: b } }, { id: c, task: c, effect: read }]\n",
        "name: t\napproval: { mode: final_only }\nsteps: [{ id: a, task: a, effect: read }, { id: b, task: b, blast_radius: low }]\n",
        "name: t\nprofile: prod-critical\nsteps: [{ id: a, wait: { for: 1s } }, { id: b, approval: ok? }]\n",
    ] {
        assert!(parse("t", text).is_ok(), "{text}");
    }
}

/// Policy judges what a step declares, so nothing of it is only recorded, gate or no gate.
#[test]
fn what_a_step_declares_leaves_nothing_to_warn_of() {
    for gate in ["", "{ id: ok, approval: ok? }, "] {
        let text = format!(
            "name: t\napproval: {{ mode: per_step }}\nsteps: [{gate}{{ id: a, task: a, critical: true, destructive: true }}]\n"
        );
        assert_eq!(found(&text), [], "{text}");
    }
}

/// Every field of a step on every kind: what has no effect there is refused, and the help names something that has.
#[test]
fn a_field_without_effect_on_its_kind_is_refused_where_it_stands() {
    let kinds = [
        ("task", "task: a"),
        ("command", "run: [a]"),
        ("connector", "uses: http.request"),
        ("model", "model: m"),
        ("transform", "transform: 1"),
        ("approval", "approval: ok?"),
        ("wait", "wait: { for: 1s }"),
    ];
    let acts = ["task", "command", "connector", "model"];
    let governed = ["command", "connector", "model"];
    let fields: &[(&str, &str, &[&str])] = &[
        ("with", "{ x: 1 }", &["task", "connector", "model"]),
        ("env", "{ X: a }", &["command"]),
        ("queue", "q", &acts),
        ("effect", "read", &acts),
        ("blast_radius", "low", &acts),
        ("critical", "false", &acts),
        ("destructive", "false", &acts),
        ("timeout", "5s", &acts),
        ("retry", "{ max_attempts: 2 }", &acts),
        ("rollback", "{ task: b }", &acts),
        ("credentials", "[c]", &governed),
        ("requires", "{ capabilities: [ssh] }", &["task", "command"]),
        ("idempotency", "{ dedupe: run }", &["command", "connector"]),
        ("confidence_score", "0.5", &governed),
        ("auto_approve_threshold", "0.5", &governed),
        ("workdir", "keep", &["command"]),
    ];
    let elsewhere = [
        "id",
        "description",
        "if",
        "task",
        "run",
        "uses",
        "model",
        "transform",
        "approval",
        "wait",
        "phase",
        "resumable",
        "on_failure",
    ];
    for field in interlock_workflow::definition::Step::FIELDS.iter().filter(|field| !elsewhere.contains(field)) {
        assert!(fields.iter().any(|(known, ..)| known == field), "no case for `{field}`");
    }
    for (field, value, takes) in fields {
        for (kind, work) in kinds {
            let refused = found(&step(&format!("{work}\n    {field}: {value}")))
                .iter()
                .any(|(code, _)| *code == Code::MisplacedField);
            assert_eq!(refused, !takes.contains(&kind), "`{field}` on a {kind} step");
        }
    }
    let reserved = [("label:rack", "labels"), ("max_latency_ms:5", "max_latency_ms"), ("segment:a", "network_segment")];
    for (name, field) in reserved {
        let asking = format!("task: a\n    requires: {{ capabilities: [{name}] }}");
        let shown = refused(&step(&asking)).render(Style::default());
        assert!(shown.contains("cannot be a capability") && shown.contains(&format!("{{ {field}: ")), "{shown}");
    }
}

#[test]
fn an_id_with_a_dash_is_explained() {
    let shown = refused(
        "name: t\nsteps:\n  - { id: my-step, task: a }\n  - { id: b, task: b, with: '${{ steps.my-step.output }}' }\n",
    )
    .render(Style::default());
    assert!(shown.contains("steps[\"my-step\"]"), "{shown}");
}

#[test]
fn nothing_that_is_read_can_make_it_panic() {
    use proptest::prelude::*;
    let pieces = prop::collection::vec(
        prop::sample::select(vec![
            "name: x\n",
            "steps:\n",
            "  - id: a\n",
            "    task: b\n",
            "${{",
            "}}",
            "inputs",
            ".",
            "[",
            "]",
            "{",
            "}",
            ":",
            " ",
            "\n",
            "\"",
            "'",
            "&a ",
            "*a",
            "on:",
            "wait:",
            "- ",
            "ä",
            "\u{202e}",
            "|\n",
            ">\n",
            "1",
            "!x ",
            "#",
            "if: ",
        ]),
        0..40,
    );
    proptest!(|(pieces in pieces)| {
        let text = pieces.concat();
        if let Err(found) = parse("fuzz", &text) {
            prop_assert!(!found.list.is_empty());
            let _ = found.render(Style { colour: true });
        }
    });
}

#[test]
fn a_backoff_is_a_duration_and_a_bare_number_is_asked_for_its_unit() {
    let with = |backoff: &str| format!("name: t\nsteps:\n  - {{ id: a, task: a, retry: {{ backoff: {backoff} }} }}\n");
    assert!(parse("test.yaml", &with("5s")).is_ok());
    let said = refused(&with("5")).render(Style::default());
    assert!(said.contains("expected a duration") && said.contains("`5s`"), "{said}");
}
