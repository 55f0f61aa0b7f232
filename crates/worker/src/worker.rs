//! The worker's life: register, work, and start over when the session is lost; drain when told to shut down.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use interlock_core::ids::TenantId;
use interlock_core::plan::DEFAULT_QUEUE;
use interlock_core::state::StepKind;
use interlock_core::work::{EFFECTS, WorkerHello};
use interlock_protocol::agent::{Poll, Polled};
use interlock_protocol::transport::{Transport, TransportError};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::attempt::Slots;
use crate::executors::command::Commands;
use crate::executors::connector::Connectors;
use crate::executors::cost_file;
use crate::limits;
use crate::outage::{Outage, RepeatedCall};
use crate::renew::{keep_alive, prove_when_asked};
use crate::retry::{Jitter, Pauses, retry, timed};
use crate::session::Session;
use crate::task::Tasks;

/// How a worker works.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// A readable name: host and process.
    pub name: String,
    pub queues: Vec<String>,
    /// How many steps run at the same time.
    pub slots: u32,
    /// The tenant that is served; none for a worker inside the server, which serves all.
    pub tenant: Option<TenantId>,
    pub build_id: Option<String>,
    /// What it has besides, in the words of `requires.capabilities`.
    pub capabilities: Vec<String>,
    /// The environments whose runs it takes; where it names none, those of its certificate, or all if it has none.
    pub environments: Option<BTreeSet<String>>,
    /// What people tell it apart by.
    pub labels: BTreeMap<String, String>,
    /// How long a poll waits for work.
    pub poll_wait: Duration,
    /// How long a task may clean up once it is no longer wanted.
    pub stop_grace: Duration,
    /// How long running tasks may go on after the shutdown has begun.
    pub drain_grace: Duration,
    /// It has a certificate: the environment of a run decides which credentials it gets.
    pub enrolled: bool,
    /// What the spread of pauses is drawn from.
    pub seed: u64,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            name: "worker".to_owned(),
            queues: vec![DEFAULT_QUEUE.to_owned()],
            slots: 16,
            tenant: None,
            build_id: None,
            capabilities: Vec::new(),
            environments: None,
            labels: BTreeMap::new(),
            poll_wait: Duration::from_secs(20),
            stop_grace: interlock_core::limits::WORKER_STOP_GRACE.as_duration(),
            drain_grace: Duration::from_secs(30),
            enrolled: false,
            seed: 0,
        }
    }
}

/// Why a worker cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkerError {
    #[error("the server does not accept this worker: {code}: {message}")]
    Refused { code: String, message: String },
}

/// Runs [`Tasks`] for an engine that it reaches through a [`Transport`].
pub struct Worker<T> {
    transport: T,
    tasks: Tasks,
    connectors: Option<Arc<Connectors>>,
    commands: Option<Arc<Commands>>,
    options: WorkerOptions,
    jitter: Arc<Jitter>,
    outage: Arc<Outage>,
}

enum SessionEnd {
    /// The worker was told to stop, and has.
    Shutdown,
    /// An operator has taken it out of service; it has finished what it had.
    Drained,
    /// The server has forgotten the session.
    Gone,
}

impl<T: Transport> Worker<T> {
    pub fn new(transport: T, tasks: Tasks, options: WorkerOptions) -> Self {
        let jitter = Arc::new(Jitter::new(options.seed));
        Self { transport, tasks, connectors: None, commands: None, options, jitter, outage: Arc::default() }
    }

    /// Has it carry out `connector` and `model` steps too.
    pub fn with_connectors(self, connectors: Connectors) -> Self {
        Self { connectors: Some(Arc::new(connectors)), ..self }
    }

    /// Has it run sandboxed commands too.
    pub fn with_commands(self, commands: Commands) -> Self {
        Self { commands: Some(Arc::new(commands)), ..self }
    }

    /// The tasks that it is given steps of. Rollbacks ask for a connector by its name, as for a task.
    fn task_names(&self) -> Vec<String> {
        let mut all: BTreeSet<String> = self.tasks.names().map(str::to_owned).collect();
        if self.connectors.is_some() {
            all.extend(interlock_connectors::names().map(str::to_owned));
        }
        all.into_iter().collect()
    }

    fn capabilities(&self) -> Vec<String> {
        let mut names = vec![EFFECTS.to_owned()];
        if self.connectors.is_some() {
            names.extend([StepKind::Connector, StepKind::Model].map(|kind| kind.as_str().to_owned()));
        }
        names.extend(self.commands.iter().flat_map(|commands| commands.capabilities()));
        names.extend(self.options.capabilities.iter().cloned());
        names
    }

    /// Works until `shutdown` fires, then drains: running tasks may finish, the rest is given back.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), WorkerError> {
        cost_file::sweep(&std::env::temp_dir());
        // Reports of sessions that are over. They go on while the worker works in its next session.
        let mut late_reports = JoinSet::new();
        let ended = loop {
            let session = match shutdown.run_until_cancelled(self.register()).await {
                Some(Ok(session)) => session,
                Some(Err(refused)) => break Err(refused),
                None => break Ok(()),
            };
            while late_reports.try_join_next().is_some() {}
            info!(session = %session.id, worker = self.options.name, queues = ?self.options.queues, "registered");
            let (session, mut working) = (Arc::new(session), JoinSet::new());
            let ended = self.serve(&session, &mut working, &shutdown).await;
            late_reports.spawn(async move {
                while working.join_next().await.is_some() {}
                session.outcomes_told().await;
            });
            match ended {
                SessionEnd::Shutdown | SessionEnd::Drained => break Ok(()),
                SessionEnd::Gone => {
                    warn!("the session is gone; what it held is stopped and reported, registering again");
                }
            }
        };
        join_until(&mut late_reports, Instant::now() + limits::FINAL_REPORTS).await;
        ended
    }

    async fn register(&self) -> Result<Session<T>, WorkerError> {
        let mut hello = WorkerHello {
            worker: self.options.name.clone(),
            tenant: self.options.tenant,
            queues: self.options.queues.clone(),
            slots: self.options.slots,
            build_id: self.options.build_id.clone(),
            tasks: Some(self.task_names()),
            capabilities: Some(self.capabilities()),
            environments: self.options.environments.clone(),
            labels: self.options.labels.clone(),
        };
        let mut pauses = Pauses::new(&self.jitter);
        loop {
            let sent_at = Instant::now();
            match timed(limits::CALL_TIMEOUT, self.transport.register(hello.clone())).await {
                Ok(registered) => {
                    self.outage.over_with_new_session();
                    let (jitter, outage) = (Arc::clone(&self.jitter), Arc::clone(&self.outage));
                    return Ok(Session::new(self.transport.clone(), &registered, sent_at, jitter, outage));
                }
                // A server of an earlier release does not know these fields.
                Err(TransportError::Refused { code, .. }) if code == "REQUEST_INVALID" && hello.tasks.is_some() => {
                    warn!(
                        "the server does not take the names of tasks: it is older than this worker; going on without"
                    );
                    (hello.tasks, hello.capabilities) = (None, None);
                    hello.labels.clear();
                }
                Err(TransportError::Refused { code, message }) => return Err(WorkerError::Refused { code, message }),
                Err(error) => {
                    self.outage.met(RepeatedCall::Poll, &error);
                    pauses.pause().await;
                }
            }
        }
    }

    async fn serve(
        &self,
        session: &Arc<Session<T>>,
        working: &mut JoinSet<()>,
        shutdown: &CancellationToken,
    ) -> SessionEnd {
        let slots = Arc::new(Slots {
            session: Arc::clone(session),
            tasks: self.tasks.clone(),
            connectors: self.connectors.clone(),
            commands: self.commands.clone(),
            enrolled: self.options.enrolled,
            stop_grace: self.options.stop_grace,
        });
        // It is aborted when this future is dropped.
        let mut renewing = JoinSet::new();
        let renewed = Arc::clone(session);
        renewing.spawn(async move { keep_alive(&renewed).await });
        if let Some(commands) = self.commands.clone() {
            let proving = Arc::clone(session);
            renewing.spawn(async move { prove_when_asked(&proving, &commands).await });
        }

        let ended = tokio::select! {
            biased;
            () = shutdown.cancelled() => SessionEnd::Shutdown,
            () = session.gone.cancelled() => SessionEnd::Gone,
            () = session.drained.cancelled() => SessionEnd::Drained,
            () = self.fill(&slots, working) => SessionEnd::Gone,
        };
        match ended {
            SessionEnd::Gone => {
                let cleaned_up = Instant::now() + self.options.stop_grace;
                join_until(working, cleaned_up).await;
            }
            SessionEnd::Shutdown => self.drain(session, working).await,
            SessionEnd::Drained => {
                info!(running = working.len(), "taken out of service: running steps finish, then this worker leaves");
                session.draining.cancel();
                tokio::select! {
                    // As long as they take, unless the process is told to stop.
                    () = async { while working.join_next().await.is_some() {} } => {}
                    () = shutdown.cancelled() => {}
                }
                self.drain(session, working).await;
            }
        }
        ended
    }

    /// Polls for as many assignments as there are free slots; never returns while the session lives.
    async fn fill(&self, slots: &Arc<Slots<T>>, working: &mut JoinSet<()>) {
        let mut pauses = Pauses::new(&self.jitter);
        let session = &slots.session;
        loop {
            while working.try_join_next().is_some() {}
            let free = self.options.slots.saturating_sub(working.len() as u32);
            if free == 0 {
                working.join_next().await;
                continue;
            }
            let asked_at = Instant::now();
            match self.poll(session, free).await {
                Ok(polled) if polled.assignments.is_empty() && polled.offers.is_empty() => {
                    // A server that answers at once must not be asked in a tight loop.
                    sleep_until(asked_at + limits::EMPTY_POLL_PAUSE).await;
                    self.outage.over(RepeatedCall::Poll);
                    pauses.reset();
                }
                Ok(polled) => {
                    self.outage.over(RepeatedCall::Poll);
                    for offer in polled.offers {
                        let slots = Arc::clone(slots);
                        working.spawn(async move { slots.preflight(offer).await });
                    }
                    for assignment in polled.assignments {
                        let Some(taken) = slots.take(assignment) else { continue };
                        let slots = Arc::clone(slots);
                        working.spawn(async move { slots.work(taken).await });
                    }
                    pauses.reset();
                }
                Err(failure) if failure.is_session_gone() => return session.gone.cancel(),
                Err(failure) => {
                    match &failure {
                        TransportError::Refused { .. } => error!(error = %failure, "the server refuses to give work"),
                        TransportError::Unavailable(_) => {
                            self.outage.met(RepeatedCall::Poll, &failure);
                        }
                    }
                    pauses.pause().await;
                }
            }
        }
    }

    async fn poll(&self, session: &Session<T>, free: u32) -> Result<Polled, TransportError> {
        let wait = self.options.poll_wait.min(interlock_protocol::agent::limits::POLL_WAIT_MAX.as_duration());
        let round_trip_ms = session.take_round_trip();
        let poll = Poll { session: session.id, max: free, wait_ms: wait.into(), round_trip_ms };
        timed(wait + limits::CALL_TIMEOUT, session.transport.poll(poll)).await
    }

    /// Lets running tasks finish, gives the rest back, and ends the session. Renewals go on meanwhile.
    async fn drain(&self, session: &Session<T>, working: &mut JoinSet<()>) {
        info!(running = working.len(), "draining");
        session.draining.cancel();
        join_until(working, Instant::now() + self.options.drain_grace).await;
        if !working.is_empty() {
            warn!(running = working.len(), "the grace period is over; running steps are stopped and given back");
            session.stop_all();
            let released = Instant::now() + self.options.stop_grace + limits::FINAL_REPORTS;
            join_until(working, released).await;
            working.abort_all();
        }
        if session.gone.is_cancelled() {
            return;
        }
        let last_word = retry(&self.jitter, || true, || session.transport.unregister(session.id));
        if !matches!(timeout(limits::FINAL_REPORTS, last_word).await, Ok(Ok(()))) {
            warn!(session = %session.id, "the session was not ended; its lease will run out");
        }
    }
}

async fn join_until(working: &mut JoinSet<()>, at: Instant) {
    let all = async { while working.join_next().await.is_some() {} };
    tokio::select! {
        biased;
        () = all => {}
        () = sleep_until(at) => {}
    }
}
