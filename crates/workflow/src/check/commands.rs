//! Steps that run a command: under a profile that has a sandbox, by a fixed program, and with nothing that nobody keeps.

use interlock_core::plan::is_template;
use interlock_core::plan::rules::PROFILES;
use interlock_core::state::StepKind;
use interlock_core::text::nearest::hint;

use crate::definition::{Argv, Definition, Step};
use crate::diagnostic::{Code, Report};

pub fn check(definition: &Definition, report: &mut Report) {
    for step in definition.steps.iter() {
        let undo = step.rollback.as_ref().and_then(|rollback| rollback.run.as_ref());
        for run in step.run.iter().chain(undo) {
            profile(definition, run, report);
            program(run, report);
        }
    }
}

fn profile(definition: &Definition, run: &Argv, report: &mut Report) {
    match &definition.profile {
        None => {
            report
                .error(Code::MissingField, run.span, "a command needs a `profile`, which says how it is confined")
                .help(format!("write `profile: …` at the top of the file: one of {}", PROFILES.join(", ")));
        }
        Some(profile) if !PROFILES.contains(&&*profile.value) => {
            let message = format!("a command cannot run under `{}`: it has no sandbox", &*profile.value);
            report
                .error(Code::UnknownProfile, profile.span, message)
                .help(hint(&profile.value, PROFILES.iter().copied()));
        }
        Some(_) => {}
    }
}

fn program(run: &Argv, report: &mut Report) {
    let Some(program) = run.items.first() else { return };
    let (text, span) = (&program.0.value, program.0.span);
    if is_template(text) {
        report
            .error(Code::FixedValue, span, "the program of a command is fixed: expressions are for its arguments")
            .help("which programs a workflow starts is known before it runs");
    } else if !text.starts_with('/') {
        report.error(Code::InvalidValue, span, "commands are named by their file, without a search").help(format!(
            "write the program's absolute path, as in `/usr/bin/{}`",
            text.rsplit('/').next().unwrap_or(text)
        ));
    }
}

/// What would only be recorded is refused: whoever wrote it relies on it.
pub fn not_kept(step: &Step, report: &mut Report) {
    if step.kind() != Some(StepKind::Command) {
        return;
    }
    let requires = step.requires.as_ref();
    let segment = requires.and_then(|requires| requires.network_segment.as_ref()).map(|name| name.span);
    let latency = requires.filter(|requires| requires.max_latency_ms.is_some()).map(|requires| requires.span);
    for (span, field) in [
        (segment, "requires.network_segment"),
        (latency, "requires.max_latency_ms"),
        (step.idempotency.as_ref().map(|rule| rule.span), "idempotency"),
        (step.workdir.map(|rule| rule.span), "workdir"),
    ] {
        if let Some(span) = span {
            let message = format!("`{field}` is not kept for commands yet");
            report.error(Code::NoExecutor, span, message).help("leave it out; `requires.capabilities` is kept");
        }
    }
}
