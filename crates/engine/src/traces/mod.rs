//! Traces (OTLP over HTTP): what runs have done, told to a collector. [`spans`] reads the spans off a run's events, so
//! nothing is timed or kept while the run goes on; [`otlp`] writes them down. A run is told of whenever it comes to rest
//! or ends, by the one server whose commit that was; `loops/traces.rs` reads, gathers and sends.
//!
//! Traces are help, not proof: a note that finds the queue full, and spans that no collector takes, are dropped and
//! counted. Nothing ever waits for them.

pub mod otlp;
pub mod spans;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use interlock_core::ids::{RunId, TenantId};
use interlock_core::run::Run;
use interlock_core::run::change::{ChangeSet, LiveChange};
use interlock_core::time::Millis;
use interlock_core::trace::{RunTrace, SpanOf, TraceContext};
use interlock_outbound::Outbound;
use interlock_outbound::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::{Mutex, mpsc};

use crate::Engine;

/// Runs that wait to be told of.
const NOTES_MAX: usize = 4_096;
/// The path of OTLP's own, behind an endpoint that names none.
const TRACES_PATH: &str = "/v1/traces";

/// Where traces go.
#[derive(Clone)]
pub struct TraceOptions {
    pub endpoint: TraceEndpoint,
    /// A client for this endpoint alone, so that the collector may be where no workflow may call.
    pub client: Outbound,
    /// How long spans are gathered before they are sent.
    pub send_every: Millis,
}

/// A collector's address, with what it wants to see.
#[derive(Clone)]
pub struct TraceEndpoint {
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
}

/// Why traces cannot go there. Values of headers are secrets and are not told.
#[derive(Debug, thiserror::Error)]
pub enum TraceEndpointError {
    #[error("`{url}` is no address for traces: write it as `http://HOST:4318`, or with the whole path")]
    Url { url: String },
    #[error("header {number} for traces is not of the form NAME=VALUE")]
    Header { number: usize },
}

impl TraceEndpoint {
    /// `http://HOST:4318` stands for `http://HOST:4318/v1/traces`; each header is written `NAME=VALUE`.
    pub fn new(url: &str, headers: &[String]) -> Result<Self, TraceEndpointError> {
        let invalid = || TraceEndpointError::Url { url: url.chars().take(200).collect() };
        let parsed = interlock_outbound::Url::parse(url).map_err(|_| invalid())?;
        let plain = parsed.has_host() && parsed.username().is_empty() && parsed.password().is_none();
        if !matches!(parsed.scheme(), "http" | "https") || !plain || parsed.fragment().is_some() {
            return Err(invalid());
        }
        let url = match parsed.path() {
            "/" => format!("{}{TRACES_PATH}", url.trim_end_matches('/')),
            _ => url.to_owned(),
        };
        let mut read = HeaderMap::new();
        for (index, header) in headers.iter().enumerate() {
            let wrong = || TraceEndpointError::Header { number: index + 1 };
            let (name, value) = header.split_once('=').ok_or_else(wrong)?;
            let name: HeaderName = name.trim().parse().map_err(|_| wrong())?;
            let mut value: HeaderValue = value.trim().parse().map_err(|_| wrong())?;
            value.set_sensitive(true);
            read.append(name, value);
        }
        Ok(Self { url, headers: read })
    }

    /// Without its query, which may hold a secret.
    pub fn shown(&self) -> &str {
        self.url.split('?').next().unwrap_or_default()
    }
}

/// A run has come to rest, or ended, with these of its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Note {
    pub tenant: TenantId,
    pub run: RunId,
    pub first_seq: u64,
    pub last_seq: u64,
}

/// What was not told of since the engine was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TracesDropped {
    /// Stretches of runs of which no span was made: too many of them waited, or their events could not be read.
    pub runs: u64,
    /// Spans that the collector has refused, or not taken while there was room for them.
    pub spans: u64,
}

/// The tracing of one engine.
pub(crate) struct Traces {
    pub options: TraceOptions,
    /// Tells this server from others.
    pub instance: String,
    notes: mpsc::Sender<Note>,
    /// Held by the loop while it runs.
    pub noted: Mutex<mpsc::Receiver<Note>>,
    /// Of runs and spans since they were last told of.
    dropped: AtomicU64,
    runs_dropped: AtomicU64,
    spans_dropped: AtomicU64,
    /// The collector does not answer, and that has been told.
    pub away: AtomicBool,
}

impl Traces {
    pub fn new(options: TraceOptions, instance: String) -> Self {
        let (notes, noted) = mpsc::channel(NOTES_MAX);
        Self {
            options,
            instance,
            notes,
            noted: Mutex::new(noted),
            dropped: AtomicU64::new(0),
            runs_dropped: AtomicU64::new(0),
            spans_dropped: AtomicU64::new(0),
            away: AtomicBool::new(false),
        }
    }

    /// Never waits, and costs a comparison while a worker goes on from step to step.
    pub fn note(&self, change: &ChangeSet) {
        let goes_on = matches!(change.live, LiveChange::Advance(_));
        let (Some(first), Some(last)) = (change.journal.first(), change.journal.last()) else { return };
        // A name may also stand in a text that a user wrote; the loop that reads the events sees that.
        let rests = |name: &&str| change.journal.iter().any(|row| row.events.as_str().contains(*name));
        if goes_on || !spans::RESTS.iter().any(rests) {
            return;
        }
        let note = Note { tenant: change.tenant, run: change.run, first_seq: first.first_seq, last_seq: last.seq };
        if self.notes.try_send(note).is_err() {
            self.drop_run();
        }
    }

    pub fn drop_run(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        self.runs_dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub fn drop_spans(&self, count: usize) {
        self.dropped.fetch_add(count as u64, Ordering::Relaxed);
        self.spans_dropped.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// All that was dropped.
    pub fn dropped_in_all(&self) -> TracesDropped {
        TracesDropped {
            runs: self.runs_dropped.load(Ordering::Relaxed),
            spans: self.spans_dropped.load(Ordering::Relaxed),
        }
    }

    /// How many runs and spans were dropped since this was last asked.
    pub fn dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }
}

impl Engine {
    /// The trace context of a run, for those who hear of it: as its request brought it, or, where traces are exported, as a
    /// child of the span that tells of its creation.
    pub fn trace_of(&self, run: &Run) -> TraceContext {
        self.trace_within(run, SpanOf::Created)
    }

    /// The trace context for what happens within a span of the run.
    pub(crate) fn trace_within(&self, run: &Run, of: SpanOf) -> TraceContext {
        let brought = TraceContext::of_labels(&run.header.labels);
        if self.0.traces.is_none() {
            return brought;
        }
        let parent = RunTrace::of(run.id, &brought).parent(of);
        TraceContext { parent: Some(parent), state: brought.state }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_path_gets_the_protocols_own() {
        let of = |url: &str| TraceEndpoint::new(url, &[]).map(|endpoint| endpoint.url);
        assert_eq!(of("http://collector:4318").unwrap(), "http://collector:4318/v1/traces");
        assert_eq!(of("https://collector/").unwrap(), "https://collector/v1/traces");
        assert_eq!(of("https://collector/otlp/v1/traces").unwrap(), "https://collector/otlp/v1/traces");
        for wrong in ["collector:4318", "ftp://collector", "http://me:secret@collector", "http://"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_header_that_cannot_be_read_is_told_by_its_number_alone() {
        let error = TraceEndpoint::new("http://c", &["a=1".into(), "s3cret".into()]).map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), "header 2 for traces is not of the form NAME=VALUE");
    }
}
