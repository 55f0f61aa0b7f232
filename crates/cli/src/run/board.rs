//! The live picture of a run: its steps drawn anew in place, what it waits for, how far it is, what happened last.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::Duration;

use interlock_core::ids::RunId;
use interlock_core::run::why::Cause;
use interlock_core::state::{RunState, StepState};
use interlock_core::text::visible::visible;
use interlock_core::time::Timestamp;
use interlock_protocol::runs::{RunView, StepView};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::watch::line;
use super::{show, why};
use crate::client::live::FollowUpdate;
use crate::client::{Client, ClientError};
use crate::output::paint::{Paint, Tone, run_tone, step_tone};
use crate::output::table::cut;
use crate::output::{Printer, columns, span};

/// The picture moves this often: spinner and clocks.
const TICK: Duration = Duration::from_millis(120);
/// News are read together, not one by one.
const READ_EVERY: Duration = Duration::from_millis(150);
/// The newest events that are shown below the steps.
const EVENTS_SHOWN: usize = 5;
/// Steps that are shown at once; a longer run shows those around where it stands.
const STEPS_SHOWN_MAX: usize = 24;
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const BAR_CELLS: usize = 24;

struct Board {
    view: RunView,
    steps: Vec<StepView>,
    waits: Option<Cause>,
    recent: VecDeque<String>,
    lost: Option<String>,
    ticks: usize,
    /// Lines that the last picture took.
    drawn: usize,
    paint: Paint,
}

/// Hides the cursor while the picture moves, and gives it back however this ends.
struct HiddenCursor;

impl HiddenCursor {
    fn new() -> Self {
        write_out("\x1b[?25l");
        Self
    }
}

impl Drop for HiddenCursor {
    fn drop(&mut self) {
        write_out("\x1b[?25h");
    }
}

fn write_out(text: &str) {
    let mut out = io::stdout().lock();
    // A closed terminal cannot be drawn on, and does not have to be.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

pub async fn watch(
    client: &Client,
    printer: Printer,
    run: RunId,
    mut told: mpsc::Receiver<Result<FollowUpdate, ClientError>>,
) -> anyhow::Result<RunView> {
    let mut board = Board {
        view: show::view(client, run).await?,
        steps: show::steps(client, run).await?,
        waits: None,
        recent: VecDeque::new(),
        lost: None,
        ticks: 0,
        drawn: 0,
        paint: printer.paint,
    };
    let _hidden = HiddenCursor::new();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut stale_since: Option<Instant> = None;
    let mut ended = false;
    board.read_waits(client).await;
    while !ended {
        tokio::select! {
            next = told.recv() => match next {
                Some(Ok(FollowUpdate::Events(events))) => {
                    board.lost = None;
                    for event in &events {
                        if let Some(line) = line(printer, event, &board.steps) {
                            board.recent.push_back(line);
                        }
                    }
                    while board.recent.len() > EVENTS_SHOWN {
                        board.recent.pop_front();
                    }
                    stale_since.get_or_insert_with(Instant::now);
                }
                Some(Ok(FollowUpdate::Lost(what))) => board.lost = Some(what),
                Some(Err(error)) => return Err(error.into()),
                Some(Ok(FollowUpdate::End)) | None => ended = true,
            },
            _ = ticks.tick() => {
                board.ticks += 1;
                if stale_since.is_some_and(|since| since.elapsed() >= READ_EVERY) {
                    stale_since = None;
                    board.read(client, run).await;
                }
                board.draw(span::now());
            }
        }
    }
    board.view = show::view(client, run).await?;
    board.steps = show::steps(client, run).await?;
    board.waits = None;
    board.draw(span::now());
    Ok(board.view)
}

impl Board {
    /// Where the run stands now. A server that is away leaves the last picture as it was.
    async fn read(&mut self, client: &Client, run: RunId) {
        let (view, steps) = tokio::join!(show::view(client, run), show::steps(client, run));
        if let (Ok(view), Ok(steps)) = (view, steps) {
            (self.view, self.steps) = (view, steps);
        }
        self.read_waits(client).await;
    }

    async fn read_waits(&mut self, client: &Client) {
        let still = matches!(self.view.state, RunState::WaitingApproval | RunState::WaitingSignal | RunState::Paused);
        let pending = self.view.state == RunState::Pending || self.view.detail.is_some();
        self.waits = None;
        if still || pending {
            let explained = why::ask(client, self.view.run_id).await.ok();
            self.waits = explained.and_then(|explanation| explanation.because.into_iter().next());
        }
    }

    fn draw(&mut self, now: Timestamp) {
        let width = columns().unwrap_or(80).max(20);
        let lines = self.lines(now, width);
        let mut picture = String::new();
        if self.drawn > 0 {
            picture = format!("\x1b[{}A\r\x1b[J", self.drawn);
        }
        self.drawn = lines.len();
        for line in lines {
            picture.push_str(&line);
            picture.push('\n');
        }
        write_out(&picture);
    }

    fn lines(&self, now: Timestamp, width: usize) -> Vec<String> {
        let paint = self.paint;
        let view = &self.view;
        let took = view.finished_at.unwrap_or(now).since(view.created_at);
        let subject = view.subject.as_deref().map_or_else(String::new, |subject| format!(" · {}", visible(subject)));
        let title = cut(&format!("{}{subject} · {}", visible(&view.workflow), view.run_id), width.saturating_sub(32));
        let state = paint.tone(run_tone(view.state), format!("● {}", view.state));
        let mut lines = vec![format!("{}  {state}  {}", paint.bold(title), span::span(took)), String::new()];
        let (from, to) = self.window();
        if from > 0 {
            lines.push(paint.dim(format!("    … {} before", span::counted(from as u64, "step", "steps"))));
        }
        lines.extend(self.steps[from..to].iter().map(|step| self.step(step, now, width)));
        if to < self.steps.len() {
            let more = (self.steps.len() - to) as u64;
            lines.push(paint.dim(format!("    … {} more", span::counted(more, "step", "steps"))));
        }
        lines.push(String::new());
        lines.push(self.progress());
        if let Some(cause) = &self.waits {
            lines.push(paint.tone(Tone::Careful, cut(&format!("  {}", visible(&why::words(cause, now))), width)));
        }
        if let Some(lost) = &self.lost {
            lines.push(paint.tone(Tone::Bad, cut(&format!("  {}; reconnecting …", visible(lost)), width)));
        }
        if let Some(error) = view.error.as_ref().filter(|_| view.state.is_terminal()) {
            lines.push(paint.tone(Tone::Bad, cut(&format!("  {}", show::error_text(error)), width)));
        }
        if !self.recent.is_empty() {
            lines.push(String::new());
            lines.extend(self.recent.iter().map(|line| cut_painted(line, width)));
        }
        lines
    }

    /// The steps that fit, around where the run stands.
    fn window(&self) -> (usize, usize) {
        let count = self.steps.len();
        let at = self.view.position as usize;
        let from = at.saturating_sub(STEPS_SHOWN_MAX / 2).min(count.saturating_sub(STEPS_SHOWN_MAX));
        (from, (from + STEPS_SHOWN_MAX).min(count))
    }

    fn step(&self, step: &StepView, now: Timestamp, width: usize) -> String {
        let paint = self.paint;
        let tone = step_tone(step.state);
        let glyph = match step.state {
            StepState::Running => SPINNER[self.ticks % SPINNER.len()],
            state => show::glyph(state),
        };
        let until = step.finished_at.or((!step.state.is_finished()).then_some(now));
        let took = step.started_at.zip(until).map(|(from, to)| span::span(to.since(from))).unwrap_or_default();
        let tries = if step.attempt > 1 { format!("{} tries", step.attempt) } else { String::new() };
        let state = match step.state {
            StepState::Succeeded | StepState::Pending => String::new(),
            state => state.to_string(),
        };
        let key = cut(&visible(&step.key), 24);
        let text = format!("{key:<24} {took:>12}  {tries:<9} {state}");
        let left = width.saturating_sub(4 + 24 + 1 + 12 + 2 + 9 + 1 + state.len() + 2);
        let output = step.output.as_ref().filter(|output| output.as_str() != "null");
        let output = output.map_or_else(String::new, |output| cut(&visible(output.as_str()), left.min(80)));
        let line = format!(
            "  {} {}",
            paint.tone(tone, glyph),
            paint.tone(if tone == Tone::Dim { tone } else { Tone::Plain }, text)
        );
        if output.is_empty() { line.trim_end().to_owned() } else { format!("{line}{}", paint.dim(output)) }
    }

    fn progress(&self) -> String {
        let done = self.steps.iter().filter(|step| step.state.is_finished()).count();
        let count = self.steps.len().max(1);
        let cells = done * BAR_CELLS / count;
        let bar = format!("{}{}", "█".repeat(cells), "░".repeat(BAR_CELLS - cells));
        let steps = span::counted(self.steps.len() as u64, "step", "steps");
        format!("  {} {done} of {steps}", self.paint.tone(run_tone(self.view.state), bar))
    }
}

/// A line that has colours in it is cut without counting them, and ends without any.
fn cut_painted(line: &str, width: usize) -> String {
    let mut shown = String::new();
    let (mut used, mut escape) = (0, false);
    for c in line.chars() {
        if c == '\x1b' {
            escape = true;
        } else if !escape {
            used += unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
            if used >= width {
                shown.push_str("…\x1b[0m");
                return shown;
            }
        }
        shown.push(c);
        escape = escape && c != 'm';
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_do_not_count_when_a_line_is_cut() {
        assert_eq!(cut_painted("\x1b[31mabc\x1b[0m", 10), "\x1b[31mabc\x1b[0m");
        assert_eq!(cut_painted("\x1b[31mabcdef\x1b[0m", 4), "\x1b[31mabc…\x1b[0m");
    }
}
