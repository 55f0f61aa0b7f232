//! Runs of a subject take their turns in the order in which they were asked for: nobody gets it while somebody who came
//! earlier waits for it. What counts as earlier is the run's id, which begins with the instant of its start.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::event::Event;
use interlock_core::ids::{RunId, TenantId};
use interlock_store::RunSummary;

use super::ALL;
use crate::sim::Sim;

/// A run of some subject, by places in the tenant's feed.
#[derive(Default)]
struct Place {
    made: u64,
    /// When it got the subject.
    turn: Option<u64>,
    waited: bool,
}

impl Place {
    /// Whether it stood in the queue at this place of the feed.
    fn waits_at(&self, cursor: u64) -> bool {
        self.waited && self.made < cursor && self.turn.is_some_and(|turn| cursor < turn)
    }
}

pub async fn check(sim: &Sim, tenant: TenantId, runs: &[RunSummary]) -> Result<(), String> {
    let mut places: BTreeMap<RunId, Place> = BTreeMap::new();
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
                places.entry(record.run).or_default().take(&event, cursor);
            }
        }
    }
    let mut of_subject: BTreeMap<&str, BTreeSet<RunId>> = BTreeMap::new();
    for (run, subject) in subjects {
        of_subject.entry(subject).or_default().insert(run);
    }
    for (subject, line) in of_subject {
        for run in &line {
            let Some(turn) = places.get(run).and_then(|place| place.turn) else { continue };
            let overtaken =
                line.range(..run).find(|earlier| places.get(*earlier).is_some_and(|place| place.waits_at(turn)));
            if let Some(earlier) = overtaken {
                return Err(format!("subjects: {run} got {subject} before {earlier}, which came earlier"));
            }
            sim.tally.add("turns of a subject", u64::from(places[run].waited));
        }
    }
    Ok(())
}

impl Place {
    fn take(&mut self, event: &Event, cursor: u64) {
        match event {
            Event::RunCreated { .. } => self.made = cursor,
            Event::StepReady { why, .. } if why == "subject_free" => (self.turn, self.waited) = (Some(cursor), true),
            // One that does something without having waited got it as it was made.
            Event::StepStarted { .. } | Event::StepWaiting { .. } | Event::ApprovalRequested { .. } => {
                self.turn.get_or_insert(self.made);
            }
            _ => {}
        }
    }
}
