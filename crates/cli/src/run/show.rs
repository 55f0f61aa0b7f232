//! `interlock run show`: a run, and its steps drawn along the time they took.

use std::fmt::Write;

use clap::Args;
use interlock_core::ids::{ReceiptId, RunId};
use interlock_core::json::Json;
use interlock_core::run::event::Event;
use interlock_core::run::metrics::RunMetrics;
use interlock_core::run::receipt::Receipt;
use interlock_core::run::{Trigger, UNDO_TRIGGER};
use interlock_core::state::{AssignmentState, RunState, StepKind, StepState};
use interlock_core::text::visible::visible;
use interlock_core::time::{Millis, Timestamp};
use interlock_protocol::output::OutputPage;
use interlock_protocol::runs::{
    AssignmentView, AttemptList, AttemptView, DirectiveView, ReceiptList, RunView, StepList, StepView, path,
};
use serde::Serialize;

use super::list::state_words;
use super::permission::Permission;
use super::{RunArg, events, why};
use crate::client::live::RunEvent;
use crate::client::{Client, fill};
use crate::output::layouts;
use crate::output::paint::{Paint, run_tone, step_tone};
use crate::output::span::counted;
use crate::output::table::{Cell, Table, cut};
use crate::output::terminal;
use crate::output::wrap::wrapped;
use crate::output::{Printer, as_argument, indented_lines, span};

/// The widest that the bars are drawn.
const BARS_MAX: usize = 40;
/// How much of the output of a failed step is looked at, and shown.
const TAIL_CHUNKS: u64 = 20;
const TAIL_LINES: usize = 20;
const TAIL_CHARS: usize = 4_000;
/// Events that are looked at for who has skipped or rolled back; the newest.
const EVENTS_READ_MAX: usize = 1_000;
/// Why a step is skipped whose `if` does not hold, as its event says it.
const CONDITION_FALSE: &str = "condition is false";
/// The widest name of a line.
const NAME_COLUMNS: usize = 12;
/// How much of a payload is shown in one line.
const PAYLOAD_CHARS_MAX: usize = 120;

#[derive(Debug, Args)]
pub struct ShowRunArgs {
    #[command(flatten)]
    run: RunArg,
}

#[derive(Serialize)]
struct ShownRun {
    #[serde(flatten)]
    run: RunView,
    steps: Vec<StepView>,
    /// What the step that failed has written last.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tail: Option<OutputPage>,
    /// What people have done to its steps: skips and rollbacks, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    directives: Vec<StepDirective>,
    /// Effects that it left behind when it ended, of which nobody has said yet what became of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_in_doubt: Vec<DoubtfulEffect>,
    /// The run that continues it was made to undo it.
    #[serde(skip)]
    is_undone: bool,
    /// The attempts of a run of which steps are rolled back.
    #[serde(skip)]
    attempts: Vec<AttemptView>,
    #[serde(flatten)]
    permission: Permission,
}

/// An effect of which it is not known whether it took place.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct DoubtfulEffect {
    step: Option<String>,
    receipt: ReceiptId,
}

/// A skip or a rollback that a person asked for.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct StepDirective {
    /// `skipped` or `rolled back`.
    done: &'static str,
    /// The step that was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    by: String,
    at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

pub async fn run(client: &Client, printer: Printer, args: ShowRunArgs) -> anyhow::Result<()> {
    let id = super::find::run(client, &args.run.run).await?;
    let (run, steps) = (view(client, id).await?, steps(client, id).await?);
    let failed = steps.iter().rev().find(|step| step.error.is_some() && step.attempt > 0);
    let output_tail = match failed {
        Some(step) => tail(client, id, &step.key).await?,
        None => None,
    };
    let was_directed = !run.undone.is_empty()
        || run.state == RunState::RollingBack
        || steps.iter().any(|step| matches!(step.state, StepState::Skipped | StepState::RolledBack));
    let directives = if was_directed {
        let events = events::of_run(client, id, None, EVENTS_READ_MAX).await?;
        events.iter().rev().filter_map(|event| directive(event, run.created_at)).collect()
    } else {
        Vec::new()
    };
    let permission = Permission::of(client, id).await?;
    let left_in_doubt = if run.state.is_terminal() { left_in_doubt(client, id, &steps).await? } else { Vec::new() };
    let is_undone = match run.continued_by {
        Some(successor) => is_undo(client, successor).await,
        None => false,
    };
    let attempts = if steps.iter().any(|step| step.state == StepState::RolledBack) {
        client.get(fill(path::ATTEMPTS, &[("run", &id)])).send::<AttemptList>().await?.attempts
    } else {
        Vec::new()
    };
    let shown = ShownRun { run, steps, output_tail, directives, left_in_doubt, is_undone, attempts, permission };
    let widths = Widths { bars: printer.width(), prose: printer.prose_width() };
    printer.show(&shown, |paint| page(&shown, span::now(), paint, widths))
}

/// How many columns the drawing of the steps has, and the prose around it.
#[derive(Debug, Clone, Copy)]
struct Widths {
    bars: usize,
    prose: usize,
}

/// Whether a run was made to undo another one. One that cannot be read counts as none.
pub async fn is_undo(client: &Client, run: RunId) -> bool {
    view(client, run).await.is_ok_and(|run| run.trigger.kind == UNDO_TRIGGER)
}

async fn left_in_doubt(client: &Client, run: RunId, steps: &[StepView]) -> anyhow::Result<Vec<DoubtfulEffect>> {
    let list: ReceiptList = client.get(fill(path::RECEIPTS, &[("run", &run)])).send().await?;
    let doubtful = |receipt: Receipt| {
        let step = steps.iter().find(|step| step.position == receipt.position);
        DoubtfulEffect { step: step.map(|step| step.key.clone()), receipt: receipt.id }
    };
    Ok(list.receipts.into_iter().filter(Receipt::is_doubtful).map(doubtful).collect())
}

/// The person's directive that an event tells of. A step whose condition is false is skipped by no person,
/// and one that was skipped when the run began was skipped by a person in the run that this one continues.
fn directive(event: &RunEvent, created_at: Timestamp) -> Option<StepDirective> {
    let by = event.person.clone()?;
    let (done, step, reason) = match event.known.as_ref()? {
        Event::StepSkipped { why, .. } if why != CONDITION_FALSE && event.at > created_at => {
            ("skipped", event.step.clone(), Some(why.clone()))
        }
        Event::RollbackStarted { .. } => ("rolled back", None, event.reason.clone()),
        _ => return None,
    };
    Some(StepDirective { done, step, by, at: event.at, reason })
}

pub async fn view(client: &Client, run: RunId) -> anyhow::Result<RunView> {
    Ok(client.get(fill(path::RUN, &[("run", &run)])).send().await?)
}

pub async fn steps(client: &Client, run: RunId) -> anyhow::Result<Vec<StepView>> {
    let list: StepList = client.get(fill(path::STEPS, &[("run", &run)])).send().await?;
    Ok(list.steps)
}

/// The last chunks that a step has written; none where it has written nothing, or the server is of an earlier release.
async fn tail(client: &Client, run: RunId, step: &str) -> anyhow::Result<Option<OutputPage>> {
    let call = client.get(fill(path::OUTPUT, &[("run", &run), ("step", &step)])).query("tail", Some(TAIL_CHUNKS));
    match call.send::<OutputPage>().await {
        Ok(page) => Ok(Some(page).filter(|page| !page.chunks.is_empty())),
        Err(error) if error.status() == Some(404) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The last lines of it. Output need not have any line breaks.
fn tail_lines(page: &OutputPage) -> String {
    let text: String = page.chunks.iter().map(|chunk| chunk.text.as_str()).collect();
    let text = terminal::shown(&text, false);
    let from = text.char_indices().rev().nth(TAIL_CHARS - 1).map_or(0, |(at, _)| at);
    let mark = if from > 0 { "…" } else { "" };
    let text = format!("{mark}{}", &text[from..]);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].iter().flat_map(|line| ["  ", *line, "\n"]).collect()
}

/// `run_… succeeded in 4.2 s`, with what it ended for.
pub fn one_line(run: &RunView, paint: Paint) -> String {
    let state = paint.tone(run_tone(run.state), run.state);
    let took = run.duration_ms.map_or_else(String::new, |ms| format!(" in {}", span::span(Millis(ms))));
    let reason = run.reason.map_or_else(String::new, |reason| format!(" ({})", reason.as_str().replace('_', " ")));
    let error = run.error.as_ref().map_or_else(String::new, |error| format!(": {}", error_lines(error, 2)));
    format!("{} {state}{took}{reason}{error}\n", run.run_id)
}

/// An error as people read it, in one line: `CODE: message`.
pub fn error_text(error: &Json) -> String {
    visible(&error_message(error)).into_owned()
}

/// The same with its own line breaks.
fn error_lines(error: &Json, indent: usize) -> String {
    indented_lines(&error_message(error), indent)
}

fn error_message(error: &Json) -> String {
    let parsed = error.decode::<interlock_core::plan::retry::StepError>();
    parsed.map_or_else(|_| error.as_str().to_owned(), |error| error.to_string())
}

/// As much of a payload as stands beside its name in one line.
fn payload(json: &Json, width: usize) -> String {
    cut(&visible(json.as_str()), width.saturating_sub(NAME_COLUMNS + 1).min(PAYLOAD_CHARS_MAX))
}

fn page(shown: &ShownRun, now: Timestamp, paint: Paint, widths: Widths) -> String {
    let run = &shown.run;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let named = format!("{} {value}", paint.dim(format!("{name:<NAME_COLUMNS$}")));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", wrapped(&named, widths.prose, NAME_COLUMNS + 1));
    };
    line("run", paint.bold(run.run_id));
    line("state", paint.tone(run_tone(run.state), state_words(run.state, run.detail, run.reason)));
    line("workflow", format!("{} {}", visible(&run.workflow), paint.dim(format!("v{}", run.workflow_version))));
    if let Some(subject) = &run.subject {
        line("subject", visible(subject).into_owned());
    }
    if !run.labels.is_empty() {
        let labels: Vec<String> = run.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        line("labels", visible(&labels.join(" ")).into_owned());
    }
    let by = run.started_by.as_deref().map_or_else(String::new, |person| format!(" by {}", visible(person)));
    line("started", format!("{}{by}, {}", span::instant(run.created_at), span::away(run.created_at, now)));
    if run.started_by.is_none() && ![Trigger::API, UNDO_TRIGGER].contains(&run.trigger.kind.as_str()) {
        line("trigger", visible(&run.trigger.to_string()).into_owned());
    }
    match (run.finished_at, run.duration_ms) {
        (Some(at), Some(ms)) => line("ended", format!("{}, after {}", span::instant(at), span::span(Millis(ms)))),
        _ => line("so far", span::span(now.since(run.created_at))),
    }
    if let Some(deadline) = run.deadline_at.filter(|_| run.finished_at.is_none()) {
        line("deadline", format!("{}, {}", span::instant(deadline), span::away(deadline, now)));
    }
    let by = |directive: &DirectiveView| {
        let person = directive.by.as_deref().map_or_else(String::new, |person| format!("by {}, ", visible(person)));
        format!("{person}{}: {}", span::away(directive.at, now), visible(&directive.reason))
    };
    if let Some(metrics) = &run.metrics {
        line("numbers", numbers(metrics));
    }
    if let Some(spent) = run.spent_micros {
        let unit = run.spent_unit.as_deref().map_or_else(String::new, |unit| format!(" {}", visible(unit)));
        line("spent", format!("{}{unit}", spent as f64 / 1e6));
    }
    if let (Some(input), Some(output)) = (run.input_tokens, run.output_tokens) {
        line("tokens", format!("{input} in, {output} out"));
    }
    if let Some(known) = &run.assignment {
        line("assigned", assigned(known, now));
    }
    if let Some(cancellation) = &run.cancellation {
        line("canceled", by(cancellation));
    }
    if let Some(pause) = &run.pause {
        line("paused", by(pause));
    }
    for StepDirective { done, step, by, at, reason } in &shown.directives {
        let step = step.as_deref().map_or_else(String::new, |step| format!("{} ", visible(step)));
        let reason = reason.as_deref().map_or_else(String::new, |reason| format!(": {}", visible(reason)));
        line(done, format!("{step}by {}, {}{reason}", visible(by), span::away(*at, now)));
    }
    for (name, told) in shown.permission.lines(&shown.steps, now) {
        line(name, told);
    }
    if !run.undone.is_empty() {
        let key = |position: u32| shown.steps.iter().find(|step| step.position == position).map(|step| &*step.key);
        let steps: Vec<String> = run
            .undone
            .iter()
            .map(|undone| {
                let seen = match undone.verified {
                    Some(true) => ", verified",
                    Some(false) => ", unverified",
                    None => "",
                };
                format!("{} ({}{seen})", visible(key(undone.position).unwrap_or("?")), undone.outcome)
            })
            .collect();
        line("undone", steps.join(", "));
    }
    if let Some(from) = run.resumed_from {
        let word = if run.trigger.kind == UNDO_TRIGGER { "undoes" } else { "continues" };
        line(word, from.to_string());
    }
    if let Some(by) = run.continued_by {
        line(if shown.is_undone { "undone by" } else { "continued by" }, by.to_string());
    }
    for DoubtfulEffect { step, receipt } in &shown.left_in_doubt {
        let step = step.as_deref().map_or_else(String::new, |step| format!("{}: ", visible(step)));
        line("in doubt", format!("{step}whether its effect took place is not known ({receipt})"));
    }
    line("inputs", payload(&run.inputs, widths.prose));
    if let Some(output) = &run.output {
        line("output", payload(output, widths.prose));
    }
    if let Some(error) = &run.error {
        line("error", error_lines(error, NAME_COLUMNS + 1));
    }
    text.push('\n');
    text.push_str(&bars(shown, now, paint, widths));
    if let Some(page) = &shown.output_tail {
        let head = format!("{}, attempt {}: the end of its output", visible(&page.step), page.attempt);
        let _ = write!(text, "\n{}\n{}", paint.dim(head), tail_lines(page));
        let _ = writeln!(
            text,
            "{}",
            paint.dim(format!("interlock run logs {} --step {}", run.run_id, as_argument(&page.step)))
        );
    }
    if !run.state.is_terminal() {
        let _ = writeln!(text, "\n{}", paint.dim(format!("interlock run why {}   what it waits for", run.run_id)));
    }
    if let Some(DoubtfulEffect { step, .. }) = shown.left_in_doubt.first() {
        let command = why::resolve_command(run.run_id, step.as_deref());
        let what = "once you have looked in the other system: happened, did-not-happen or failed";
        let _ = writeln!(text, "\n{}\n{}", paint.dim(format!("interlock {command}")), paint.dim(format!("    {what}")));
    }
    text
}

/// From when to when each step was worked on, or waited for people or a signal.
fn spans(shown: &ShownRun, end: Timestamp) -> Vec<Option<(Timestamp, Timestamp)>> {
    // A wait has no worker that begins it: it begins where the step before it has ended.
    let mut before = shown.run.created_at;
    let mut all = Vec::with_capacity(shown.steps.len());
    for step in &shown.steps {
        let is_reached = !matches!(step.state, StepState::Pending | StepState::Ready | StepState::Skipped);
        let waits = is_reached && [StepKind::Approval, StepKind::Wait].iter().any(|kind| kind.as_str() == step.kind);
        let began = step.started_at.or(waits.then_some(before));
        let ended = match step.state {
            // It is finished since it was undone, which is the work of another step.
            StepState::RolledBack => worked_until(&shown.attempts, step.position).or(step.finished_at),
            state => step.finished_at.or((!state.is_finished()).then_some(end)),
        };
        all.push(began.zip(ended).map(|(from, to)| (from, to.max(from))));
        before = ended.unwrap_or(before);
    }
    all
}

fn worked_until(attempts: &[AttemptView], position: u32) -> Option<Timestamp> {
    attempts.iter().filter(|attempt| attempt.position == position).filter_map(|attempt| attempt.ended_at).max()
}

/// One line for each step, with a bar from when it began to when it ended, all on one scale.
fn bars(shown: &ShownRun, now: Timestamp, paint: Paint, widths: Widths) -> String {
    let (run, steps, width) = (&shown.run, &shown.steps, widths.bars);
    let begin = run.created_at;
    let end = run.finished_at.unwrap_or(now);
    let whole = end.since(begin).0.max(1);
    let mut table = Table::of(&layouts::STEPS);
    // What the other columns take, so that the bars get the rest.
    let names = steps.iter().map(|step| step.key.len() + step.kind.len() + step.state.as_str().len()).max();
    let room = width.saturating_sub(names.unwrap_or(0) + 28).clamp(10, BARS_MAX);
    for (step, span_of) in steps.iter().zip(spans(shown, end)) {
        let tone = step_tone(step.state);
        let tries = if step.attempt > 1 { step.attempt.to_string() } else { String::new() };
        let bar =
            span_of.map_or_else(String::new, |(from, to)| bar(from.since(begin).0, to.since(begin).0, whole, room));
        table.row([
            Cell::toned(tone, glyph(step.state)),
            Cell::new(&step.key),
            Cell::new(&step.kind),
            Cell::toned(tone, step.state.as_str()),
            Cell::new(tries),
            Cell::or_dash(span_of.map(|(from, to)| span::span(to.since(from)))),
            Cell::toned(tone, bar),
        ]);
    }
    let mut text = table.render(paint, width);
    for step in steps.iter().filter(|step| step.error.is_some()) {
        let error = step.error.as_ref().map(|error| error_lines(error, 4)).unwrap_or_default();
        // Writing to a string cannot fail.
        let told = format!("{} {}: {error}", paint.tone(step_tone(StepState::Failed), "✗"), visible(&step.key));
        let _ = writeln!(text, "{}", wrapped(&told, widths.prose, 2));
        if let Some(why) = &step.no_retry {
            let told = paint.dim(format!("not tried again: {}", visible(why)));
            let _ = writeln!(text, "{}", wrapped(&format!("  {told}"), widths.prose, 2));
        }
    }
    text
}

pub const fn glyph(state: StepState) -> &'static str {
    match state {
        StepState::Succeeded => "✓",
        StepState::Failed => "✗",
        StepState::InDoubt => "?",
        StepState::Running => "▶",
        StepState::Ready => "○",
        StepState::WaitingApproval | StepState::WaitingSignal => "…",
        StepState::Pending => "·",
        StepState::Skipped | StepState::Canceled => "–",
        StepState::RolledBack => "⟲",
    }
}

/// A bar of `room` cells for the stretch `from..to` of `whole`; never shorter than one cell.
fn bar(from: u64, to: u64, whole: u64, room: usize) -> String {
    let cell = |at: u64| ((at as f64 / whole as f64) * room as f64).round() as usize;
    let start = cell(from).min(room - 1);
    let end = cell(to).clamp(start + 1, room);
    format!("{}{}", " ".repeat(start), "━".repeat(end - start))
}

/// The worker that has the run as a whole, or what became of the search for one.
fn assigned(known: &AssignmentView, now: Timestamp) -> String {
    let since = known.since.map_or_else(String::new, |at| format!(", {}", span::away(at, now)));
    match (&known.worker, known.state) {
        (Some(worker), Some(AssignmentState::Acked)) => format!("to {}{since}", visible(worker)),
        (Some(worker), _) => format!("not yet: {} is asked{since}", visible(worker)),
        (None, _) if known.lost => "to no worker: its worker was lost in a command".to_owned(),
        (None, _) => match known.failures.last() {
            Some(failure) => format!("to no worker: {}", visible(&failure.to_string())),
            None => "to no worker".to_owned(),
        },
    }
}

/// A run that has ended in one line.
fn numbers(metrics: &RunMetrics) -> String {
    let RunMetrics { steps, succeeded, failed, attempts, retries, approvals, approval_wait_ms, .. } = *metrics;
    let (of, retries) = (counted(steps.into(), "step", "steps"), counted(retries.into(), "retry", "retries"));
    let attempts = counted(attempts.into(), "attempt", "attempts");
    let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    let mut text = format!("{succeeded} of {of} succeeded{failed}, {attempts}, {retries}");
    if approvals > 0 {
        let approvals = counted(approvals.into(), "approval", "approvals");
        // Writing to a string cannot fail.
        let _ = write!(text, ", {approvals} ({} waited)", span::span(Millis(approval_wait_ms)));
    }
    let _ = write!(text, ", {} of output", counted(metrics.output_bytes, "byte", "bytes"));
    if metrics.printed_bytes > 0 {
        let _ = write!(text, ", {} printed", counted(metrics.printed_bytes, "byte", "bytes"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_lie_on_one_scale_and_are_never_empty() {
        assert_eq!(bar(0, 50, 100, 10), "━━━━━");
        assert_eq!(bar(50, 100, 100, 10), "     ━━━━━");
        assert_eq!(bar(100, 100, 100, 10), "         ━");
        assert_eq!(bar(0, 0, 100, 10), "━");
    }

    fn step(position: u32, kind: &str, state: &str, at: [Option<i64>; 2]) -> StepView {
        serde_json::from_value(serde_json::json!({
            "position": position, "key": format!("s{position}"), "kind": kind, "state": state, "attempt": 1,
            "failures": 0, "iteration": 0, "started_at": at[0], "finished_at": at[1],
        }))
        .unwrap()
    }

    fn shown(state: &str, steps: Vec<StepView>) -> ShownRun {
        let run = serde_json::from_value(serde_json::json!({
            "run_id": RunId::from_bytes([1; 16]), "tenant": interlock_core::ids::TenantId::from_bytes([1; 16]),
            "workspace": "default", "workflow": "pay", "workflow_version": 1, "state": state, "position": 0,
            "version": 1, "trigger": { "type": "api" }, "priority": 0, "resume_count": 0, "created_at": 1_000,
            "inputs": {},
        }))
        .unwrap();
        ShownRun {
            run,
            steps,
            output_tail: None,
            directives: vec![],
            left_in_doubt: vec![],
            is_undone: false,
            attempts: vec![],
            permission: Permission::default(),
        }
    }

    #[test]
    fn the_end_of_output_is_short_also_where_it_has_no_lines() {
        let of = |text: &str| -> OutputPage {
            serde_json::from_value(serde_json::json!({
                "step": "a", "position": 0, "attempt": 1, "next_after": 1, "more": false, "attempts": [],
                "chunks": [{ "seq": 1, "attempt": 1, "stream": "stderr", "text": text, "at": 1 }],
            }))
            .unwrap()
        };
        assert_eq!(tail_lines(&of("one\ntwo\n")), "  one\n  two\n");
        let many: Vec<String> = (0..30).map(|at| at.to_string()).collect();
        assert_eq!(tail_lines(&of(&many.join("\n"))).lines().next(), Some("  10"));
        let long = tail_lines(&of(&"x".repeat(100_000)));
        assert_eq!(long, format!("  …{}\n", "x".repeat(TAIL_CHARS)));
    }

    #[test]
    fn a_wait_lasts_from_the_step_before_and_a_rolled_back_step_as_long_as_it_was_worked_on() {
        let steps = vec![
            step(0, "task", "rolled_back", [Some(1_000), Some(9_000)]),
            step(1, "approval", "succeeded", [None, Some(5_000)]),
            step(2, "wait", "waiting_signal", [None, None]),
            step(3, "wait", "pending", [None, None]),
        ];
        let mut shown = shown("rolling_back", steps);
        let attempt = serde_json::json!({
            "position": 0, "step": "s0", "attempt": 1, "session_id": interlock_core::ids::SessionId::from_bytes([1; 16]),
            "started_at": 1_000, "ended_at": 2_000, "outcome": "completed",
        });
        shown.attempts = vec![serde_json::from_value(attempt).unwrap()];
        let all: Vec<_> =
            spans(&shown, Timestamp(12_000)).into_iter().map(|span| span.map(|(a, b)| [a.0, b.0])).collect();
        assert_eq!(all, [Some([1_000, 2_000]), Some([2_000, 5_000]), Some([5_000, 12_000]), None]);
    }

    #[test]
    fn a_canceled_run_shows_the_doubt_that_it_left_and_the_command_that_settles_it() {
        let mut shown = shown("canceled", vec![step(0, "task", "canceled", [Some(1_000), Some(2_000)])]);
        shown.left_in_doubt = vec![DoubtfulEffect { step: Some("s0".into()), receipt: ReceiptId::from_bytes([4; 16]) }];
        let text = page(&shown, Timestamp(9_000), Paint::OFF, Widths { bars: 80, prose: 80 });
        assert!(text.contains("in doubt     s0: whether its effect took place is not known"), "{text}");
        let command = why::resolve_command(shown.run.run_id, Some("s0"));
        assert!(text.contains(&format!("interlock {command}\n")), "{text}");
        shown.run.continued_by = Some(RunId::from_bytes([2; 16]));
        shown.is_undone = true;
        assert!(
            page(&shown, Timestamp(9_000), Paint::OFF, Widths { bars: 80, prose: 80 }).contains("undone by    run_")
        );
    }

    #[test]
    fn skips_and_rollbacks_tell_who_asked_for_them_and_why() {
        let told = |kind: &str, payload: serde_json::Value, context: serde_json::Value| {
            let view = serde_json::json!({
                "id": "7", "type": kind, "run_id": RunId::from_bytes([1; 16]), "seq": 7, "at": 1_500, "step": "pay",
                "position": 2, "payload": payload, "context": context,
            });
            directive(&RunEvent::from_view(serde_json::from_value(view).unwrap()).unwrap(), Timestamp(1_000))
        };
        let olga = serde_json::json!({ "initiator": "operator", "person": "olga", "reason": "wrong box" });
        let skipped = told("execution.step.skipped", serde_json::json!({ "why": "by hand" }), olga.clone()).unwrap();
        assert_eq!((skipped.done, skipped.step.as_deref()), ("skipped", Some("pay")));
        assert_eq!((&*skipped.by, skipped.reason.as_deref()), ("olga", Some("by hand")));
        let condition = serde_json::json!({ "why": CONDITION_FALSE });
        assert_eq!(told("execution.step.skipped", condition, olga.clone()), None);
        let undone = told("execution.rollback.started", serde_json::json!({ "steps": [3] }), olga).unwrap();
        assert_eq!((undone.done, undone.reason.as_deref()), ("rolled back", Some("wrong box")));
    }
}
