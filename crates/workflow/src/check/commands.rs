//! Steps that run a command: under a profile that has a sandbox, by a fixed program, and without rules that do nothing.

use interlock_core::plan::rules::{Dedupe, PROFILES};
use interlock_core::plan::{WORKDIR_PROFILES, is_template};
use interlock_core::state::StepKind;
use interlock_core::text::nearest::hint;

use crate::definition::{Argv, Definition, Step};
use crate::diagnostic::{Code, Report};

pub fn check(definition: &Definition, report: &mut Report) {
    for step in definition.steps.iter() {
        let undo = step.rollback.as_ref().and_then(|rollback| rollback.run.as_ref());
        let verify = step.rollback.as_ref().and_then(|rollback| rollback.verify.as_ref()?.run.as_ref());
        for run in step.run.iter().chain(undo).chain(verify) {
            profile(definition, run, report);
            program(run, report);
        }
        if step.kind() == Some(StepKind::Command) {
            workdir(definition, step, report);
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

/// A directory that outlives a command is for profiles whose sandbox has a place for it.
fn workdir(definition: &Definition, step: &Step, report: &mut Report) {
    let (Some(rule), Some(profile)) = (step.workdir, &definition.profile) else { return };
    if PROFILES.contains(&&*profile.value) && !WORKDIR_PROFILES.contains(&&*profile.value) {
        let message = format!("`workdir` has no place in the sandbox of `{}`", &*profile.value);
        let fits = WORKDIR_PROFILES.join(", ");
        report.error(Code::InvalidValue, rule.span, message).help(format!("leave it out, or use one of {fits}"));
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

/// A rule that would only be recorded is refused: the author relies on it.
pub fn not_kept(step: &Step, report: &mut Report) {
    if step.kind() != Some(StepKind::Command) {
        return;
    }
    let shared = step.idempotency.as_ref().filter(|rule| rule.dedupe == Some(Dedupe::Tenant) && step.workdir.is_some());
    if let Some(rule) = shared {
        let message = "`dedupe: tenant` does not go with `workdir`: a command that another run has carried out leaves nothing in the directory";
        report.error(Code::MisplacedField, rule.span, message);
    }
}
