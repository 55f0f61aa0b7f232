//! Runs of a subject take their turns in the order in which they were asked for: no run gets the subject while an
//! earlier one waits for it. What counts as earlier is the run's id, which begins with the instant of its start.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::ids::{RunId, TenantId};
use interlock_core::run::event::Event;
use interlock_core::time::{Millis, Timestamp};
use interlock_store::RunSummary;

use super::ALL;
use crate::sim::Sim;

/// A place in the tenant's feed. What several servers commit stands there by their clocks.
#[derive(Clone, Copy, Default)]
struct FeedPosition {
    cursor: u64,
    at: Timestamp,
}

/// A run of some subject.
#[derive(Default)]
struct Turn {
    made: FeedPosition,
    /// When it got the subject.
    got: Option<FeedPosition>,
    waited: bool,
}

impl Turn {
    /// Whether it stood in the queue at this place of the feed, whichever of two clocks was ahead.
    fn waits_at(&self, place: FeedPosition, skew: Millis) -> bool {
        let before = |first: FeedPosition, then: FeedPosition| first.cursor < then.cursor && first.at + skew <= then.at;
        self.waited && before(self.made, place) && self.got.is_some_and(|got| before(place, got))
    }
}

pub async fn check(sim: &Sim, tenant: TenantId, runs: &[RunSummary]) -> Result<(), String> {
    let mut turns: BTreeMap<RunId, Turn> = BTreeMap::new();
    let subjects: BTreeMap<RunId, &str> =
        runs.iter().filter_map(|run| Some((run.run, run.subject.as_deref()?))).collect();
    let mut cursor = 0;
    loop {
        let events = sim.database().tenant_events(tenant, cursor, ALL).await.map_err(|error| error.to_string())?.events;
        if events.is_empty() {
            break;
        }
        for record in events {
            cursor = record.cursor;
            if subjects.contains_key(&record.run) {
                let event: Event = record.event.decode().map_err(|error| format!("an event is no event: {error}"))?;
                turns.entry(record.run).or_default().take(&event, FeedPosition { cursor, at: record.at });
            }
        }
    }
    let mut of_subject: BTreeMap<&str, BTreeSet<RunId>> = BTreeMap::new();
    for (run, subject) in subjects {
        of_subject.entry(subject).or_default().insert(run);
    }
    for (subject, line) in of_subject {
        for run in &line {
            let Some(got) = turns.get(run).and_then(|turn| turn.got) else { continue };
            let waits = |earlier: &&RunId| turns.get(*earlier).is_some_and(|turn| turn.waits_at(got, sim.swarm.skew()));
            // What two lanes of one server commit does not stand in the feed in the order of the commits.
            let overtaken = if sim.swarm.quiet { None } else { line.range(..run).find(waits) };
            if let Some(earlier) = overtaken {
                return Err(format!("subjects: {run} got {subject} before {earlier}, which came earlier"));
            }
            sim.tally.add("turns of a subject", u64::from(turns[run].waited));
        }
    }
    Ok(())
}

impl Turn {
    fn take(&mut self, event: &Event, place: FeedPosition) {
        match event {
            Event::RunCreated { .. } => self.made = place,
            Event::StepReady { why, .. } if why == "subject_free" => (self.got, self.waited) = (Some(place), true),
            // One that does something without having waited got it as it was made.
            Event::StepStarted { .. } | Event::StepWaiting { .. } | Event::ApprovalRequested { .. } => {
                self.got.get_or_insert(self.made);
            }
            _ => {}
        }
    }
}
