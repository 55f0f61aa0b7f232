//! The page about states, made from the machines themselves.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display, Write};

use interlock_core::machine;
use interlock_core::machine::approval::ApprovalEvent;
use interlock_core::machine::assignment::AssignmentEvent;
use interlock_core::machine::receipt::ReceiptEvent;
use interlock_core::machine::step::StepEvent;
use interlock_core::state::{ApprovalState, AssignmentState, ReceiptState, RunState, StepKind, StepState, WorkerState};

pub const REGENERATE: &str = "cargo run -p interlock-core --example states > docs/reference/states.md";

pub fn page() -> String {
    let mut page = format!(
        "<!-- @generated from crates/core/src/machine. To make it anew:\n     {REGENERATE} -->\n\n\
         # States\n\n\
         Every state machine of Interlock: what the states mean and which way they lead. An arrow that is\n\
         not here does not exist; asking for it is refused with `RUN_INVALID_TRANSITION`.\n\n"
    );
    run(&mut page);
    step(&mut page);
    small_machines(&mut page);
    worker(&mut page);
    page
}

fn run(page: &mut String) {
    *page += "## Run\n\n\
              A run's state is never set: it is projected from its control (`active`, `paused`, `canceling`,\n\
              `canceled`), its steps and its rollback, first match wins: rollback outstanding → `rolling_back`;\n\
              canceled → `canceled`; all forward steps succeeded or skipped → `succeeded`; paused, or an unresolved\n\
              doubt → `paused`; a step failed or was rolled back → `failed`; `waiting_approval`; `waiting_signal`;\n\
              never started → `pending`; else `running`.\n\n";
    meanings(page, RunState::ALL.iter().map(|state| (state.as_str(), state.meaning())));
    let mut arrows = Arrows::default();
    for from in RunState::ALL {
        for to in RunState::ALL {
            if from != to && machine::run::allowed(*from, *to) {
                arrows.add(*from, *to, "");
            }
        }
    }
    arrows.draw(page, RunState::Pending, RunState::is_terminal);
}

fn step(page: &mut String) {
    *page += "## Step\n\n";
    meanings(page, StepState::ALL.iter().map(|state| (state.as_str(), state.meaning())));
    *page += "The diagram holds the arrows of all kinds of steps; the table says which kind goes where.\n\n";
    let mut arrows = Arrows::default();
    let mut table: Vec<(StepState, StepEvent, BTreeMap<StepState, Vec<StepKind>>)> = Vec::new();
    for from in StepState::ALL {
        for event in StepEvent::ALL {
            let mut targets = BTreeMap::<_, Vec<_>>::new();
            for kind in StepKind::ALL.iter().filter(|kind| can_be(**kind, *from)) {
                if let Some(to) = machine::step::next(*from, *kind, *event) {
                    targets.entry(to).or_default().push(*kind);
                    arrows.add(*from, to, &bare(*event));
                }
            }
            if !targets.is_empty() {
                table.push((*from, *event, targets));
            }
        }
    }
    arrows.draw(page, StepState::Pending, StepState::is_finished);
    *page += "| from | event | to |\n|---|---|---|\n";
    for (from, event, targets) in table {
        let all = StepKind::ALL.iter().filter(|kind| can_be(**kind, from)).count();
        let cell: Vec<_> = targets
            .iter()
            .map(|(to, kinds)| {
                if kinds.len() == all {
                    format!("`{to}`")
                } else {
                    let kinds: Vec<_> = kinds.iter().map(|kind| kind.as_str()).collect();
                    format!("`{to}` ({})", kinds.join(", "))
                }
            })
            .collect();
        writeln!(page, "| `{from}` | {event} | {} |", cell.join("; ")).unwrap();
    }
    *page += "\n";
}

/// Whether a step of this kind can ever be in this state.
fn can_be(kind: StepKind, state: StepState) -> bool {
    let mut seen = vec![StepState::Pending];
    let mut at = 0;
    while let Some(from) = seen.get(at).copied() {
        at += 1;
        for to in StepEvent::ALL.iter().filter_map(|event| machine::step::next(from, kind, *event)) {
            if !seen.contains(&to) {
                seen.push(to);
            }
        }
    }
    seen.contains(&state)
}

/// The event without its details, for the diagram.
fn bare(event: StepEvent) -> String {
    let text = event.to_string();
    text.split('(').next().unwrap_or(&text).to_owned()
}

fn small_machines(page: &mut String) {
    *page += "## Approval\n\n\
              One eligible reject rejects, a quorum of different people approves. Nothing expires into an approval:\n\
              that arrow does not exist.\n\n";
    machine_of(page, ApprovalState::ALL, ApprovalEvent::ALL, machine::approval::next);
    *page += "## Receipt\n\n\
              The intent is committed before the effect, the outcome after it. What lies between is doubt, which is\n\
              settled by a probe or a person, never by a blind retry. An effect that may be repeated is asked for again under the same\n\
              receipt, which begins anew; that a later try was refused leaves an earlier one without an answer in doubt.\n\n";
    machine_of(page, ReceiptState::ALL, ReceiptEvent::ALL, machine::receipt::next);
    *page += "## Assignment\n\n\
              One offer of a run to one worker session, where the run's commands share a directory. It permits nothing:\n\
              it only narrows who may claim.\n\n";
    machine_of(page, AssignmentState::ALL, AssignmentEvent::ALL, machine::assignment::next);
    page.truncate(page.trim_end().len());
    page.push('\n');
}

fn worker(page: &mut String) {
    *page += "\n## Worker\n\n\
              A worker's state follows from its session. Where several would fit, `offline` counts first, then `draining`,\n\
              `maintenance` and `errored`.\n\n";
    meanings(page, WorkerState::ALL.iter().map(|state| (state.as_str(), meaning(*state))));
    page.truncate(page.trim_end().len());
    page.push('\n');
}

const fn meaning(state: WorkerState) -> &'static str {
    match state {
        WorkerState::Online => "it is given work; whether it has some is counted apart",
        WorkerState::Draining => "it finishes what it has, and leaves",
        WorkerState::Maintenance => "an operator keeps new work from it; it stays, and keeps what it has",
        WorkerState::Errored => {
            "a canary, an attestation or a check before a run has failed, or it has lost three assignments in a row"
        }
        WorkerState::Offline => "it has signed off, or its lease is over",
    }
}

fn machine_of<S: Copy + Ord + Display, E: Copy + Debug>(
    page: &mut String,
    states: &[S],
    events: &[E],
    next: fn(S, E) -> Option<S>,
) {
    let mut arrows = Arrows::default();
    for from in states {
        for event in events {
            if let Some(to) = next(*from, *event) {
                arrows.add(*from, to, &format!("{event:?}"));
            }
        }
    }
    arrows.draw(page, states[0], |state| events.iter().all(|event| next(state, *event).is_none()));
}

/// The arrows of a diagram, with the events of those that share both ends put together.
struct Arrows<S>(Vec<(S, S, Vec<String>)>);

impl<S> Default for Arrows<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<S: Copy + Ord + Display> Arrows<S> {
    fn add(&mut self, from: S, to: S, event: &str) {
        let known = self.0.iter().position(|(a, b, _)| (*a, *b) == (from, to));
        let at = known.unwrap_or_else(|| {
            self.0.push((from, to, Vec::new()));
            self.0.len() - 1
        });
        let events = &mut self.0[at].2;
        if !event.is_empty() && !events.iter().any(|known| known == event) {
            events.push(event.to_owned());
        }
    }

    fn draw(&self, page: &mut String, first: S, is_last: impl Fn(S) -> bool) {
        writeln!(page, "```mermaid\nstateDiagram-v2\n    [*] --> {first}").unwrap();
        let mut ends: Vec<S> = Vec::new();
        for (from, to, events) in &self.0 {
            let label = if events.is_empty() { String::new() } else { format!(" : {}", events.join(", ")) };
            writeln!(page, "    {from} --> {to}{label}").unwrap();
            if is_last(*to) && !ends.contains(to) {
                ends.push(*to);
            }
        }
        for end in ends {
            writeln!(page, "    {end} --> [*]").unwrap();
        }
        *page += "```\n\n";
    }
}

fn meanings(page: &mut String, rows: impl Iterator<Item = (&'static str, &'static str)>) {
    *page += "| state | meaning |\n|---|---|\n";
    for (state, meaning) in rows {
        writeln!(page, "| `{state}` | {meaning} |").unwrap();
    }
    *page += "\n";
}
