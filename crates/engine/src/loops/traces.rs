//! Sends traces: reads what runs have done off their events, gathers the spans and posts them to the collector. What it
//! does not take within a while is dropped; that it is away is told once, and that it is back.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use interlock_core::ids::SessionId;
use interlock_outbound::header::{CONTENT_TYPE, HeaderValue};
use interlock_outbound::{Call, Excess};
use tokio::time::{Sleep, sleep};

use crate::Engine;
use crate::error::EngineError;
use crate::traces::spans::{Span, SpanReader, SpanValue, stretch};
use crate::traces::{Note, Traces, otlp};

/// Events of one run that are read at most, and at a time.
const EVENTS_MAX: u64 = 20_000;
const EVENTS_PAGE: usize = 1_000;
/// Spans that wait for the collector; the oldest go first.
const SPANS_MAX: usize = 16_384;
/// Spans of one call.
const BATCH_MAX: usize = 512;
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// When a collector that is away is asked again.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// Names of workers that are remembered.
const NAMES_MAX: usize = 10_000;

pub(crate) async fn run(engine: Engine) {
    let Some(traces) = &engine.0.traces else { return };
    let mut noted = traces.noted.lock().await;
    let mut sender = Sender { engine: &engine, traces, spans: Vec::new(), names: HashMap::new(), pause: FIRST_PAUSE };
    let mut due: Option<Pin<Box<Sleep>>> = None;
    loop {
        let timer = async {
            match &mut due {
                Some(due) => due.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = engine.0.stopping.cancelled() => break,
            () = timer => due = sender.send().await.map(|pause| Box::pin(sleep(pause))),
            note = noted.recv() => {
                let Some(note) = note else { return };
                sender.gather(note).await;
                if due.is_none() && !sender.spans.is_empty() {
                    due = Some(Box::pin(sleep(sender.gathers_for())));
                }
            }
        }
    }
    // What was noted before the stop is sent too, if the collector answers.
    while let Ok(note) = noted.try_recv() {
        sender.gather(note).await;
    }
    sender.send().await;
}

struct Sender<'a> {
    engine: &'a Engine,
    traces: &'a Traces,
    spans: Vec<Span>,
    names: HashMap<SessionId, String>,
    pause: Duration,
}

impl Sender<'_> {
    fn gathers_for(&self) -> Duration {
        let is_full = self.spans.len() >= BATCH_MAX;
        if is_full { Duration::ZERO } else { Duration::from_millis(self.traces.options.send_every.0) }
    }

    /// Adds the spans that a run has finished since its last rest.
    async fn gather(&mut self, note: Note) {
        let Ok(spans) = self.read(note).await else {
            self.traces.drop_run();
            return;
        };
        self.spans.extend(spans);
        if self.spans.len() > SPANS_MAX {
            let over = self.spans.len() - SPANS_MAX;
            self.spans.drain(..over);
            self.traces.drop_spans(over);
        }
    }

    async fn read(&mut self, Note { tenant, run, first_seq, last_seq }: Note) -> Result<Vec<Span>, EngineError> {
        let store = self.engine.for_tenant(tenant);
        let Some(known) = store.load_run(run).await? else { return Ok(Vec::new()) };
        let mut events = Vec::new();
        let mut since = last_seq.saturating_sub(EVENTS_MAX);
        while since < last_seq {
            let page = store.events(run, since, EVENTS_PAGE).await?;
            let Some(last) = page.last() else { break };
            since = last.seq;
            events.extend(page.into_iter().filter(|record| record.seq <= last_seq));
        }
        let Some(after) = stretch(&events, first_seq, last_seq) else { return Ok(Vec::new()) };
        let Some(mut telling) = SpanReader::new(tenant, &known, after) else { return Ok(Vec::new()) };
        for record in &events {
            telling.hear(record);
        }
        let mut spans = telling.spans();
        for span in &mut spans {
            if let Some(session) = span.session {
                let name = self.worker(session).await?;
                span.attributes.push(("interlock.worker_id", SpanValue::Text(name)));
            }
        }
        Ok(spans)
    }

    /// The name that a worker has given itself; the session's id where nothing is known of it any more.
    async fn worker(&mut self, session: SessionId) -> Result<String, EngineError> {
        if let Some(name) = self.names.get(&session) {
            return Ok(name.clone());
        }
        let name = self.engine.workers().name_of(session).await?.unwrap_or_else(|| session.to_string());
        if self.names.len() >= NAMES_MAX {
            self.names.clear();
        }
        self.names.insert(session, name.clone());
        Ok(name)
    }

    /// Sends what there is. Answers when to try again, if something is left.
    async fn send(&mut self) -> Option<Duration> {
        while !self.spans.is_empty() {
            let count = self.spans.len().min(BATCH_MAX);
            match self.post(count).await {
                Ok(()) => {
                    self.spans.drain(..count);
                    self.pause = FIRST_PAUSE;
                    self.tell_back();
                }
                Err(refused) => {
                    self.tell_away(&refused.what);
                    if refused.for_good {
                        self.spans.drain(..count);
                        self.traces.drop_spans(count);
                    }
                    let pause = self.pause;
                    self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                    return (!self.spans.is_empty()).then_some(pause);
                }
            }
        }
        None
    }

    async fn post(&self, count: usize) -> Result<(), ExportFailure> {
        let options = &self.traces.options;
        let body = otlp::request(&self.traces.instance, &self.spans[..count]);
        let mut call = Call::post(options.endpoint.url.clone(), body);
        call.headers = options.endpoint.headers.clone();
        call.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        (call.timeout, call.redirects_max, call.excess) = (CALL_TIMEOUT, 0, Excess::Cut);
        match options.client.send(call).await {
            Ok(answer) if answer.status.is_success() => Ok(()),
            Ok(answer) => {
                let again = [429, 502, 503, 504].contains(&answer.status.as_u16());
                Err(ExportFailure { what: format!("it answers {}", answer.status), for_good: !again })
            }
            Err(error) => Err(ExportFailure { what: error.to_string(), for_good: !error.is_transient() }),
        }
    }

    fn tell_away(&self, what: &str) {
        if !self.traces.away.swap(true, Ordering::Relaxed) {
            let endpoint = self.traces.options.endpoint.shown();
            tracing::warn!(endpoint, what, "traces cannot be sent; runs are not affected, and what waits is bounded");
        }
    }

    fn tell_back(&self) {
        if self.traces.away.swap(false, Ordering::Relaxed) {
            let (endpoint, dropped) = (self.traces.options.endpoint.shown(), self.traces.dropped());
            tracing::info!(endpoint, dropped, "traces are sent again");
        }
    }
}

/// Why a collector has not taken spans.
struct ExportFailure {
    what: String,
    /// The same spans would be refused again.
    for_good: bool,
}
