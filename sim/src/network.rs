//! The network between the callers and the engine: requests and answers are delayed, lost, duplicated, or come when the
//! caller does not wait any more; connections break in the middle of a request.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use interlock_engine::{Engine, EngineError};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::dice::Dice;
use crate::hosts::Route;
use crate::sim::Sim;
use crate::swarm::Fault;

/// One end of a connection.
#[derive(Clone)]
pub struct Caller {
    pub sim: Arc<Sim>,
    pub dice: Dice,
    pub route: Route,
    /// Whether what it asks may arrive in a world that was restored meanwhile. What workers ask does, and is fenced;
    /// a person would not press the old button again.
    pub persistent: bool,
}

/// Why a call has no answer.
#[derive(Debug)]
pub enum CallError {
    /// Whether it was carried out is unknown.
    Lost,
    Refused(EngineError),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("no answer"),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl CallError {
    /// Whether the same call may get a better answer later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Lost => true,
            Self::Refused(error) => error.is_transient(),
        }
    }
}

/// The longest that a message is on its way.
pub const LATEST: Duration = Duration::from_secs(30);
/// How long a caller waits for an ordinary answer.
pub const PATIENCE: Duration = Duration::from_secs(3);

impl Caller {
    pub fn new(sim: &Arc<Sim>, dice: &Dice) -> Self {
        let dice = dice.fork();
        Self { sim: Arc::clone(sim), route: sim.hosts.route(&dice), dice, persistent: false }
    }

    pub fn persistent(self) -> Self {
        Self { persistent: true, ..self }
    }

    /// Calls an engine that is up when the request arrives.
    pub async fn call<T, Request, Served>(&self, patience: Duration, request: Request) -> Result<T, CallError>
    where
        T: Send + 'static,
        Request: Fn(Engine) -> Served + Send + Sync + 'static,
        Served: Future<Output = Result<T, EngineError>> + Send + 'static,
    {
        let (sim, dice) = (&self.sim, &self.dice);
        let request = Arc::new(request);
        let (answer, answered) = oneshot::channel();
        if sim.fires(Fault::Duplicate, dice) {
            let late = dice.millis(if dice.one_in(4) { 2_000..=LATEST.as_millis() as u64 } else { 0..=400 });
            tokio::spawn(carry(self.clone(), Arc::clone(&request), late, None));
        }
        let mut unsent = Some(answer);
        if !sim.fires(Fault::RequestLost, dice) {
            let late = sim.fires(Fault::Late, dice);
            let delay = dice.millis(if late { 3_000..=LATEST.as_millis() as u64 } else { 0..=10 });
            tokio::spawn(carry(self.clone(), request, delay, unsent.take()));
        }
        // A request that was lost keeps its sender, so that the caller waits in vain as it would.
        match timeout(patience, answered).await {
            // An answer from before a restore speaks of a world that is gone.
            Ok(Ok((epoch, _))) if epoch != sim.archive.restores() => Err(CallError::Lost),
            Ok(Ok((_, Ok(answer)))) => Ok(answer),
            Ok(Ok((_, Err(error)))) => {
                sim.must_be_lawful(&error);
                Err(CallError::Refused(error))
            }
            Ok(Err(_)) | Err(_) => Err(CallError::Lost),
        }
    }
}

/// The answer, and the world that it was given in.
type AnswerSender<T> = oneshot::Sender<(u64, Result<T, EngineError>)>;

/// One request on its way, and its answer on the way back.
async fn carry<T, Request, Served>(
    caller: Caller,
    request: Arc<Request>,
    delay: Duration,
    answer: Option<AnswerSender<T>>,
) where
    T: Send + 'static,
    Request: Fn(Engine) -> Served + Send + Sync + 'static,
    Served: Future<Output = Result<T, EngineError>> + Send + 'static,
{
    let Caller { sim, dice, route, persistent } = caller;
    let made_in = sim.archive.restores();
    sleep(delay).await;
    if made_in != sim.archive.restores() && !persistent {
        return;
    }
    let gone = sim.fires(Fault::CallerGone, &dice).then(|| dice.millis(0..=30));
    let lost = sim.fires(Fault::AnswerLost, &dice);
    let way_back = dice.millis(0..=10);
    let arrived = Arc::clone(&sim);
    let epoch = sim.archive.restores();
    arrived.hosts.serve((route, &dice), move |engine| {
        Box::pin(async move {
            let served = request(engine);
            let result = match gone {
                // The connection broke: the server drops the request wherever it stands.
                Some(after) => match timeout(after, served).await {
                    Ok(result) => result,
                    Err(_) => return,
                },
                None => served.await,
            };
            if lost {
                return;
            }
            sleep(way_back).await;
            if let Some(answer) = answer {
                let _ = answer.send((epoch, result));
            }
        })
    });
}
