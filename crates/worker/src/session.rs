//! One registration of this worker: its lease, what it holds, and the calls it makes in its name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use interlock_core::ids::SessionId;
use interlock_core::state::EffectClass;
use interlock_core::time::Millis;
use interlock_core::work::fault::CanaryReport;
use interlock_core::work::offer::OfferAnswer;
use interlock_core::work::output::{OutputBatch, OutputTaken};
use interlock_core::work::{Assignment, AttemptRef, EffectAnswer, EffectIntent, EffectOutcome, Report};
use interlock_protocol::agent::{Complete, Completed, POLL_ROUND_TRIP, Registered};
use interlock_protocol::transport::{Transport, TransportError};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::lease::Lease;
use crate::limits;
use crate::outage::Outage;
use crate::port::Port;
use crate::retry::{Jitter, retry};
use crate::trace;
use crate::workdirs::Workdirs;

pub(crate) struct Session<T> {
    pub id: SessionId,
    pub transport: T,
    pub renew_every: Duration,
    pub lease: Lease,
    /// Fires when the server does not know the session any more.
    pub gone: CancellationToken,
    /// Fires when the worker takes nothing new.
    pub draining: CancellationToken,
    /// An operator takes the worker out of service.
    pub drained: CancellationToken,
    pub jitter: Arc<Jitter>,
    pub outage: Arc<Outage>,
    /// The directories of the runs that this worker has as a whole. They go with the session.
    pub workdirs: Workdirs,
    held: Mutex<BTreeMap<AttemptRef, HeldAttempt>>,
    /// Outcomes of effects that are being told. A task that is stopped meanwhile does not take them along.
    outcomes: Mutex<JoinSet<()>>,
    /// Why the server gives this worker nothing, as it last said.
    notice: Mutex<Option<String>>,
    /// The server wants to know whether the sandbox still holds.
    pub prove: Notify,
    /// What became of that, until a heartbeat takes it along.
    canary: Mutex<Option<CanaryReport>>,
    /// How long a call took to be answered, until a poll takes it along.
    round_trip: Mutex<Option<Millis>>,
}

struct HeldAttempt {
    token: CancellationToken,
    effect: EffectClass,
    /// It runs a command in a sandbox, which can be killed for certain.
    is_command: bool,
}

impl<T: Transport> Session<T> {
    pub fn new(
        transport: T,
        registered: &Registered,
        sent_at: Instant,
        jitter: Arc<Jitter>,
        outage: Arc<Outage>,
    ) -> Self {
        let measured = takes(&registered.takes, POLL_ROUND_TRIP).then(|| sent_at.elapsed().into());
        Self {
            id: registered.session,
            transport,
            renew_every: registered.renew_every_ms.as_duration(),
            lease: Lease::new(sent_at, registered.lease_ms.as_duration()),
            gone: CancellationToken::new(),
            draining: CancellationToken::new(),
            drained: CancellationToken::new(),
            jitter,
            outage,
            workdirs: Workdirs::default(),
            held: Mutex::default(),
            outcomes: Mutex::default(),
            notice: Mutex::default(),
            prove: Notify::new(),
            canary: Mutex::default(),
            round_trip: Mutex::new(measured),
        }
    }

    /// A heartbeat was answered after so long, by a server that takes these fields.
    pub fn measured(&self, round_trip: Millis, taken: &[String]) {
        if takes(taken, POLL_ROUND_TRIP) {
            *self.round_trip.lock().unwrap_or_else(PoisonError::into_inner) = Some(round_trip);
        }
    }

    /// How long the last measured call took, for one poll: a server that does not know the field refuses only that one.
    pub fn take_round_trip(&self) -> Option<Millis> {
        self.round_trip.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The controls of the sandbox were tried out again.
    pub fn proved(&self, report: CanaryReport) {
        *self.canary.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }

    /// What became of that, for one heartbeat. Where the heartbeat is lost, the server asks again.
    pub fn take_canary(&self) -> Option<CanaryReport> {
        self.canary.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Takes an assignment into what heartbeats list. `None` if it is held already: an answer came twice.
    pub fn hold(&self, assignment: &Assignment) -> Option<CancellationToken> {
        let mut held = self.held();
        if held.contains_key(&assignment.at) {
            return None;
        }
        let token = self.gone.child_token();
        let is_command = assignment.command.is_some();
        let entry = HeldAttempt { token: token.clone(), effect: assignment.effect, is_command };
        held.insert(assignment.at, entry);
        Some(token)
    }

    pub fn let_go(&self, at: AttemptRef) {
        self.held().remove(&at);
    }

    pub fn listed(&self) -> Vec<AttemptRef> {
        self.held().keys().copied().collect()
    }

    pub fn stop(&self, at: AttemptRef) {
        if let Some(held) = self.held().get(&at) {
            held.token.cancel();
        }
    }

    pub fn stop_all(&self) {
        self.held().values().for_each(|held| held.token.cancel());
    }

    /// The lease has run out and the server is silent. Another worker may have begun the same steps. Commands stop, and so
    /// do tasks that must not be repeated; a task whose repeat is harmless goes on.
    pub fn stop_unleased(&self) {
        let mut held = self.held();
        let stopping = held.values_mut().filter(|held| held.is_command || held.effect == EffectClass::Unsafe);
        stopping.for_each(|held| held.token.cancel());
    }

    /// The map is consistent after every statement that changes it, so a panic elsewhere cannot have broken it.
    fn held(&self) -> MutexGuard<'_, BTreeMap<AttemptRef, HeldAttempt>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the server says about giving this worker nothing is told once, and so is that it does again.
    pub fn noticed(&self, notice: Option<String>) {
        let mut known = self.notice.lock().unwrap_or_else(PoisonError::into_inner);
        if *known == notice {
            return;
        }
        if let Some(notice) = &notice {
            warn!(notice, "the server gives this worker nothing");
        } else {
            info!("the server gives this worker steps again");
        }
        *known = notice;
    }

    /// Hands in a report, again and again while the server is silent; also once the session is over, since its attempts
    /// may still be the current ones.
    pub async fn complete(&self, report: Report) -> Result<Completed, TransportError> {
        let session = self.id;
        retry(&self.jitter, patience(), || self.transport.complete(Complete { session, report: report.clone() })).await
    }

    /// Answers an offer, again and again while that is of use. Whether it arrived is known where it was answered.
    pub async fn answer_offer(&self, answer: OfferAnswer, until: Instant) -> Result<(), TransportError> {
        let worthwhile = || Instant::now() < until;
        self.until_gone(retry(&self.jitter, worthwhile, || self.transport.answer_offer(self.id, answer.clone()))).await
    }

    fn outcomes(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until every outcome that is being told has arrived, or was given up.
    pub async fn outcomes_told(&self) {
        let mut outcomes = {
            let mut outcomes = self.outcomes();
            std::mem::take(&mut *outcomes)
        };
        while outcomes.join_next().await.is_some() {}
    }

    async fn until_gone<A>(&self, call: impl Future<Output = Result<A, TransportError>>) -> Result<A, TransportError> {
        let answer = self.gone.run_until_cancelled(call).await.unwrap_or_else(|| {
            Err(TransportError::refused(interlock_protocol::code::SESSION_GONE, "the session is gone"))
        });
        if answer.as_ref().is_err_and(TransportError::is_session_gone) {
            self.gone.cancel();
        }
        answer
    }
}

/// Whether a server takes a field, by what it has said.
pub(crate) fn takes(fields: &[String], field: &str) -> bool {
    fields.iter().any(|name| name == field)
}

fn patience() -> impl Fn() -> bool {
    let until = Instant::now() + limits::REPORT_PATIENCE;
    move || Instant::now() < until
}

impl<T: Transport> Port for Session<T> {
    fn lease(&self) -> &Lease {
        &self.lease
    }

    fn is_gone(&self) -> bool {
        self.gone.is_cancelled()
    }

    /// An intent is of use only while the effect may still be sent.
    fn intent(&self, intent: EffectIntent) -> BoxFuture<'_, Result<EffectAnswer, TransportError>> {
        async move {
            let worthwhile = || self.lease.covers_a_send();
            self.until_gone(retry(&self.jitter, worthwhile, || self.transport.intent(self.id, intent.clone()))).await
        }
        .boxed()
    }

    fn output(&self, batch: OutputBatch) -> BoxFuture<'_, Result<OutputTaken, TransportError>> {
        async move { retry(&self.jitter, patience(), || self.transport.output(self.id, batch.clone())).await }.boxed()
    }

    fn outcome(&self, outcome: EffectOutcome) -> BoxFuture<'_, Result<(), TransportError>> {
        let (told, answer) = oneshot::channel();
        let (session, transport, jitter) = (self.id, self.transport.clone(), Arc::clone(&self.jitter));
        let mut outcomes = self.outcomes();
        while outcomes.try_join_next().is_some() {}
        let telling = async move {
            // Whatever has become of the session and the task: only this worker knows what happened.
            let answer = retry(&jitter, patience(), || transport.outcome(session, outcome.clone())).await;
            // Where the task was stopped meanwhile, the receiver is gone.
            let _ = told.send(answer);
        };
        outcomes.spawn(trace::within(trace::of_attempt(), telling));
        drop(outcomes);
        let lost = |_| Err(TransportError::unavailable("the worker ended before the outcome was told"));
        async move { answer.await.unwrap_or_else(lost) }.boxed()
    }
}
