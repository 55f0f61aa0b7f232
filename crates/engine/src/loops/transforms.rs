//! Transforms run inside the server: their template was rendered when they were activated, so all that is left is to
//! claim them and hand the value on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use interlock_core::ids::SessionId;
use interlock_core::plan::TRANSFORM_QUEUE;
use interlock_core::state::StepKind;
use interlock_core::work::{Assignment, AttemptRef, Report, ReportedOutcome, WorkerHello};

use crate::Engine;
use crate::error::EngineError;
use crate::sessions::Registered;

const SLOTS: u32 = 64;
const POLL_WAIT: Duration = Duration::from_hours(1);

pub(crate) async fn run(engine: Engine) {
    while !engine.0.stopping.is_cancelled() {
        // A new session takes over.
        let served = engine.noted("transforms", Box::pin(serve(&engine)).await);
        if served.is_none() && !engine.0.stopping.is_cancelled() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

async fn serve(engine: &Engine) -> Result<(), EngineError> {
    let hello = WorkerHello {
        worker: "interlock:transforms".into(),
        tenant: None,
        queues: vec![TRANSFORM_QUEUE.into()],
        slots: SLOTS,
        build_id: None,
        tasks: Some(Vec::new()),
        capabilities: Some(vec![StepKind::Transform.as_str().to_owned()]),
        environments: None,
        labels: BTreeMap::new(),
    };
    let registered = engine.workers().register(hello).await?;
    engine.noted("transforms", Ok::<_, EngineError>(()));
    let session = registered.session;
    // Side by side, so that a renewal never interrupts a poll in the middle of its claims.
    let held = Mutex::new(BTreeSet::new());
    let worked = tokio::select! {
        biased;
        worked = work(engine, session, &held) => worked,
        renewed = renew(engine, &registered, &held) => renewed,
    };
    if engine.0.stopping.is_cancelled() {
        engine.workers().unregister(session).await?;
    }
    worked
}

async fn work(engine: &Engine, session: SessionId, held: &Mutex<BTreeSet<AttemptRef>>) -> Result<(), EngineError> {
    loop {
        let polled = engine.workers().poll(session, SLOTS as usize, POLL_WAIT).await?;
        join_all(polled.into_iter().map(|assignment| finish(engine, session, assignment, held))).await;
    }
}

async fn renew(
    engine: &Engine,
    registered: &Registered,
    held: &Mutex<BTreeSet<AttemptRef>>,
) -> Result<(), EngineError> {
    loop {
        tokio::time::sleep(registered.renew_every.as_duration()).await;
        let listed: Vec<AttemptRef> = held.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        engine.workers().heartbeat(registered.session, &listed, false).await?;
    }
}

async fn finish(engine: &Engine, session: SessionId, mut assignment: Assignment, held: &Mutex<BTreeSet<AttemptRef>>) {
    loop {
        let at = assignment.at;
        held.lock().unwrap_or_else(PoisonError::into_inner).insert(at);
        let report = Report {
            at: assignment.at,
            epoch: assignment.epoch,
            outcome: ReportedOutcome::Completed { output: assignment.input },
            claim_next: true,
            cost: None,
            credentials: Vec::new(),
        };
        let completed = engine.workers().complete(session, report).await;
        held.lock().unwrap_or_else(PoisonError::into_inner).remove(&at);
        match completed {
            Ok(completed) => match completed.next {
                Some(next) => assignment = next,
                None => return,
            },
            Err(error) => {
                tracing::warn!(run = %at.run, %error, "a transform could not be recorded; its lease will expire");
                return;
            }
        }
    }
}
