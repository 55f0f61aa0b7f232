//! `interlock run why`: why a run stands where it stands, in plain words, with what to do next.

use std::fmt::Write;

use clap::Args;
use interlock_core::ids::{RunId, SessionId};
use interlock_core::plan::DEFAULT_QUEUE;
use interlock_core::run::why::{Cause, Explanation, Limit, LimitOf, Remedy, Throttle};
use interlock_core::state::RunState;
use interlock_core::tenant::WORKER_ORCHESTRATION;
use interlock_core::text::visible::visible;
use interlock_core::time::Timestamp;
use interlock_protocol::runs::path;
use serde::Serialize;

use super::{RunArg, find, rights, show};
use crate::client::{Client, ClientError, fill};
use crate::output::paint::{Paint, run_tone};
use crate::output::{Printer, indented_lines, span};

#[derive(Debug, Args)]
pub struct WhyArgs {
    #[command(flatten)]
    run: RunArg,
}

pub async fn run(client: &Client, printer: Printer, args: WhyArgs) -> anyhow::Result<()> {
    let run = find::run(client, &args.run.run).await?;
    let mut explanation = ask(client, run).await?;
    let mut continued_by = None;
    if explanation.state.is_terminal() {
        continued_by = show::view(client, run).await?.continued_by;
    }
    if continued_by.is_some() {
        // A run is continued once; what is left to do is done to the other one.
        explanation.next.clear();
    }
    let (mut others, mut self_approval) = (Vec::new(), None);
    if !explanation.next.is_empty()
        && let Some(caller) = rights::ask(client, &explanation).await
    {
        others = caller.withhold(&mut explanation);
        self_approval = caller.self_approval(&explanation);
    }
    let explained = ExplainedRun { explanation, continued_by, others, self_approval };
    printer.show(&explained, |paint| page(&explained, span::now(), paint))
}

/// The server's explanation, with what the caller may do about it.
#[derive(Debug, Serialize)]
struct ExplainedRun {
    /// Its remedies are those that the caller may carry out.
    #[serde(flatten)]
    explanation: Explanation,
    /// The run that `retry` or `restart` made from this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    continued_by: Option<RunId>,
    /// Who may do what the caller may not.
    #[serde(skip)]
    others: Vec<String>,
    /// That people who started or directed the run may approve it, where that is so.
    #[serde(skip)]
    self_approval: Option<String>,
}

pub async fn ask(client: &Client, run: RunId) -> Result<Explanation, ClientError> {
    client.get(fill(path::WHY, &[("run", &run)])).send().await
}

fn page(explained: &ExplainedRun, now: Timestamp, paint: Paint) -> String {
    let ExplainedRun { explanation, continued_by, others, self_approval } = explained;
    let state = paint.tone(run_tone(explanation.state), explanation.state);
    let mut text = format!("{} is {state}", paint.bold(explanation.run_id));
    if !explanation.state.is_terminal() {
        // Writing to a string cannot fail.
        let _ = write!(text, ", at step {}", paint.bold(visible(&explanation.step)));
    }
    text.push_str(".\n\n");
    for cause in &explanation.because {
        let allowed = self_approval.as_ref().filter(|_| matches!(cause, Cause::Approval { .. }));
        if let Some(allowed) = allowed {
            let _ = writeln!(text, "  {}\n  {allowed}", words(&without_excluded(cause), now));
        } else {
            let _ = writeln!(text, "  {}", words(cause, now));
        }
    }
    if let Some(run) = continued_by {
        let _ = writeln!(text, "  It is continued by {run}; `interlock run why {run}` explains that one.");
    }
    if !explanation.next.is_empty() {
        text.push_str("\nWhat you can do:\n");
        for remedy in &explanation.next {
            let (command, what) = advice(*remedy, explanation);
            match command {
                Some(command) => {
                    let _ = writeln!(text, "  {}\n      {}", paint.bold(command), paint.dim(what));
                }
                None => {
                    let _ = writeln!(text, "  {what}");
                }
            }
        }
    }
    if !others.is_empty() {
        text.push_str("\nWhat others can do:\n");
        for other in others {
            let _ = writeln!(text, "  {other}");
        }
    }
    text
}

/// The same cause without the people who are kept from approving.
fn without_excluded(cause: &Cause) -> Cause {
    let mut cause = cause.clone();
    if let Cause::Approval { excluded, .. } = &mut cause {
        excluded.clear();
    }
    cause
}

/// A cause as a sentence.
pub fn words(cause: &Cause, now: Timestamp) -> String {
    let by = |person: &Option<String>| {
        person.as_deref().map_or_else(String::new, |person| format!(" by {}", visible(person)))
    };
    let when = |at: &Timestamp| format!("{} ({})", span::away(*at, now), span::instant(*at));
    match cause {
        Cause::Silent { session, worker, attempt, last_heartbeat_at, lease_expires_at } => {
            let then = lease_expires_at.filter(|at| *at > now).map_or_else(
                || "its lease is over, and the step is being taken back".to_owned(),
                |at| format!("unless it comes back, the step is taken from it {}", when(&at)),
            );
            format!(
                "{} has attempt {attempt} and has been silent for {}: it is dead, frozen or cut off; {then}.",
                named(worker.as_deref(), session),
                span::span(now.since(*last_heartbeat_at))
            )
        }
        Cause::Orphaned { code, session, worker, attempt, last_heartbeat_at } => {
            let heard = last_heartbeat_at.map_or_else(
                || "nothing is known of it any more".to_owned(),
                |at| format!("it was last heard of {} ago", span::span(now.since(at))),
            );
            format!(
                "{} has attempt {attempt}, and {heard} ({code}). A server takes the step back within seconds; if none \
                 does, see whether one runs and what `interlock doctor` says.",
                named(worker.as_deref(), session)
            )
        }
        Cause::Running { session, worker, attempt, since, times_out_at, last_heartbeat_at } => {
            let since = since.map_or_else(String::new, |at| format!(" since {}", span::span(now.since(at))));
            let limit = times_out_at.map_or_else(String::new, |at| format!("; it times out {}", when(&at)));
            let heard = last_heartbeat_at
                .map_or_else(String::new, |at| format!("; it was last heard of {} ago", span::span(now.since(at))));
            format!("{} has been running attempt {attempt}{since}{limit}{heard}.", named(worker.as_deref(), session))
        }
        Cause::Unclaimed { queue, task, needs, since, workers, only_embedded } => {
            let needs: Vec<_> = needs.iter().map(|name| visible(name)).collect();
            let has_it = match task.as_deref() {
                Some(task) => format!("has the task `{}`", visible(task)),
                None if needs.is_empty() => "can do it".to_owned(),
                None => format!("has {}", needs.join(" and ")),
            };
            let task = task.as_deref().map_or_else(String::new, |task| format!(" the task `{}`", visible(task)));
            let workers = match workers {
                Some(0) => format!("no registered worker of the queue `{}` {has_it}", visible(queue)),
                Some(1) => format!("one worker of the queue `{}` may have it, and is busy", visible(queue)),
                Some(n) => format!("{n} workers of the queue `{}` may have it, and are busy", visible(queue)),
                None => format!("it is on the queue `{}`", visible(queue)),
            };
            let off = format!(
                " {WORKER_ORCHESTRATION} is off, so that only the server's own worker takes steps; `interlock flag set \
                 {WORKER_ORCHESTRATION} true` lets the others in."
            );
            let off = if *only_embedded { off.as_str() } else { "" };
            format!("It has waited {} for a worker to run{task}: {workers}.{off}", span::span(now.since(*since)))
        }
        Cause::Assigning { asked, until, failures, attempts_max, queue, needs, workers } => {
            let mut told = match (asked, until, workers) {
                (Some(worker), Some(until), _) => {
                    format!(
                        "The worker `{}` is asked to take the run, and has until {} to answer.",
                        visible(worker),
                        when(until)
                    )
                }
                (_, _, Some(0)) => {
                    let needs: Vec<_> = needs.iter().map(|name| visible(name)).collect();
                    let (queue, needs) = (visible(queue), needs.join(" and "));
                    format!("No worker has taken the run, and no other worker of the queue `{queue}` has {needs}.")
                }
                (_, Some(until), _) => {
                    format!("A worker is looked for that takes the run; this attempt ends {}.", when(until))
                }
                _ => "No worker has taken the run.".to_owned(),
            };
            for (number, failure) in failures.iter().enumerate() {
                let _ = write!(told, " Attempt {} of {attempts_max}: {}.", number + 1, visible(&failure.to_string()));
            }
            told
        }
        Cause::WorkerLost { step } => format!(
            "The worker that had the run was lost while it ran `{}`, and the run's directory with it. What the command did \
             before that is not known here.",
            visible(step)
        ),
        Cause::UnknownTask { queue, task, next_attempt_at } => format!(
            "No worker on the queue `{}` knows the task `{}`, as far as was seen: the last one to take the step gave it \
             back. It is offered again {}.",
            visible(queue),
            visible(task),
            when(next_attempt_at)
        ),
        Cause::Backoff { error, failures, attempts_max, next_attempt_at } => format!(
            "The last attempt failed ({} of {attempts_max}): {}. The next one starts {}.",
            failures,
            indented_lines(&error.to_string(), 4),
            when(next_attempt_at)
        ),
        Cause::Signal { signal, key, since, until } => {
            let until =
                until.map_or_else(|| "; it waits for ever".to_owned(), |at| format!("; it gives up {}", when(&at)));
            format!(
                "It has waited {} for the signal `{}` with the key `{}`{until}.",
                span::span(now.since(*since)),
                visible(signal),
                visible(key)
            )
        }
        Cause::Timer { until } => format!("It waits for its time to come, {}.", when(until)),
        Cause::Approval { approval, needed, approved_by, approvers, excluded, message, expires_at, .. } => {
            approval_words(
                &[approved_by, approvers, excluded],
                *needed,
                message.as_deref(),
                &format!("{approval}"),
                &when(expires_at),
            )
        }
        Cause::Denied { approval, state } => {
            format!("The approval {approval} was {state}; an operator has to say how to go on.")
        }
        Cause::Doubt { receipt } => format!(
            "An effect was sent ({receipt}) and its outcome is unknown. Look in the system it was sent to; \
             it is never repeated blindly."
        ),
        Cause::Paused { by: person, reason, since } => {
            format!("It was paused{} {}: {}", by(person), when(since), visible(reason))
        }
        Cause::StepFailed { step, error } => {
            let error = error.as_ref().map_or_else(|| "no error was recorded".to_owned(), ToString::to_string);
            format!("Step `{}` has failed: {}.", visible(step), indented_lines(&error, 4))
        }
        Cause::Canceling { by: person, reason, since } => format!(
            "It was canceled{} {} ({}); the running attempt has not acknowledged yet.",
            by(person),
            span::away(*since, now),
            visible(reason)
        ),
        Cause::RollingBack { undone, left } => {
            format!("What it did is being undone: {undone} of {} steps so far.", undone + left)
        }
        Cause::Queued { subject, held_by, holder_state } => match held_by {
            Some(run) => {
                let state = holder_state.map_or("active", RunState::as_str).replace('_', " ");
                format!("It is queued: run {run}, which is {state}, holds the subject `{}`.", visible(subject))
            }
            None => {
                format!("It is queued for the subject `{}`, which is free, and starts in a moment.", visible(subject))
            }
        },
        Cause::Throttled(Throttle { limit_of, limit, max, until }) => {
            let whose = match limit_of {
                LimitOf::Workflow => "its workflow",
                LimitOf::Tenant => "the tenant",
            };
            let what = match limit {
                Limit::Concurrency => format!("steps of {whose} that run at once (at most {max})"),
                Limit::RunsPerMin => format!("runs of {whose} that start in a minute (at most {max})"),
            };
            let then = until.map_or_else(|| "as soon as one of them ends".to_owned(), |at| when(&at));
            format!("The limit on {what} holds it back; it goes on by itself, {then}.")
        }
        Cause::Restored {} => {
            "It came back with a backup, and may have done more than the store knows. Look at its effects first."
                .to_owned()
        }
        Cause::Ended { at, reason } => {
            let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
            format!("It ended {}{reason}.", when(at))
        }
    }
}

/// A worker by its own name; one whose name is not known by its session.
fn named(worker: Option<&str>, session: &SessionId) -> String {
    worker.map_or_else(|| format!("A worker ({session})"), |worker| format!("Worker `{}`", visible(worker)))
}

fn approval_words(people: &[&Vec<String>; 3], needed: u32, message: Option<&str>, id: &str, expires: &str) -> String {
    let [approved_by, approvers, excluded] = people;
    let listed = |names: &[String]| visible(&names.join(", ")).into_owned();
    let whom = if approvers.is_empty() {
        "anybody who may approve".to_owned()
    } else {
        format!("a member of {}", listed(approvers))
    };
    let missing = needed.saturating_sub(approved_by.len() as u32);
    let mut text = format!("It waits for {missing} more approval{} from {whom}", if missing == 1 { "" } else { "s" });
    if !approved_by.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(text, " ({} approved already)", listed(approved_by));
    }
    if !excluded.is_empty() {
        let _ = write!(text, "; not {}, who started or directed it", listed(excluded));
    }
    text.push('.');
    if let Some(message) = message {
        let end = if message.trim_end().ends_with(['.', '?', '!', '…']) { "" } else { "." };
        let _ = write!(text, " The question: {}{end}", indented_lines(message, 4));
    }
    let _ = write!(text, " {id} expires {expires}.");
    text
}

/// The command that carries out a remedy, and what it does.
fn advice(remedy: Remedy, explanation: &Explanation) -> (Option<String>, &'static str) {
    let run = explanation.run_id;
    let command = |text: String| Some(format!("interlock {text}"));
    match remedy {
        Remedy::Wait => (None, "Nothing needs to be done; it goes on by itself."),
        Remedy::StartWorker => (command(worker(explanation)), "start a worker that knows the task"),
        Remedy::Signal => {
            let signal = explanation.because.iter().find_map(|cause| match cause {
                Cause::Signal { signal, .. } => Some(visible(signal).into_owned()),
                _ => None,
            });
            let signal = signal.unwrap_or_else(|| "TYPE".to_owned());
            (command(format!("run signal {run} {signal}")), "send the signal yourself")
        }
        Remedy::Approve | Remedy::Reject => {
            let approval = explanation.because.iter().find_map(|cause| match cause {
                Cause::Approval { approval, .. } => Some(approval.to_string()),
                _ => None,
            });
            let approval = approval.unwrap_or_else(|| "APPROVAL".to_owned());
            let what = if remedy == Remedy::Approve { "let it go on" } else { "stop it here" };
            let reason = if remedy == Remedy::Approve { "" } else { " --reason WHY" };
            (command(format!("approval {remedy} {approval}{reason}")), what)
        }
        Remedy::Resolve => (
            command(format!("run resolve {run} --outcome happened --reason WHY")),
            "say what became of the effect: happened, did-not-happen or failed",
        ),
        Remedy::Resume => (command(format!("run resume {run}")), "end the pause"),
        Remedy::Retry if explanation.state.is_terminal() => {
            (command(format!("run retry {run}")), "make a new run that takes over what this one achieved")
        }
        Remedy::Retry => (command(format!("run retry {run}")), "try the step again"),
        Remedy::Skip if explanation.because.iter().any(|cause| matches!(cause, Cause::Denied { .. })) => (
            command(format!("run skip {run} --reason WHY")),
            "go on without it, if you could have approved it; it takes as many people as the approval did",
        ),
        Remedy::Reassign => (
            command(format!("run reassign {run} --reason WHY")),
            "have another worker take it, with an empty directory",
        ),
        Remedy::Skip => (command(format!("run skip {run} --reason WHY")), "go on without the step"),
        Remedy::Rollback => (command(format!("run rollback {run} --reason WHY")), "undo what was done"),
        Remedy::Restart => (command(format!("run restart {run}")), "make a new run from the beginning"),
        Remedy::Cancel => (command(format!("run cancel {run} --reason WHY")), "stop it"),
    }
}

/// The command line of a worker that would take the step.
fn worker(explanation: &Explanation) -> String {
    let wanted = explanation.because.iter().find_map(|cause| match cause {
        Cause::Unclaimed { queue, task, .. } => Some((queue, task.as_deref())),
        Cause::Assigning { queue, .. } => Some((queue, None)),
        Cause::UnknownTask { queue, task, .. } => Some((queue, Some(task.as_str()))),
        _ => None,
    });
    let is_command = explanation.because.iter().any(|cause| match cause {
        Cause::Assigning { .. } => true,
        Cause::Unclaimed { needs, .. } => !needs.is_empty(),
        _ => false,
    });
    let task = wanted.and_then(|(_, task)| task).unwrap_or("NAME");
    let queue = wanted.map(|(queue, _)| queue.as_str()).filter(|queue| *queue != DEFAULT_QUEUE);
    let queue = queue.map_or_else(String::new, |queue| format!(" --queue {}", visible(queue)));
    if is_command {
        return format!("worker{queue} --commands FILE");
    }
    format!("worker{queue} --task {}=PROGRAM", visible(task))
}

#[cfg(test)]
mod tests {
    use interlock_core::ids::ApprovalId;
    use interlock_core::plan::retry::{ErrorClass, StepError};
    use interlock_core::run::approval::Purpose;

    use super::*;

    fn explained(state: RunState, cause: Cause) -> ExplainedRun {
        let run_id = RunId::from_bytes([1; 16]);
        let explanation = Explanation { run_id, state, step: "gate".into(), because: vec![cause], next: vec![] };
        ExplainedRun { explanation, continued_by: None, others: vec![], self_approval: None }
    }

    fn approval(message: &str) -> Cause {
        Cause::Approval {
            approval: ApprovalId::from_bytes([2; 16]),
            purpose: Purpose::Gate,
            needed: 1,
            approved_by: vec![],
            approvers: vec![],
            excluded: vec!["olga".into()],
            message: Some(message.to_owned()),
            expires_at: Timestamp(60_000),
        }
    }

    #[test]
    fn a_question_keeps_its_own_full_stop() {
        let told = words(&approval("Deploy for everybody?"), Timestamp(0));
        assert!(told.contains("who started or directed it. The question: Deploy for everybody? apr_"), "{told}");
        let told = words(&approval("Deploy"), Timestamp(0));
        assert!(told.contains("The question: Deploy. apr_"), "{told}");
    }

    #[test]
    fn a_starter_who_may_approve_is_not_said_to_be_excluded() {
        let mut page_of = explained(RunState::WaitingApproval, approval("Deploy?"));
        page_of.self_approval = Some(rights::allowed_for(&["olga".to_owned()]));
        let text = page(&page_of, Timestamp(0), Paint::OFF);
        assert!(!text.contains("not olga") && text.contains("the tenant lets people approve their own runs"), "{text}");
    }

    #[test]
    fn a_run_that_was_continued_names_the_other_one() {
        let mut page_of = explained(RunState::Failed, Cause::Ended { at: Timestamp(0), reason: None });
        page_of.continued_by = Some(RunId::from_bytes([3; 16]));
        let text = page(&page_of, Timestamp(0), Paint::OFF);
        let other = RunId::from_bytes([3; 16]);
        assert!(text.contains(&format!("It is continued by {other}")) && !text.contains("What you can do"), "{text}");
        let json = serde_json::to_value(&page_of).unwrap();
        assert_eq!(
            (json["continued_by"].as_str(), json["state"].as_str()),
            (Some(&*other.to_string()), Some("failed"))
        );
    }

    #[test]
    fn an_error_of_several_lines_is_told_in_several_lines() {
        let error = Some(StepError::new(ErrorClass::Invalid, "EXIT_1", "one\ntwo"));
        let told = words(&Cause::StepFailed { step: "build".into(), error }, Timestamp(0));
        assert!(told.contains("one\n    two."), "{told}");
    }
}
