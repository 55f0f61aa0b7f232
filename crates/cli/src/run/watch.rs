//! `interlock run watch`: a run as it happens. On a terminal the steps are drawn anew as they move on, with progress
//! and output; elsewhere each event is a line.

use clap::Args;
use interlock_core::ids::RunId;
use interlock_core::run::event::Event;
use interlock_core::state::RunState;
use interlock_core::text::visible::visible;
use interlock_protocol::runs::{RunView, StepView};
use tokio::sync::mpsc;

use super::{RunArg, board, find, show};
use crate::client::live::{Follow, FollowUpdate, RunEvent, Topic, Via};
use crate::client::{Client, ClientError};
use crate::output::exit::{Exit, ExitError};
use crate::output::paint::Tone;
use crate::output::table::cut;
use crate::output::tell::tell;
use crate::output::{Format, Printer, say, span};

/// How much of a step's output a line shows.
const OUTPUT_CHARS_MAX: usize = 160;
/// Events on their way from the connection to the screen.
const QUEUED_MAX: usize = 64;

#[derive(Debug, Args)]
pub struct WatchArgs {
    #[command(flatten)]
    run: RunArg,
    /// How to listen; by default a WebSocket, else server-sent events, else polling.
    #[arg(long, value_enum)]
    via: Option<Via>,
    /// Only what comes after this event.
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
    /// One line for each event, also on a terminal.
    #[arg(long)]
    plain: bool,
}

pub async fn run(client: &Client, printer: Printer, args: WatchArgs) -> anyhow::Result<()> {
    let run = find::run(client, &args.run.run).await?;
    let follow = Follow::new(client.clone(), Topic::Run(run), args.since, args.via);
    let told = listen(follow);
    let watching = async {
        if printer.terminal && printer.format == Format::Table && !args.plain {
            board::watch(client, printer, run, told).await
        } else {
            lines(client, printer, run, told).await
        }
    };
    let ended = tokio::select! {
        ended = watching => ended?,
        _ = tokio::signal::ctrl_c() => {
            printer.note(&format!("\nThe run goes on; `interlock run watch {run}` follows it again."));
            return Err(ExitError::silently(Exit::Interrupted));
        }
    };
    if ended.state == RunState::Succeeded { Ok(()) } else { Err(ExitError::silently(Exit::Unsuccessful)) }
}

/// Listens in a task of its own, so that drawing never disturbs the connection.
fn listen(mut follow: Follow) -> mpsc::Receiver<Result<FollowUpdate, ClientError>> {
    let (tell, told) = mpsc::channel(QUEUED_MAX);
    tokio::spawn(async move {
        loop {
            let next = follow.next().await;
            let last = matches!(next, Err(_) | Ok(FollowUpdate::End));
            if tell.send(next).await.is_err() || last {
                return;
            }
        }
    });
    told
}

/// One line for each event.
async fn lines(
    client: &Client,
    printer: Printer,
    run: RunId,
    mut told: mpsc::Receiver<Result<FollowUpdate, ClientError>>,
) -> anyhow::Result<RunView> {
    let mut steps = show::steps(client, run).await?;
    while let Some(next) = told.recv().await {
        match next? {
            FollowUpdate::Events(events) => {
                if events.iter().any(|event| changes_steps(event, steps.len())) {
                    steps = show::steps(client, run).await?;
                }
                for event in &events {
                    print(printer, event, &steps)?;
                }
            }
            FollowUpdate::Lost(what) => printer.note(&format!("{what}; reconnecting …")),
            FollowUpdate::End => break,
        }
    }
    let view = show::view(client, run).await?;
    if printer.format == Format::Table {
        say(&show::one_line(&view, printer.paint))?;
    }
    Ok(view)
}

/// Whether the steps have to be read again: there is output, or a step that was not there.
fn changes_steps(event: &RunEvent, known: usize) -> bool {
    let Some(event) = &event.known else { return false };
    matches!(event, Event::StepCompleted { .. } | Event::RollbackStarted { .. })
        || event.step().is_some_and(|step| step as usize >= known)
}

fn print(printer: Printer, event: &RunEvent, steps: &[StepView]) -> anyhow::Result<()> {
    if printer.format != Format::Table {
        // One JSON document a line for YAML as well: few tools read a stream of YAML documents.
        return say(&serde_json::to_string(event)?);
    }
    let Some(line) = line(printer, event, steps) else { return Ok(()) };
    say(&line)
}

/// `14:02:11.608  check           ✓ done  {"stock":true}`
pub fn line(printer: Printer, event: &RunEvent, steps: &[StepView]) -> Option<String> {
    let known = event.known.as_ref()?;
    let (tone, text) = tell(known)?;
    let step = known.step().and_then(|position| steps.get(position as usize));
    let key = event.step.as_deref().or(step.map(|step| step.key.as_str())).unwrap_or_default();
    let output = match known {
        Event::StepCompleted { .. } => step.and_then(|step| step.output.as_ref()),
        _ => None,
    };
    let output = output.filter(|output| output.as_str() != "null").map_or_else(String::new, |output| {
        format!("  {}", printer.paint.tone(Tone::Dim, cut(&visible(output.as_str()), OUTPUT_CHARS_MAX)))
    });
    let by = event.caused(&text);
    let told = printer.paint.tone(tone, format!("{:<15} {}{by}", visible(key), visible(&text)));
    Some(format!("{}  {told}{output}", span::clock(event.at)))
}
