//! What becomes an entry: a row of a run's journal, a note, the beginning of a log.

use std::borrow::Cow;
use std::collections::BTreeMap;

use interlock_core::json::HashHex;
use interlock_core::time::Timestamp;
use interlock_evidence::{Body, Commitments, EntrySalts};
use interlock_store::{AuditNote, FeedSpan, JournalRow};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::facts::{self, Pinnable};

/// The type of an entry whose row is not there any more, or cannot be read.
pub(super) const MISSING: &str = "journal.missing";
/// The type of a log's first entry.
pub(super) const OPENED: &str = "audit.opened";
/// An effect of an ended run was settled.
pub(crate) const SETTLED: &str = "receipt.settled";

/// An event, as far as an entry names it.
#[derive(Deserialize)]
struct NamedEvent<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(borrow, default)]
    approval: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    decision: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    receipt: Option<Cow<'a, str>>,
    // Of other events these may be anything.
    #[serde(borrow, default)]
    reason: Option<&'a RawValue>,
    #[serde(borrow, default)]
    done: Option<&'a RawValue>,
}

impl NamedEvent<'_> {
    fn ends_run(&self) -> bool {
        match &*self.event {
            "session.completed" | "session.failed" => true,
            "session.canceled" => self.done.is_some_and(|done| done.get() == "true"),
            _ => false,
        }
    }
}

/// The events of a row: their names, and the decisions, receipts and approvals that they tell of.
pub(super) struct RowEvents {
    pub types: Vec<String>,
    pub pinned: Vec<String>,
    /// The run has ended with it.
    pub ends_run: bool,
    /// It was ended by policy, which makes it a governed one whatever else it did.
    pub is_denied: bool,
}

impl RowEvents {
    pub fn of(row: &JournalRow) -> Self {
        let events: Vec<NamedEvent<'_>> = row.events.decode().unwrap_or_default();
        let ids = events.iter().flat_map(|event| [&event.approval, &event.decision, &event.receipt]).flatten();
        let mut pinned: Vec<String> = ids.map(|id| id.clone().into_owned()).collect();
        pinned.sort_unstable();
        pinned.dedup();
        let ends_run = events.iter().any(NamedEvent::ends_run);
        let is_denied =
            events.iter().any(|event| event.reason.is_some_and(|reason| reason.get() == r#""policy_denied""#));
        Self { types: events.into_iter().map(|event| event.event.into_owned()).collect(), pinned, ends_run, is_denied }
    }
}

pub(super) fn of_row(row: &JournalRow, events: RowEvents, salts: EntrySalts, pinnable: Option<&Pinnable>) -> Body {
    let commitments = Commitments(salts.commitments);
    let pin = |id: String| {
        let text = pinnable?.text(&id)?;
        let hash = commitments.pin(&id, text);
        Some((id, HashHex(hash)))
    };
    Body {
        actor: facts::actor(row).map(|name| HashHex(commitments.actor(&name))),
        at: row.at,
        details: Some(HashHex(commitments.details(&facts::row_details(row)))),
        initiator: row.initiator.clone(),
        pins: events.pinned.into_iter().filter_map(pin).collect(),
        run: Some(row.run),
        seq: Some((row.first_seq, row.seq)),
        subject: None,
        types: events.types,
    }
}

pub(super) fn of_missing(span: &FeedSpan, at: Timestamp) -> Body {
    Body { run: Some(span.run), seq: Some((span.first_seq, span.seq)), ..plain(at, "system", MISSING) }
}

pub(super) fn of_note(note: &AuditNote, salts: EntrySalts, pinnable: Option<(&str, &Pinnable)>) -> Body {
    let commitments = Commitments(salts.commitments);
    let pin = pinnable.and_then(|(id, pinnable)| {
        let hash = commitments.pin(id, pinnable.text(id)?);
        Some((id.to_owned(), HashHex(hash)))
    });
    Body {
        actor: note.actor.as_deref().map(|name| HashHex(commitments.actor(name))),
        details: Some(HashHex(commitments.details(note.details.as_str()))),
        subject: note.subject.clone(),
        pins: pin.into_iter().collect(),
        ..plain(note.at, &note.initiator, &note.kind)
    }
}

/// The first entry of a log says which one it continues.
pub(super) fn of_opened(details: &str, at: Timestamp, salts: EntrySalts) -> Body {
    let commitments = Commitments(salts.commitments);
    Body { details: Some(HashHex(commitments.details(details))), ..plain(at, "system", OPENED) }
}

fn plain(at: Timestamp, initiator: &str, kind: &str) -> Body {
    Body {
        actor: None,
        at,
        details: None,
        initiator: initiator.to_owned(),
        pins: BTreeMap::new(),
        run: None,
        seq: None,
        subject: None,
        types: vec![kind.to_owned()],
    }
}
