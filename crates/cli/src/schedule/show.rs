//! `interlock schedule show`.

use std::fmt::Write as _;

use interlock_core::text::visible::visible;
use interlock_core::trigger::schedule::SlotState;
use interlock_protocol::schedules::{ScheduleDetail, path};

use crate::client::{Client, fill};
use crate::output::layouts;
use crate::output::paint::Tone;
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};

pub async fn run(client: &Client, printer: Printer, name: &str) -> anyhow::Result<()> {
    let detail: ScheduleDetail = client.get(fill(path::SCHEDULE, &[("schedule", &name)])).send().await?;
    printer.show(&detail, |paint| {
        let mut text = String::new();
        let schedule = &detail.schedule;
        let mut line = |name: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{} {}", paint.dim(format!("{name:<10}")), visible(value));
        };
        line("schedule", &format!("{} ({})", schedule.name, schedule.schedule_id));
        line("workflow", &schedule.workflow);
        line("cron", &format!("{}  {}", schedule.cron, schedule.description));
        line("zone", &format!("{}, clock changes: {}", schedule.timezone, schedule.dst));
        line("overlap", schedule.overlap.as_str());
        line("catch up", &span::span(schedule.catch_up_ms));
        line("jitter", &span::span(schedule.jitter_ms));
        line("inputs", schedule.inputs.as_str());
        match &schedule.next {
            _ if schedule.paused => line("next", "paused"),
            Some(next) => line("next", &format!("{} ({})", next.local, next.utc)),
            None => line("next", "-"),
        }
        if let Some(note) = &schedule.note {
            line("note", note);
        }
        if !detail.slots.is_empty() {
            text.push('\n');
            text.push_str(&slots(&detail).render(paint, printer.width()));
        }
        text
    })
}

fn slots(detail: &ScheduleDetail) -> Table {
    let mut table = Table::of(&layouts::SCHEDULE_SLOTS);
    for slot in &detail.slots {
        let tone = match slot.state {
            SlotState::Started => Tone::Good,
            SlotState::Failed | SlotState::Missed => Tone::Bad,
            SlotState::Queued | SlotState::Skipped => Tone::Dim,
        };
        table.row([
            Cell::new(&slot.utc),
            Cell::toned(tone, slot.state.as_str()),
            Cell::or_dash(slot.run_id.map(|run| run.to_string())),
            Cell::or_dash(slot.note.as_ref()),
        ]);
    }
    table
}
