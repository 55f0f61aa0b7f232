//! An engine in memory: it hands out what a test enqueues, remembers every call, repeats its answers as the real one
//! does, and fails where a test wants it to.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use interlock_core::ids::{ReceiptId, RunId, SessionId, TenantId};
use interlock_core::json::Json;
use interlock_core::state::{EffectClass, StepKind, TaskType};
use interlock_core::time::Millis;
use interlock_protocol::agent::*;
use interlock_protocol::code;
use interlock_protocol::transport::{Transport, TransportError};
use interlock_worker::{Tasks, Worker, WorkerError, WorkerOptions};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub const LEASE: Duration = Duration::from_secs(20);

#[derive(Clone)]
pub struct Fake {
    state: Arc<Mutex<State>>,
    changed: Arc<watch::Sender<()>>,
}

#[derive(Default)]
pub struct State {
    queue: VecDeque<Assignment>,
    /// What follows a run's step when the report asks for it.
    following: BTreeMap<RunId, VecDeque<Assignment>>,
    live: BTreeSet<SessionId>,
    /// Sessions that are over: they may still say what became of what they held.
    ended: BTreeSet<SessionId>,
    answers: BTreeMap<AttemptRef, Completed>,
    receipts: BTreeMap<String, Receipt>,
    runs: u128,
    sessions: u128,

    pub stop: Vec<AttemptRef>,
    /// Who has taken the worker out of service.
    pub drain: Option<&'static str>,
    pub stale: BTreeSet<AttemptRef>,
    /// Every call fails before it does anything.
    pub down: bool,
    pub refuse_heartbeats: Option<&'static str>,
    pub refuse_registration: bool,
    /// For tests in real time, which cannot wait for a heartbeat.
    pub renew_every: Option<Millis>,
    pub refuse_reports: Option<&'static str>,
    /// The next answers of these calls are lost after the call was carried out.
    pub lose_completions: u32,
    pub lose_outcomes: u32,

    /// It refuses fields that an earlier release did not have.
    pub of_earlier_release: bool,

    pub hellos: Vec<WorkerHello>,
    pub calls: Vec<&'static str>,
    pub polls: Vec<u32>,
    /// How long calls took, as polls have told.
    pub round_trips: Vec<Millis>,
    pub heartbeats: Vec<Heartbeat>,
    pub reports: Vec<Report>,
    pub intents: Vec<EffectIntent>,
    pub outcomes: Vec<EffectOutcome>,
    pub outputs: Vec<OutputBatch>,
    /// What was answered to offers of runs.
    pub offers: Vec<OfferAnswer>,
    /// So many bytes of an attempt's output are kept.
    pub output_max: Option<usize>,
    pub lose_outputs: u32,
    pub unregistered: Vec<SessionId>,
}

struct Receipt {
    id: ReceiptId,
    performed: bool,
    response: Option<Json>,
}

impl Fake {
    pub fn new() -> Self {
        Self { state: Arc::default(), changed: Arc::new(watch::Sender::new(())) }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Changes the state and wakes the tests that wait for it.
    pub fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.send_replace(());
    }

    /// Waits until the state is as wanted.
    pub async fn until(&self, what: &str, wanted: impl Fn(&State) -> bool) {
        let mut changed = self.changed.subscribe();
        let waiting = async {
            while !wanted(&self.state()) {
                changed.changed().await.unwrap();
            }
        };
        timeout(Duration::from_hours(1), waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
    }

    /// One step of a new run.
    pub fn step(&self, handler: &str, input: &str) -> Assignment {
        let mut state = self.state();
        state.runs += 1;
        let run = RunId(Uuid::from_u128(state.runs));
        Assignment {
            at: AttemptRef { tenant: TenantId(Uuid::nil()), run, position: 0, attempt: 1 },
            epoch: 1,
            root_run: run,
            workflow: "demo".into(),
            step: format!("{handler}-0"),
            kind: StepKind::Task,
            handler: handler.into(),
            iteration: 0,
            effect: EffectClass::Idempotent,
            input: Json::trusted(input),
            task_type: TaskType::Execute,
            payload: None,
            signal: None,
            timeout: None,
            deadline_at: None,
            traceparent: None,
            tracestate: None,
            environment: None,
            command: None,
        }
    }

    /// A run of several steps: the first is handed out, the others follow.
    pub fn enqueue(&self, steps: Vec<Assignment>) {
        self.set(|state| {
            let mut steps = steps.into_iter();
            let first = steps.next().expect("a run has a step");
            let run = first.at.run;
            let rest = (1..).zip(steps).map(|(position, mut step)| {
                step.at = AttemptRef { run, position, ..first.at };
                step.root_run = run;
                step
            });
            state.following.insert(run, rest.collect());
            state.queue.push_back(first);
        });
    }

    pub fn enqueue_one(&self, handler: &str, input: &str) -> AttemptRef {
        let step = self.step(handler, input);
        let at = step.at;
        self.enqueue(vec![step]);
        at
    }

    pub fn forget_sessions(&self) {
        self.set(|state| {
            let ended = std::mem::take(&mut state.live);
            state.ended.extend(ended);
        });
    }

    pub fn outcomes_reported(&self) -> Vec<ReportedOutcome> {
        self.state().reports.iter().map(|report| report.outcome.clone()).collect()
    }

    /// Enqueues one step and waits for its report.
    pub async fn run_one(&self, step: Assignment) -> ReportedOutcome {
        let at = step.at;
        self.enqueue(vec![step]);
        self.until("a report", |state| state.reports.iter().any(|report| report.at == at)).await;
        let state = self.state();
        state.reports.iter().find(|report| report.at == at).unwrap().outcome.clone()
    }

    fn call(&self, name: &'static str) -> Result<MutexGuard<'_, State>, TransportError> {
        let mut state = self.state();
        state.calls.push(name);
        self.changed.send_replace(());
        if state.down { Err(TransportError::unavailable("down")) } else { Ok(state) }
    }
}

impl State {
    fn check(&self, session: SessionId) -> Result<(), TransportError> {
        if self.live.contains(&session) {
            return Ok(());
        }
        Err(TransportError::refused(code::SESSION_GONE, "no such session"))
    }

    fn check_reporter(&self, session: SessionId) -> Result<(), TransportError> {
        if self.ended.contains(&session) { Ok(()) } else { self.check(session) }
    }

    fn fence(&self, at: AttemptRef) -> Result<(), TransportError> {
        if self.stale.contains(&at) {
            return Err(TransportError::refused(code::STEP_STALE_ATTEMPT, "over"));
        }
        Ok(())
    }

    fn lose(count: &mut u32) -> Result<(), TransportError> {
        if *count == 0 {
            return Ok(());
        }
        *count -= 1;
        Err(TransportError::unavailable("the answer was lost"))
    }
}

impl Transport for Fake {
    async fn register(&self, hello: WorkerHello) -> Result<Registered, TransportError> {
        let mut state = self.call("register")?;
        let names_tasks = hello.tasks.is_some() || hello.capabilities.is_some();
        state.hellos.push(hello);
        if state.of_earlier_release && names_tasks {
            return Err(TransportError::refused("REQUEST_INVALID", "unknown field `tasks`"));
        }
        if state.refuse_registration {
            return Err(TransportError::refused("UNAUTHORIZED", "who are you?"));
        }
        state.sessions += 1;
        let session = SessionId(Uuid::from_u128(state.sessions));
        state.live.insert(session);
        let renew_every_ms = state.renew_every.unwrap_or(Millis::from_secs(5));
        Ok(Registered { session, lease_ms: LEASE.into(), renew_every_ms, epoch: 1, takes: further_fields() })
    }

    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<Renewed, TransportError> {
        let mut state = self.call("heartbeat")?;
        if let Some(code) = state.refuse_heartbeats {
            return Err(TransportError::refused(code, "heartbeats are refused"));
        }
        let known = state.live.contains(&heartbeat.session);
        state.heartbeats.push(heartbeat);
        Ok(Renewed {
            lease_ms: LEASE.into(),
            stop: state.stop.clone(),
            known,
            drain: state.drain.is_some(),
            notice: None,
            over: Vec::new(),
            prove: false,
            takes: further_fields(),
        })
    }

    async fn poll(&self, poll: Poll) -> Result<Polled, TransportError> {
        {
            let mut state = self.call("poll")?;
            state.polls.push(poll.max);
            state.round_trips.extend(poll.round_trip_ms);
        }
        let mut changed = self.changed.subscribe();
        let finding = async {
            loop {
                {
                    let mut state = self.state();
                    state.check(poll.session)?;
                    if !state.queue.is_empty() {
                        let count = state.queue.len().min(poll.max as usize);
                        return Ok(state.queue.drain(..count).collect());
                    }
                }
                changed.changed().await.unwrap();
            }
        };
        tokio::select! {
            biased;
            found = finding => found.map(|assignments| Polled { assignments, ..Polled::default() }),
            () = sleep(poll.wait_ms.as_duration()) => Ok(Polled::default()),
        }
    }

    async fn complete(&self, complete: Complete) -> Result<Completed, TransportError> {
        let mut state = self.call("complete")?;
        let at = complete.report.at;
        state.check_reporter(complete.session)?;
        state.fence(at)?;
        if let (Some(code), ReportedOutcome::Completed { .. }) = (state.refuse_reports, &complete.report.outcome) {
            return Err(TransportError::refused(code, "no"));
        }
        if !state.answers.contains_key(&at) {
            let claim_next = complete.report.claim_next;
            let following = state.following.entry(at.run).or_default();
            let next = if claim_next { following.pop_front() } else { None };
            state.answers.insert(at, Completed { next, recorded: true });
            state.reports.push(complete.report);
            self.changed.send_replace(());
        }
        let answer = state.answers[&at].clone();
        State::lose(&mut state.lose_completions)?;
        Ok(answer)
    }

    async fn intent(&self, session: SessionId, intent: EffectIntent) -> Result<EffectAnswer, TransportError> {
        let mut state = self.call("intent")?;
        state.check(session)?;
        state.fence(intent.at)?;
        let key = format!("{}#{}/{}", intent.template, intent.at.run, intent.number);
        let next = ReceiptId(Uuid::from_u128(state.receipts.len() as u128));
        let receipt =
            state.receipts.entry(key.clone()).or_insert(Receipt { id: next, performed: false, response: None });
        let answer = if receipt.performed {
            EffectAnswer::Performed { receipt: receipt.id, response: receipt.response.clone() }
        } else {
            EffectAnswer::Perform { receipt: receipt.id, key }
        };
        state.intents.push(intent);
        Ok(answer)
    }

    async fn outcome(&self, session: SessionId, outcome: EffectOutcome) -> Result<(), TransportError> {
        let mut state = self.call("outcome")?;
        state.check_reporter(session)?;
        state.fence(outcome.at)?;
        if outcome.happened {
            let receipt = state.receipts.values_mut().find(|receipt| receipt.id == outcome.receipt).unwrap();
            receipt.performed = true;
            receipt.response.clone_from(&outcome.response);
        }
        if !state.outcomes.contains(&outcome) {
            state.outcomes.push(outcome);
        }
        State::lose(&mut state.lose_outcomes)
    }

    async fn answer_offer(&self, session: SessionId, answer: OfferAnswer) -> Result<(), TransportError> {
        let mut state = self.call("answer_offer")?;
        state.check(session)?;
        state.offers.push(answer);
        self.changed.send_replace(());
        Ok(())
    }

    async fn output(&self, _session: SessionId, batch: OutputBatch) -> Result<OutputTaken, TransportError> {
        let mut state = self.call("output")?;
        state.fence(batch.at)?;
        let known = state.outputs.iter().filter(|other| other.at == batch.at).flat_map(|other| &other.chunks);
        let (kept, last) = known.fold((0, 0), |(bytes, _), chunk| (bytes + chunk.text.len(), chunk.seq));
        let next_seq = batch.chunks.last().map_or(last, |chunk| chunk.seq) + 1;
        if batch.chunks.first().is_some_and(|chunk| chunk.seq == last + 1) {
            state.outputs.push(batch);
        }
        State::lose(&mut state.lose_outputs)?;
        Ok(OutputTaken { next_seq, cut: state.output_max.is_some_and(|max| kept > max) })
    }

    async fn unregister(&self, session: SessionId) -> Result<(), TransportError> {
        let mut state = self.call("unregister")?;
        state.live.remove(&session);
        state.unregistered.push(session);
        Ok(())
    }
}

/// A worker that runs in the background of a test.
pub struct Running {
    pub shutdown: CancellationToken,
    pub worker: JoinHandle<Result<(), WorkerError>>,
}

impl Running {
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.worker.await.unwrap().unwrap();
    }
}

pub fn start(fake: &Fake, tasks: Tasks) -> Running {
    start_with(fake, tasks, WorkerOptions::default())
}

pub fn start_with(fake: &Fake, tasks: Tasks, options: WorkerOptions) -> Running {
    let shutdown = CancellationToken::new();
    let worker = Worker::new(fake.clone(), tasks, options).run(shutdown.clone());
    Running { shutdown, worker: tokio::spawn(worker) }
}
