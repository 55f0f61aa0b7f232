//! Carries out bulk jobs. One server works on a job at a time, under a lease that it renews with every batch; if it
//! goes away, another one goes on from the last batch on record. What the lost server did beyond that is found by the
//! job's mark on the run's events, so that nothing is done twice.

use std::time::Duration;

use futures::future::join_all;
use interlock_core::bulk::BulkAction;
use interlock_core::ids::{JobId, RunId, ServerId, TenantId};
use interlock_core::json::Json;
use interlock_core::planted::{Bug, is_planted};
use interlock_core::rejection::Rejection;
use interlock_core::run::change::{Context, KEY_NAME};
use interlock_core::state::{Initiator, RunState};
use interlock_core::time::Millis;
use interlock_store::{AdvanceBulkJob, BulkFailure, BulkJob, Changed, ClaimBulkJob};

use crate::Engine;
use crate::commands::start::IdempotencyKey;
use crate::error::EngineError;

const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long a server that went silent is believed to be at work.
const LEASE: Millis = Millis::from_secs(30);
const JOBS_MAX: usize = 16;
/// Runs that are acted on at once; their progress is one commit.
const BATCH: usize = 32;
const EVENTS_PAGE: usize = 500;
/// The client that the idempotency keys of a job's new runs belong to. No other client can have this name: it has a
/// dot.
const CLIENT: &str = "interlock.bulk";

pub(crate) async fn run(engine: Engine) {
    let me = ServerId(engine.fresh_id());
    loop {
        engine.noted("bulk", work(&engine, me).await);
        tokio::select! {
            biased;
            () = engine.0.stopping.cancelled() => return,
            () = engine.0.bulk.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

async fn work(engine: &Engine, me: ServerId) -> Result<(), EngineError> {
    for (tenant, job) in engine.0.store.open_bulk_jobs(me, engine.now(), JOBS_MAX).await? {
        let now = engine.now();
        let claim = ClaimBulkJob { tenant, job, server: me, now, until: now + LEASE };
        if engine.0.set_aside.holds(tenant, job, now) {
            continue;
        }
        if engine.0.store.write(claim).await? == Changed::Done {
            engine.one_of_many(tenant, job, carry_out(engine, me, tenant, job)).await?;
        }
        if engine.0.stopping.is_cancelled() {
            return Ok(());
        }
    }
    Ok(())
}

async fn carry_out(engine: &Engine, me: ServerId, tenant: TenantId, id: JobId) -> Result<(), EngineError> {
    let Some(job) = engine.0.store.bulk_job(tenant, id).await? else { return Ok(()) };
    let mut next = job.next as usize;
    // Only the first batch can have been begun by a server that is gone.
    let mut uncertain = true;
    while next < job.runs.len() && !engine.0.stopping.is_cancelled() {
        let batch = &job.runs[next..job.runs.len().min(next + BATCH)];
        let acts = batch.iter().zip(next..).map(|(run, position)| {
            let target = Target { tenant, run: *run, position: position as u32 };
            act(engine, &job, target, uncertain)
        });
        let mut failures = Vec::new();
        for outcome in join_all(acts).await {
            failures.extend(outcome?);
        }
        uncertain = false;
        let to = next + batch.len();
        let now = engine.now();
        let progress = AdvanceBulkJob {
            tenant,
            job: id,
            server: me,
            from: next as u32,
            to: to as u32,
            failures,
            until: now + LEASE,
            finished_at: (to == job.runs.len()).then_some(now),
        };
        let recorded = engine.0.store.write(progress).await?;
        if recorded == Changed::Gone {
            tracing::warn!(job = %id, "another server took the bulk job over");
            return Ok(());
        }
        next = to;
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Target {
    tenant: TenantId,
    run: RunId,
    position: u32,
}

/// Acts on one run. A refusal is the run's own, and so are rows of it that cannot be read; a store that is away stops
/// the job for now.
async fn act(
    engine: &Engine,
    job: &BulkJob,
    target: Target,
    uncertain: bool,
) -> Result<Option<BulkFailure>, EngineError> {
    let Target { tenant, run, position } = target;
    let acted = async {
        if is_planted(Bug::BulkLeavesOneOut) && position == job.next {
            return Ok(());
        }
        if uncertain && did_before(engine, job.id, target).await? {
            return Ok(());
        }
        perform(engine, job, target).await
    };
    match acted.await {
        Ok(()) => Ok(None),
        // It was canceled meanwhile: that is what was wanted.
        Err(EngineError::Rejected(Rejection::Terminal { state: RunState::Canceled, .. }))
            if job.action == BulkAction::Cancel =>
        {
            Ok(None)
        }
        Err(error) if error.is_transient() && !error.is_of_its_rows() => Err(error),
        Err(error) => {
            let failure = BulkFailure { position, run, code: error.code().to_owned(), message: error.to_string() };
            tracing::debug!(job = %job.id, %tenant, %run, code = failure.code, "a run of a bulk job was left as it was");
            Ok(Some(failure))
        }
    }
}

async fn perform(engine: &Engine, job: &BulkJob, target: Target) -> Result<(), EngineError> {
    let Target { tenant, run, position } = target;
    let by = Context {
        person: job.person.clone(),
        metadata: Some(mark(job.id)),
        makers: job.maker.iter().cloned().collect(),
        ..Context::by(Initiator::Operator)
    };
    // What a key without an owner has asked for was not asked for by a person.
    let by = match &job.key {
        Some(key) => by.telling(KEY_NAME, key),
        None => by,
    };
    match job.action {
        BulkAction::Cancel => {
            engine.runs().cancel(tenant, run, job.reason.clone(), job.rollback, by).await?;
        }
        BulkAction::Resume => {
            engine.runs().resume(tenant, run, by).await?;
        }
        BulkAction::Retry => match engine.runs().retry(tenant, run, None, by.clone()).await {
            Err(EngineError::Rejected(Rejection::Terminal { .. })) => {
                // The key makes the new run once, however often the job is taken over.
                let key = IdempotencyKey { client: CLIENT.to_owned(), key: format!("{}:{position}", job.id) };
                engine.runs().resume_as_new(tenant, run, None, Some(key), by).await?;
            }
            other => {
                other?;
            }
        },
    }
    Ok(())
}

/// The field of a context's metadata that has the job's id.
const MARK: &str = "bulk_job";

/// The job's mark on what it does.
fn mark(job: JobId) -> Json {
    Json::trusted(format!(r#"{{"{MARK}":"{job}"}}"#))
}

async fn did_before(engine: &Engine, job: JobId, target: Target) -> Result<bool, EngineError> {
    // Beside what else is noted, such as a key's name.
    let is_marked = |metadata: &Json| metadata.to_value().is_ok_and(|noted| noted[MARK] == job.to_string());
    let mut since = 0;
    loop {
        let events = engine.0.store.events(target.tenant, target.run, since, EVENTS_PAGE).await?;
        let Some(last) = events.last() else { return Ok(false) };
        since = last.seq;
        if events.iter().any(|event| event.context.metadata.as_ref().is_some_and(is_marked)) {
            return Ok(true);
        }
    }
}
