//! The worker crate itself, as users run it: its own sessions, leases, retries and effects, on the simulated network. Only
//! the process around it is simulated, and the code of the tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use interlock_core::ids::SessionId;
use interlock_core::plan::Work;
use interlock_core::plan::retry::ErrorClass;
use interlock_core::work::{AttemptRef, EffectAnswer, EffectIntent, EffectOutcome, ReportedOutcome, WorkerHello};
use interlock_engine::{Engine, EngineError};
use interlock_protocol::agent::{
    Complete, Completed, Heartbeat, OfferAnswer, OutputBatch, OutputTaken, Poll, Polled, Registered, Renewed,
};
use interlock_protocol::transport::{Transport, TransportError};
use interlock_worker::{Flow, TaskError, Tasks, WaitFor, WorkerOptions};
use serde_json::Value;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::attempt::{self, AttemptWork, HandedStep};
use super::effect::{self, EffectReply};
use super::{LifeEnd, Worker};
use crate::host::LEASE;
use crate::network::{CallError, Caller, PATIENCE};
use crate::sink::Fate;
use crate::trace::say;

/// Shorter than what an effect is granted after the end of a lease.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// One process.
struct Process {
    worker: Arc<Worker>,
    sessions: Mutex<u64>,
    /// What it was given: tasks see only some of it.
    handed: Mutex<BTreeMap<AttemptRef, HandedStep>>,
}

/// Lives until it is shut down in good order; a crash drops it.
pub(super) async fn live(worker: &Arc<Worker>) -> LifeEnd {
    let Caller { sim, dice, .. } = &worker.caller;
    let process = Process { worker: Arc::clone(worker), sessions: Mutex::default(), handed: Mutex::default() };
    let process = Arc::new(process);
    let options = WorkerOptions {
        name: worker.name.clone(),
        queues: worker.queues.clone(),
        slots: worker.slots,
        tenant: worker.tenant,
        build_id: None,
        capabilities: Vec::new(),
        environments: None,
        labels: BTreeMap::new(),
        poll_wait: dice.millis(200..=4_000),
        stop_grace: STOP_GRACE,
        drain_grace: dice.millis(500..=4_000),
        seed: dice.between(0..=u64::MAX),
        enrolled: false,
    };
    let shutdown = CancellationToken::new();
    let agent = interlock_worker::Worker::new(InProcess(Arc::clone(&process)), tasks(&process), options);
    let shut_down = async {
        loop {
            sleep(dice.millis(6_000..=20_000)).await;
            if !sim.is_calm() && dice.one_in(6) {
                say!(sim, &worker.name, "drains");
                shutdown.cancel();
            }
        }
    };
    tokio::select! {
        biased;
        ended = agent.run(shutdown.clone()) => {
            if let Err(refused) = ended {
                sim.broken(format!("a worker was not registered: {refused}"));
            }
            LifeEnd::Shutdown
        }
        () = shut_down => LifeEnd::Shutdown,
    }
}

fn tasks(process: &Arc<Process>) -> Tasks {
    let sim = &process.worker.caller.sim;
    let plans = sim.plans().flat_map(|encoded| &encoded.plan.steps);
    let names: BTreeSet<String> = plans
        .flat_map(|step| {
            let forward = match &step.work {
                Work::Task { handler, .. } => Some(handler.clone()),
                _ => None,
            };
            let verify = step.rollback.as_ref().and_then(|rollback| rollback.verify.as_ref());
            let undo = step.rollback.as_ref().map(|rollback| &rollback.by);
            forward.into_iter().chain(undo.into_iter().chain(verify).map(|undo| undo.handler().to_owned()))
        })
        .collect();
    names.into_iter().fold(Tasks::new(), |tasks, name| {
        let process = Arc::clone(process);
        tasks.task(name, move |context, _: Value| perform(Arc::clone(&process), context))
    })
}

/// What a task does, as its name says.
async fn perform(process: Arc<Process>, context: interlock_worker::TaskContext) -> Result<Flow<Value>, TaskError> {
    let worker = &process.worker;
    let at = AttemptRef {
        tenant: context.tenant(),
        run: context.run(),
        position: context.position(),
        attempt: context.attempt(),
    };
    let Some(handed) = process.given(at) else {
        return Err(TaskError::terminal("SIMULATED", "it was never given out"));
    };
    let assignment = &handed.assignment;
    let behaviour = match attempt::begin(worker, assignment).await {
        AttemptWork::Asks(ReportedOutcome::Waiting { signal, key, timeout, outbound }) => {
            let timeout = timeout.map(interlock_core::time::Millis::as_duration);
            return Ok(Flow::Wait(WaitFor { signal, key, timeout, outbound }));
        }
        AttemptWork::Asks(_) => return Err(TaskError::terminal("SIMULATED", "it can only wait")),
        AttemptWork::Acts(behaviour) => behaviour,
    };
    let mut keys = Vec::new();
    for number in 0..behaviour.effects {
        let (template, request) = effect::named(assignment, number);
        let effect = context.effect(&template, behaviour.class, &request, |key| async {
            // The lease was looked at right before this: no time may pass before it is sent.
            match effect::send(worker, assignment, number, key).await {
                EffectReply { fate: Fate::Done, key } => Ok(effect::response(&key)),
                EffectReply { fate: Fate::Refused, .. } => {
                    Err(interlock_worker::EffectFailure::certainly_not(failure(at)))
                }
                EffectReply { fate: Fate::DoneUnheard | Fate::LostUnheard, .. } => {
                    Err(interlock_worker::EffectFailure::unknown(failure(at)))
                }
            }
        });
        keys.push(effect::key_of(&effect.await?));
    }
    match attempt::own_failure(worker) {
        Some(attempt::OwnFailure::Dead) => {
            let class = attempt::refusal(worker, at).unwrap_or(ErrorClass::Terminal);
            Err(TaskError::new(class, "SIMULATED", attempt::told_by(at)))
        }
        Some(attempt::OwnFailure::Retry(Some(pause))) => Err(failure(at).after(pause.as_duration())),
        Some(attempt::OwnFailure::Retry(None)) => Err(failure(at)),
        None => Ok(Flow::Done(attempt::output(worker, assignment, &keys))),
    }
}

fn failure(at: AttemptRef) -> TaskError {
    TaskError::retryable("SIMULATED", attempt::told_by(at))
}

impl Process {
    fn given(&self, at: AttemptRef) -> Option<HandedStep> {
        self.handed.lock().unwrap_or_else(PoisonError::into_inner).get(&at).cloned()
    }

    /// Looks at what it is given, and remembers it.
    fn take(&self, session: SessionId, handed: HandedStep) {
        if let Err(what) = attempt::check(&self.worker, session, &handed) {
            return self.worker.caller.sim.broken(what);
        }
        let mut all = self.handed.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(handed.assignment.at, handed);
    }

    /// A call through the network. While the process stands still, it neither sends nor looks at what has arrived.
    /// Answers with the world that the answer is from, too.
    async fn call<T, Served>(
        &self,
        patience: Duration,
        request: impl Fn(Engine) -> Served + Send + Sync + 'static,
    ) -> (u64, Result<T, CallError>)
    where
        T: Send + 'static,
        Served: Future<Output = Result<T, EngineError>> + Send + 'static,
    {
        self.worker.gate.pass().await;
        let answer = self.worker.caller.call(patience, request).await;
        let world = self.worker.caller.sim.archive.restores();
        self.worker.gate.pass().await;
        (world, answer)
    }
}

/// What stands in a worker's log, and no more.
fn refused(error: CallError) -> TransportError {
    match error {
        CallError::Refused(error) if !error.is_transient() => TransportError::refused(error.code(), error.to_string()),
        other => TransportError::unavailable(other.to_string()),
    }
}

/// The worker's way to the engine.
#[derive(Clone)]
struct InProcess(Arc<Process>);

impl Transport for InProcess {
    async fn register(&self, hello: WorkerHello) -> Result<Registered, TransportError> {
        let Caller { sim, .. } = &self.0.worker.caller;
        let (_, answer) = self
            .0
            .call(PATIENCE, move |engine| {
                let hello = hello.clone();
                async move { engine.workers().register(hello).await }
            })
            .await;
        let registered = answer.map_err(refused)?;
        say!(sim, &self.0.worker.name, "registered as {}", registered.session);
        sim.tally.count("sessions");
        sim.tally.count("sessions of the worker crate");
        let mut sessions = self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        *sessions += 1;
        if *sessions > 1 {
            sim.tally.count("sessions lost");
        }
        drop(sessions);
        Ok(Registered {
            session: registered.session,
            lease_ms: registered.lease,
            renew_every_ms: registered.renew_every,
            epoch: registered.epoch,
            takes: Vec::new(),
        })
    }

    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<Renewed, TransportError> {
        let Heartbeat { session, held, draining, keeps, .. } = heartbeat;
        let listed = held.clone();
        let (_, answer) = self
            .0
            .call(PATIENCE, move |engine| {
                let held = listed.clone();
                async move { engine.workers().heartbeat(session, &held, draining).await }
            })
            .await;
        match answer {
            Ok(stop) => {
                let (drain, notice, prove, takes) = (false, None, false, Vec::new());
                Ok(Renewed { lease_ms: LEASE, stop, known: true, drain, notice, over: Vec::new(), prove, takes })
            }
            Err(CallError::Refused(EngineError::SessionGone)) => {
                let (drain, notice, prove, takes) = (false, None, false, Vec::new());
                Ok(Renewed { lease_ms: LEASE, stop: held, known: false, drain, notice, over: keeps, prove, takes })
            }
            Err(error) => Err(refused(error)),
        }
    }

    async fn poll(&self, poll: Poll) -> Result<Polled, TransportError> {
        let sim = &self.0.worker.caller.sim;
        let (session, max, wait) = (poll.session, poll.max as usize, poll.wait_ms.as_duration());
        let polled =
            self.0.call(wait + PATIENCE, move |engine| async move { engine.workers().poll(session, max, wait).await });
        let (world, answer) = polled.await;
        let assignments = answer.map_err(refused)?;
        if assignments.len() > max {
            sim.broken(format!("a poll for {max} steps was given {}", assignments.len()));
        }
        for assignment in &assignments {
            self.0.take(session, HandedStep { assignment: assignment.clone(), world });
        }
        Ok(Polled { assignments, ..Polled::default() })
    }

    async fn answer_offer(&self, session: SessionId, answer: OfferAnswer) -> Result<(), TransportError> {
        let answered = self.0.call(PATIENCE, move |engine| {
            let answer = answer.clone();
            async move { engine.workers().answer_offer(session, answer).await }
        });
        answered.await.1.map_err(refused)
    }

    async fn complete(&self, complete: Complete) -> Result<Completed, TransportError> {
        let Complete { session, report } = complete;
        let (at, outcome) = (report.at, report.outcome.clone());
        let (world, answer) = self
            .0
            .call(PATIENCE, move |engine| {
                let report = report.clone();
                async move { engine.workers().complete(session, report).await }
            })
            .await;
        let handed_in = self.0.given(at).map_or(world, |handed| handed.world);
        match answer {
            Ok(completed) => {
                attempt::acknowledged(&self.0.worker, session, (at, handed_in, world), &outcome, &completed);
                if let Some(next) = &completed.next {
                    self.0.worker.caller.sim.tally.count("steps handed on");
                    self.0.take(session, HandedStep { assignment: next.clone(), world });
                }
                Ok(Completed { next: completed.next, recorded: completed.recorded })
            }
            Err(error) => {
                attempt::unheard(&self.0.worker, handed_in, at, &error);
                Err(refused(error))
            }
        }
    }

    async fn intent(&self, session: SessionId, intent: EffectIntent) -> Result<EffectAnswer, TransportError> {
        let (_, answer) = self
            .0
            .call(PATIENCE, move |engine| {
                let intent = intent.clone();
                async move { engine.workers().intent(session, intent).await }
            })
            .await;
        answer.map_err(refused)
    }

    async fn outcome(&self, session: SessionId, outcome: EffectOutcome) -> Result<(), TransportError> {
        let at = outcome.at;
        let (world, answer) = self
            .0
            .call(PATIENCE, move |engine| {
                let outcome = outcome.clone();
                async move { engine.workers().outcome(session, outcome).await }
            })
            .await;
        if let Err(error) = &answer {
            attempt::unheard(&self.0.worker, self.0.given(at).map_or(world, |handed| handed.world), at, error);
        }
        answer.map_err(refused)
    }

    async fn output(&self, session: SessionId, batch: OutputBatch) -> Result<OutputTaken, TransportError> {
        let (_, answer) = self
            .0
            .call(PATIENCE, move |engine| {
                let batch = batch.clone();
                async move { engine.workers().output(session, batch).await }
            })
            .await;
        answer.map_err(refused)
    }

    async fn unregister(&self, session: SessionId) -> Result<(), TransportError> {
        let (_, answer) =
            self.0.call(PATIENCE, move |engine| async move { engine.workers().unregister(session).await }).await;
        answer.map_err(refused)
    }
}
