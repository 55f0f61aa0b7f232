//! `interlock run why`: why a run stands where it stands, in plain words, with what to do next.

use std::collections::BTreeSet;
use std::fmt::Write;

use clap::Args;
use interlock_core::ids::{RunId, SessionId};
use interlock_core::plan::DEFAULT_QUEUE;
use interlock_core::plan::command::needed_label;
use interlock_core::run::refused_worker::RefusedWorker;
use interlock_core::run::why::{Cause, DecidedApproval, Explanation, Limit, LimitOf, Remedy, Throttle};
use interlock_core::state::{ApprovalState, RunState};
use interlock_core::tenant::WORKER_ORCHESTRATION;
use interlock_core::text::visible::visible;
use interlock_core::time::Timestamp;
use interlock_protocol::runs::path;
use serde::Serialize;

use super::{RunArg, assigning, find, rights, show, skipped};
use crate::client::{Client, ClientError, fill};
use crate::output::paint::{Paint, run_tone};
use crate::output::tell::fallen_vote;
use crate::output::wrap::wrapped;
use crate::output::{Printer, as_argument, indented_lines, span};

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
    let mut is_undone = false;
    if let Some(successor) = continued_by {
        // A run is continued once; what is left to do is done to the other one. An effect in doubt stays this one's.
        explanation.next.retain(|remedy| *remedy == Remedy::Resolve);
        is_undone = show::is_undo(client, successor).await;
    }
    let mut others = Vec::new();
    if !explanation.next.is_empty()
        && let Some(caller) = rights::ask(client, &explanation).await
    {
        others = caller.withhold(&mut explanation);
    }
    let explained = ExplainedRun { explanation, continued_by, is_undone, others };
    printer.show(&explained, |paint| page(&explained, span::now(), paint, printer.prose_width()))
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
    /// That run was made to undo this one.
    #[serde(skip)]
    is_undone: bool,
    /// Who may do what the caller may not.
    #[serde(skip)]
    others: Vec<String>,
}

pub async fn ask(client: &Client, run: RunId) -> Result<Explanation, ClientError> {
    client.get(fill(path::WHY, &[("run", &run)])).send().await
}

fn page(explained: &ExplainedRun, now: Timestamp, paint: Paint, width: usize) -> String {
    let ExplainedRun { explanation, continued_by, is_undone, others } = explained;
    let state = paint.tone(run_tone(explanation.state), explanation.state);
    let mut text = format!("{} is {state}", paint.bold(explanation.run_id));
    if !explanation.state.is_terminal() {
        // Writing to a string cannot fail.
        let _ = write!(text, ", at step {}", paint.bold(visible(&explanation.step)));
    }
    text.push_str(".\n\n");
    let mut sentence = |words: &str| {
        let _ = writeln!(text, "{}", wrapped(&format!("  {words}"), width, 2));
    };
    for cause in &explanation.because {
        sentence(&words(cause, now));
    }
    if let Some(run) = continued_by {
        let done = if *is_undone { "undone" } else { "continued" };
        sentence(&format!("It is {done} by {run}; `interlock run why {run}` explains that one."));
    }
    if !explanation.next.is_empty() {
        text.push_str("\nWhat you can do:\n");
        for remedy in &explanation.next {
            let (command, what) = advice(*remedy, explanation);
            match command {
                Some(command) => {
                    let what = wrapped(&format!("      {}", paint.dim(what)), width, 6);
                    let _ = writeln!(text, "  {}\n{what}", paint.bold(command));
                }
                None => {
                    let _ = writeln!(text, "{}", wrapped(&format!("  {what}"), width, 2));
                }
            }
        }
    }
    if !others.is_empty() {
        text.push_str("\nWhat others can do:\n");
        for other in others {
            let _ = writeln!(text, "{}", wrapped(&format!("  {other}"), width, 2));
        }
    }
    text
}

/// A cause as a sentence.
pub fn words(cause: &Cause, now: Timestamp) -> String {
    let by = |person: &Option<String>| {
        person.as_deref().map_or_else(String::new, |person| format!(" by {}", visible(person)))
    };
    let when = |at: &Timestamp| format!("{} ({})", span::away(*at, now), span::instant(*at));
    match cause {
        Cause::Silent { session, worker, attempt, last_heartbeat_at, lease_expires_at, .. } => {
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
        Cause::Running { session, worker, attempt, since, times_out_at, last_heartbeat_at, expected_every_ms } => {
            let lasting = since.map_or_else(String::new, |at| format!(" for {}", span::span(now.since(at))));
            let limit = times_out_at.map_or_else(String::new, |at| format!("; it times out {}", when(&at)));
            let heard = last_heartbeat_at
                .map_or_else(String::new, |at| format!("; it was last heard of {} ago", span::span(now.since(at))));
            let late = expected_every_ms.map_or_else(String::new, |every| {
                format!(", and it should be every {}: it may be dead, frozen or cut off", span::span(every))
            });
            let worker = named(worker.as_deref(), session);
            format!("{worker} has been running attempt {attempt}{lasting}{limit}{heard}{late}.")
        }
        Cause::Unclaimed { queue, task, needs, since, workers, only_embedded, refused } => {
            let needs: Vec<_> = needs.iter().map(|name| visible(name)).collect();
            let has_it = match task.as_deref() {
                Some(task) if needs.is_empty() => format!("has the task `{}`", visible(task)),
                Some(task) => format!("has the task `{}` and {}", visible(task), needs.join(" and ")),
                None if needs.is_empty() => "can do it".to_owned(),
                None => format!("has {}", needs.join(" and ")),
            };
            let task = task.as_deref().map_or_else(String::new, |task| format!(" the task `{}`", visible(task)));
            let workers = match workers {
                Some(0) if !refused.is_empty() => {
                    let queue = visible(queue);
                    format!("the policy lets no registered worker of the queue `{queue}` that {has_it} have it")
                }
                Some(0) if *only_embedded => {
                    format!("no worker inside a server takes the queue `{}` and {has_it}", visible(queue))
                }
                Some(0) => format!("no registered worker of the queue `{}` {has_it}", visible(queue)),
                Some(1) => format!("one worker of the queue `{}` may have it, and is busy", visible(queue)),
                Some(n) => format!("{n} workers of the queue `{}` may have it, and are busy", visible(queue)),
                None => format!("it is on the queue `{}`", visible(queue)),
            };
            let off = if *only_embedded { format!(" {}", assigning::flag_off("takes steps")) } else { String::new() };
            let kept: String = refused.iter().map(kept_from_it).collect();
            format!("It has waited {} for a worker to run{task}: {workers}.{kept}{off}", span::span(now.since(*since)))
        }
        Cause::Assigning { .. } => assigning::words(cause, now),
        Cause::PassedOver { workers } => {
            let told: Vec<String> = workers.iter().map(|worker| skipped::words(worker, now)).collect();
            told.join(" ")
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
        Cause::Settling { until } => format!(
            "A lost attempt, or one that was broken off, may have sent what has not arrived yet. The step must not overtake it, and \
             begins {}.",
            when(until)
        ),
        Cause::Approval {
            approval,
            needed,
            approved_by,
            fallen,
            approvers,
            excluded,
            self_approval,
            message,
            expires_at,
            ..
        } => {
            let (id, expires) = (approval.to_string(), when(expires_at));
            let kept_out: &[String] = if *self_approval { &[] } else { excluded };
            let people = [approved_by.as_slice(), approvers.as_slice(), kept_out];
            let told = approval_words(&people, *needed, message.as_deref(), &id, &expires);
            let told = fallen.iter().fold(told, |told, fell| format!("{told} {}.", fallen_vote(fell)));
            if *self_approval { format!("{told} {}", rights::allowed_for(excluded)) } else { told }
        }
        Cause::Denied { approval, state } => {
            format!("The approval {approval} was {state}; an operator has to say how to go on.")
        }
        Cause::Doubt { receipt, step } => {
            let of = step.as_deref().map_or_else(String::new, |step| format!(" of step `{}`", visible(step)));
            format!(
                "An effect{of} was sent ({receipt}) and its outcome is unknown. Look in the system it was sent to; \
                 it is never repeated blindly."
            )
        }
        Cause::Paused { by: Some(person), reason, since } => {
            format!("It was paused by {} {}: {}", visible(person), when(since), visible(reason))
        }
        Cause::Paused { by: None, reason, since } => {
            format!("It stopped by itself {}, and no person has paused it: {}", when(since), visible(reason))
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
            let steps = span::counted(u64::from(undone + left), "step", "steps");
            format!("What it did is being undone: {undone} of {steps} so far.")
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
        Cause::Ended { at, reason, approvals } => {
            let reason = reason.map_or_else(String::new, |reason| format!(": {}", reason.as_str().replace('_', " ")));
            let decided: String = approvals.iter().map(decided_by).collect();
            format!("It ended {}{reason}.{decided}", when(at))
        }
    }
}

/// A worker by its own name; one whose name is not known by its session.
fn named(worker: Option<&str>, session: &SessionId) -> String {
    worker.map_or_else(|| format!("A worker ({session})"), |worker| format!("Worker `{}`", visible(worker)))
}

fn approval_words(people: &[&[String]; 3], needed: u32, message: Option<&str>, id: &str, expires: &str) -> String {
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
        let _ = write!(text, "; not {}, who started or directed it, or wrote its workflow", listed(excluded));
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
        Remedy::Wait => match stopped_holder(explanation) {
            Some(holder) => (
                command(format!("run why {holder}")),
                "see what that run waits for: it has stopped, and this one starts once it has ended",
            ),
            None if has_late_worker(explanation) => {
                (None, "Wait some seconds: if the worker stays silent, its step is taken back from it.")
            }
            None => (None, "Nothing needs to be done; it goes on by itself."),
        },
        Remedy::StartWorker => (command(worker(explanation)), "start a worker that knows the task"),
        Remedy::SwitchOn => {
            (command(format!("flag set {WORKER_ORCHESTRATION} true")), "let workers elsewhere have it, as an admin may")
        }
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
        Remedy::Resolve => {
            let step = explanation.because.iter().find_map(|cause| match cause {
                Cause::Doubt { step, .. } => step.as_deref(),
                _ => None,
            });
            let what = if explanation.state.is_terminal() {
                "say what became of the effect: happened, did-not-happen or failed; `retry` and `restart` come after that"
            } else if explanation.because.iter().any(|cause| matches!(cause, Cause::WorkerLost { .. })) {
                "say what became of the command: happened, did-not-happen or failed; after did-not-happen, `interlock run reassign` \
                 has another worker run it"
            } else {
                "say what became of the effect: happened, did-not-happen or failed"
            };
            (command(resolve_command(run, step)), what)
        }
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

/// Whether the worker that has the step has been silent for longer than it should be.
fn has_late_worker(explanation: &Explanation) -> bool {
    explanation.because.iter().any(|cause| matches!(cause, Cause::Running { expected_every_ms: Some(_), .. }))
}

/// The run that holds the subject of a queued one, where that run does not go on by itself.
fn stopped_holder(explanation: &Explanation) -> Option<RunId> {
    explanation.because.iter().find_map(|cause| match cause {
        Cause::Queued { held_by, holder_state: Some(RunState::Paused | RunState::WaitingApproval), .. } => *held_by,
        _ => None,
    })
}

/// The command, without the program's name, that says what became of an effect in doubt.
pub fn resolve_command(run: RunId, step: Option<&str>) -> String {
    let step = step.map_or_else(String::new, |step| format!(" --step {}", as_argument(step)));
    format!("run resolve {run}{step} --outcome happened --reason WHY")
}

/// What became of an approval, by whom, and which rule had asked for it.
fn decided_by(approval: &DecidedApproval) -> String {
    let listed = |names: &[String]| visible(&names.join(" and ")).into_owned();
    let DecidedApproval { step, state, asked, approved_by, rejected_by, .. } = approval;
    let by = match state {
        ApprovalState::Rejected if !rejected_by.is_empty() => format!(" by {}", listed(rejected_by)),
        ApprovalState::Approved if !approved_by.is_empty() => format!(" by {}", listed(approved_by)),
        _ => String::new(),
    };
    let word = if *state == ApprovalState::Expired { "was not decided in time" } else { "was" };
    let state = if *state == ApprovalState::Expired { String::new() } else { format!(" {state}") };
    let asked = asked.as_deref().map_or_else(String::new, |asked| format!(" ({})", visible(asked)));
    format!(" Step `{}` {word}{state}{by}{asked}.", visible(step))
}

/// A worker that the policy keeps from the step, and why.
fn kept_from_it(refused: &RefusedWorker) -> String {
    format!(" The policy refused the worker `{}`: {}.", visible(&refused.worker), visible(&refused.why))
}

/// The command line of a worker that would take the step.
fn worker(explanation: &Explanation) -> String {
    let wanted = explanation.because.iter().find_map(|cause| match cause {
        Cause::Assigning { queue, .. } => Some((queue, None)),
        Cause::UnknownTask { queue, task, .. } => Some((queue, Some(task.as_str()))),
        Cause::Unclaimed { queue, task, .. } | Cause::Silent { queue: Some(queue), task, .. } => {
            Some((queue, task.as_deref()))
        }
        _ => None,
    });
    let is_command = explanation.because.iter().any(|cause| match cause {
        Cause::Assigning { .. } => true,
        Cause::Unclaimed { needs, task, .. } | Cause::Silent { needs, task, .. } => task.is_none() && !needs.is_empty(),
        _ => false,
    });
    let task = wanted.and_then(|(_, task)| task).unwrap_or("NAME");
    let queue = wanted.map(|(queue, _)| queue.as_str()).filter(|queue| *queue != DEFAULT_QUEUE);
    let queue = queue.map_or_else(String::new, |queue| format!(" --queue {}", visible(queue)));
    if is_command {
        return format!("worker{queue} --commands FILE");
    }
    // Two causes may name the same need: each flag once.
    let needs: BTreeSet<&String> = explanation
        .because
        .iter()
        .filter_map(|cause| match cause {
            Cause::Unclaimed { needs, .. } | Cause::Silent { needs, .. } => Some(needs),
            _ => None,
        })
        .flatten()
        .collect();
    // A network segment is the certificate's to say, and how near a worker is shows.
    let flags = needs.into_iter().filter_map(|need| match needed_label(need) {
        Some((name, value)) => Some(format!(" --label {}={}", as_argument(name), as_argument(value))),
        None if need.contains(':') => None,
        None => Some(format!(" --capability {}", as_argument(need))),
    });
    format!("worker{queue} --task {}=PROGRAM{}", visible(task), flags.collect::<String>())
}

#[cfg(test)]
mod tests {
    use interlock_core::ids::{ApprovalId, ReceiptId};
    use interlock_core::json::{Hash, HashHex};
    use interlock_core::plan::retry::{ErrorClass, StepError};
    use interlock_core::run::approval::{FallenVote, Purpose};
    use interlock_core::time::Millis;

    use super::*;

    fn explained(state: RunState, cause: Cause) -> ExplainedRun {
        let run_id = RunId::from_bytes([1; 16]);
        let explanation = Explanation { run_id, state, step: "gate".into(), because: vec![cause], next: vec![] };
        ExplainedRun { explanation, continued_by: None, is_undone: false, others: vec![] }
    }

    fn approval(message: &str) -> Cause {
        Cause::Approval {
            approval: ApprovalId::from_bytes([2; 16]),
            purpose: Purpose::Gate,
            needed: 1,
            approved_by: vec![],
            fallen: vec![],
            approvers: vec![],
            excluded: vec!["olga".into()],
            self_approval: false,
            message: Some(message.to_owned()),
            expires_at: Timestamp(60_000),
        }
    }

    #[test]
    fn a_question_keeps_its_own_full_stop() {
        let told = words(&approval("Deploy for everybody?"), Timestamp(0));
        let question = "who started or directed it, or wrote its workflow. The question: Deploy for everybody? apr_";
        assert!(told.contains(question), "{told}");
        let told = words(&approval("Deploy"), Timestamp(0));
        assert!(told.contains("The question: Deploy. apr_"), "{told}");
    }

    #[test]
    fn a_vote_that_counts_no_more_is_told_with_its_reason() {
        let mut cause = approval("Deploy?");
        if let Cause::Approval { fallen, .. } = &mut cause {
            let why = "the account bo is disabled".to_owned();
            fallen.push(FallenVote { person: "bo".into(), why });
        }
        let told = words(&cause, Timestamp(0));
        assert!(told.starts_with("It waits for 1 more approval"), "{told}");
        assert!(told.ends_with(" The yes of bo counts no more: the account bo is disabled."), "{told}");
    }

    #[test]
    fn a_starter_who_may_approve_is_not_said_to_be_excluded() {
        let mut cause = approval("Deploy?");
        assert!(words(&cause, Timestamp(0)).contains("not olga"), "{}", words(&cause, Timestamp(0)));
        if let Cause::Approval { self_approval, .. } = &mut cause {
            *self_approval = true;
        }
        let text = page(&explained(RunState::WaitingApproval, cause), Timestamp(0), Paint::OFF, 400);
        assert!(!text.contains("not olga") && text.contains("the tenant lets people approve their own runs"), "{text}");
    }

    #[test]
    fn a_queued_run_sends_to_the_run_that_has_stopped_in_front_of_it() {
        let holder = RunId::from_bytes([3; 16]);
        let queued = |holder_state| Cause::Queued {
            subject: "P-1".into(),
            held_by: Some(holder),
            holder_state: Some(holder_state),
        };
        for (state, stopped) in
            [(RunState::Paused, true), (RunState::WaitingApproval, true), (RunState::Running, false)]
        {
            let mut page_of = explained(RunState::Pending, queued(state));
            page_of.explanation.next = vec![Remedy::Wait, Remedy::Cancel];
            let text = page(&page_of, Timestamp(0), Paint::OFF, 200);
            assert_eq!(text.contains(&format!("interlock run why {holder}\n")), stopped, "{text}");
            assert_eq!(text.contains("Nothing needs to be done"), !stopped, "{text}");
        }
    }

    #[test]
    fn a_worker_that_is_late_is_told_before_it_counts_as_silent() {
        let running = |expected_every_ms| Cause::Running {
            session: SessionId::from_bytes([4; 16]),
            worker: Some("till-1".into()),
            attempt: 1,
            since: None,
            times_out_at: None,
            last_heartbeat_at: Some(Timestamp(0)),
            expected_every_ms,
        };
        for (every, told, advised) in [
            (None, "it was last heard of 7.0 s ago.", "Nothing needs to be done"),
            (Some(Millis(5_000)), "7.0 s ago, and it should be every 5.0 s: it may be dead,", "stays silent"),
        ] {
            let mut page_of = explained(RunState::Running, running(every));
            page_of.explanation.next = vec![Remedy::Wait];
            let text = page(&page_of, Timestamp(7_000), Paint::OFF, 400);
            assert!(text.contains(told) && text.contains(advised), "{text}");
        }
    }

    #[test]
    fn a_step_that_waits_because_of_the_flag_is_told_the_command_that_switches_it_on() {
        let unclaimed = Cause::Unclaimed {
            queue: "default".into(),
            task: Some("pay".into()),
            needs: BTreeSet::new(),
            since: Timestamp(0),
            workers: Some(0),
            only_embedded: true,
            refused: vec![],
        };
        let mut page_of = explained(RunState::Running, unclaimed);
        page_of.explanation.next = vec![Remedy::SwitchOn];
        let text = page(&page_of, Timestamp(0), Paint::OFF, 1_000);
        assert!(text.contains("worker_orchestration.enabled is off, so that only the server's own"), "{text}");
        assert!(text.contains("\n  interlock flag set worker_orchestration.enabled true\n"), "{text}");
    }

    #[test]
    fn a_silent_worker_is_replaced_by_one_that_has_the_task() {
        let silent = |queue: &str, task: Option<&str>| Cause::Silent {
            session: SessionId::from_bytes([4; 16]),
            worker: Some("till-1".into()),
            attempt: 1,
            last_heartbeat_at: Timestamp(0),
            lease_expires_at: None,
            queue: Some(queue.into()),
            task: task.map(str::to_owned),
            needs: if task.is_some() { BTreeSet::new() } else { BTreeSet::from(["commands".to_owned()]) },
        };
        let command = |cause| worker(&explained(RunState::Running, cause).explanation);
        assert_eq!(command(silent("default", Some("pay"))), "worker --task pay=PROGRAM");
        assert_eq!(command(silent("till", Some("pay"))), "worker --queue till --task pay=PROGRAM");
        assert_eq!(command(silent("default", None)), "worker --commands FILE");
        let Cause::Silent { session, worker, attempt, last_heartbeat_at, .. } = silent("default", None) else { return };
        let asking = Cause::Silent {
            session,
            worker,
            attempt,
            last_heartbeat_at,
            lease_expires_at: None,
            queue: Some("default".into()),
            task: Some("pay".into()),
            needs: ["gpu", "label:rack=a", "max_latency_ms:50"].map(str::to_owned).into(),
        };
        assert_eq!(command(asking.clone()), "worker --task pay=PROGRAM --capability gpu --label rack=a");
        let mut twice = explained(RunState::Running, asking.clone()).explanation;
        twice.because.push(asking);
        assert_eq!(super::worker(&twice), "worker --task pay=PROGRAM --capability gpu --label rack=a");
    }

    #[test]
    fn a_canceled_run_tells_its_doubt_and_the_command_that_settles_it() {
        let doubt = Cause::Doubt { receipt: ReceiptId::from_bytes([4; 16]), step: Some("pay".into()) };
        let mut page_of = explained(RunState::Canceled, doubt);
        page_of.explanation.next = vec![Remedy::Resolve];
        let text = page(&page_of, Timestamp(0), Paint::OFF, 80);
        let run = RunId::from_bytes([1; 16]);
        assert!(text.contains("An effect of step `pay` was sent"), "{text}");
        assert!(text.contains(&format!("interlock run resolve {run} --step pay --outcome happened --reason WHY\n")));
        let prose = text.lines().filter(|line| !line.trim_start().starts_with("interlock"));
        assert!(prose.clone().count() > 4 && prose.clone().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_command_in_doubt_whose_worker_was_lost_is_settled_before_it_is_reassigned() {
        let doubt = Cause::Doubt { receipt: ReceiptId::from_bytes([4; 16]), step: Some("pay".into()) };
        let mut page_of = explained(RunState::Paused, doubt);
        page_of.explanation.because.push(Cause::WorkerLost { step: "pay".into() });
        page_of.explanation.next = vec![Remedy::Resolve, Remedy::Cancel];
        let text = page(&page_of, Timestamp(0), Paint::OFF, 400);
        let first = text.find("--step pay --outcome happened --reason WHY").unwrap_or_else(|| panic!("{text}"));
        let then = text.find("after did-not-happen, `interlock run reassign` has another worker run it");
        assert!(then.is_some_and(|then| first < then), "{text}");
        assert!(text.contains("was lost while it ran `pay`"), "{text}");
    }

    #[test]
    fn a_run_that_was_continued_names_the_other_one() {
        let ended = Cause::Ended { at: Timestamp(0), reason: None, approvals: vec![] };
        let mut page_of = explained(RunState::Failed, ended);
        page_of.continued_by = Some(RunId::from_bytes([3; 16]));
        let text = page(&page_of, Timestamp(0), Paint::OFF, 200);
        let other = RunId::from_bytes([3; 16]);
        assert!(text.contains(&format!("It is continued by {other}")) && !text.contains("What you can do"), "{text}");
        page_of.is_undone = true;
        let text = page(&page_of, Timestamp(0), Paint::OFF, 200);
        assert!(text.contains(&format!("It is undone by {other}")), "{text}");
        let json = serde_json::to_value(&page_of).unwrap();
        assert_eq!(
            (json["continued_by"].as_str(), json["state"].as_str()),
            (Some(&*other.to_string()), Some("failed"))
        );
    }

    #[test]
    fn an_ended_run_tells_who_decided_and_which_rule_had_asked() {
        let decided = |state, approved_by: &[&str], rejected_by: &[&str]| DecidedApproval {
            approval: ApprovalId::from_bytes([2; 16]),
            step: "wipe".into(),
            state,
            asked: Some("two_keys: it destroys something".into()),
            approved_by: approved_by.iter().map(|name| (*name).to_owned()).collect(),
            rejected_by: rejected_by.iter().map(|name| (*name).to_owned()).collect(),
        };
        let approvals = vec![
            decided(ApprovalState::Approved, &["ada", "bo for cy"], &[]),
            decided(ApprovalState::Rejected, &["ada"], &["dan"]),
            decided(ApprovalState::Expired, &[], &[]),
        ];
        let told = words(&Cause::Ended { at: Timestamp(0), reason: None, approvals }, Timestamp(60_000));
        let by_rule = " (two_keys: it destroys something).";
        for sentence in ["was approved by ada and bo for cy", "was rejected by dan", "was not decided in time"] {
            assert!(told.contains(&format!("Step `wipe` {sentence}{by_rule}")), "{told}");
        }
    }

    #[test]
    fn workers_that_the_policy_refused_are_named_with_the_rule() {
        let refused = RefusedWorker {
            session: SessionId::from_bytes([4; 16]),
            worker: "box-7".into(),
            why: "by_worker: it has no certificate".into(),
            bundle: HashHex(Hash([0; 32])),
            at: Timestamp(0),
        };
        let cause = Cause::Unclaimed {
            queue: "default".into(),
            task: Some("pay".into()),
            needs: BTreeSet::new(),
            since: Timestamp(0),
            workers: Some(0),
            only_embedded: false,
            refused: vec![refused],
        };
        let told = words(&cause, Timestamp(60_000));
        assert!(told.contains("the policy lets no registered worker of the queue `default`"), "{told}");
        assert!(told.contains("The policy refused the worker `box-7`: by_worker: it has no certificate."), "{told}");
    }

    #[test]
    fn an_error_of_several_lines_is_told_in_several_lines() {
        let error = Some(StepError::new(ErrorClass::Invalid, "EXIT_1", "one\ntwo"));
        let told = words(&Cause::StepFailed { step: "build".into(), error }, Timestamp(0));
        assert!(told.contains("one\n    two."), "{told}");
    }
}
