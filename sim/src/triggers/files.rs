//! Workflow files by chance: one for each way in which something outside can start a run.

use std::fmt::Write as _;

use interlock_core::state::EffectClass;
use interlock_core::trigger::schedule::Overlap;

use crate::dice::Dice;
use crate::host::EPOCH;
use crate::sim::Sim;

pub struct File {
    pub name: String,
    pub source: String,
    pub cadence: Option<Cadence>,
    pub on_webhook: bool,
    pub on_signal: bool,
}

/// What a schedule in a file says.
pub struct Cadence {
    pub name: String,
    pub every_s: u64,
    pub overlap: Overlap,
    pub catch_up_s: u64,
    /// Operators pause, resume and trigger it.
    pub restless: bool,
}

/// The type of the signals that start runs.
pub const ALARM: &str = "alarm";
/// The name of the address that takes webhooks.
pub const ADDRESS: &str = "hooks";
/// What fields of runs a trigger fills in. `order` says what the run was started for.
const OF_SLOT: &str = "${{ trigger.schedule }}@${{ trigger.slot }}";
const OF_EVENT: &str = "${{ event.order }}";

/// Files that every tenant of the world applies.
pub fn draw(sim: &Sim, dice: &Dice) -> Vec<File> {
    let mut files = Vec::new();
    if sim.swarm.schedules {
        for number in 0..dice.between(1..=2) {
            files.push(scheduled(dice, number));
        }
    }
    if sim.swarm.inbound {
        for number in 0..dice.between(1..=2) {
            let on = format!("  webhook: {{ endpoint: {ADDRESS}, inputs: {} }}\n", inputs(OF_EVENT));
            let name = format!("hook-{number}");
            let source = source(dice, &name, &on);
            files.push(File { name, source, cadence: None, on_webhook: true, on_signal: false });
        }
        let on = format!("  signal: {{ type: {ALARM}, inputs: {} }}\n", inputs(OF_EVENT));
        let source = source(dice, "alarmed", &on);
        files.push(File { name: "alarmed".into(), source, cadence: None, on_webhook: false, on_signal: true });
    }
    files
}

/// Its slots lie in the minutes around the storm and then end, so that a world can come to its end.
fn scheduled(dice: &Dice, number: u64) -> File {
    let mut cadence = Cadence {
        name: format!("clock-{number}"),
        every_s: *dice.pick(&[4, 5, 7, 10, 15]),
        overlap: *dice.pick(Overlap::ALL),
        catch_up_s: *dice.pick(&[5, 20, 3_600]),
        restless: dice.one_in(3),
    };
    if cadence.overlap != Overlap::Allow {
        // A slot whose server died between its start and its record is taken for missed once its window is over.
        cadence.catch_up_s = 3_600;
    }
    let Cadence { name, every_s, overlap, catch_up_s, .. } = &cadence;
    let jitter_s = *dice.pick(&[0, 0, 2]);
    let mut on = format!("  schedule:\n    - name: {name}\n      cron: \"*/{every_s} 46-47 9 3 7 *\"\n");
    let _ = writeln!(on, "      overlap: {overlap}\n      catch_up: {catch_up_s}s\n      jitter: {jitter_s}s");
    let _ = writeln!(on, "      inputs: {}", inputs(OF_SLOT));
    let name = format!("by-{name}");
    let source = source(dice, &name, &on);
    File { name, source, cadence: Some(cadence), on_webhook: false, on_signal: false }
}

fn inputs(order: &str) -> String {
    format!("{{ n: 1, until: {}, order: \"{order}\" }}", EPOCH.0)
}

fn source(dice: &Dice, name: &str, on: &str) -> String {
    let mut text = format!("name: {name}\non:\n{on}inputs:\n");
    text += "  n: { type: integer, required: true }\n  until: { type: integer, required: true }\n";
    text += "  order: { type: string, required: true }\nsteps:\n";
    for number in 0..dice.between(1..=2) {
        let (class, effects) = (*dice.pick(EffectClass::ALL), dice.between(0..=2));
        let _ = writeln!(text, "  - id: s{number}\n    task: work.{class}.{effects}.plain\n    effect: {class}");
        text += "    retry: { max_attempts: 4, backoff: 300ms }\n";
    }
    if dice.one_in(2) {
        let _ = writeln!(text, "  - id: rest\n    wait: {{ for: {}ms }}", dice.between(500..=9_000));
    }
    text
}
