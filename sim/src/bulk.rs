//! Bulk jobs: an operator acts on all runs of a workflow at once. The job is carried out whatever becomes of the server
//! that began it: on every run of it once, or with a failure on record.

use std::collections::BTreeSet;
use std::time::Duration;

use interlock_core::bulk::BulkAction;
use interlock_core::ids::{JobId, RunId, TenantId};
use interlock_core::run::change::Context;
use interlock_core::run::event::Event;
use interlock_core::state::RunState;
use interlock_engine::EngineError;
use interlock_engine::audit::Actor;
use interlock_engine::commands::bulk::BulkRequest;
use interlock_store::RunFilter;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::caretaker::DRAIN_MAX;
use crate::network::{CallError, Caller, PATIENCE};
use crate::plans::json_of;
use crate::sim::ALL;
use crate::sim::Sim;
use crate::trace::say;

/// A job that was acknowledged.
#[derive(Debug, Clone)]
pub struct AckedJob {
    pub tenant: TenantId,
    pub id: JobId,
    pub action: BulkAction,
}

/// Looks at what a job would act on, then asks for it, again and again.
pub async fn order(caller: Caller) {
    let Caller { sim, dice, .. } = &caller;
    while !sim.is_calm() {
        sleep(dice.millis(2_000..=8_000)).await;
        let tenant = dice.pick(&sim.tenants).id;
        let workflow = dice.pick(&sim.workflows).plan.workflow.clone();
        let action = dice.weighted(&[(2, BulkAction::Resume), (1, BulkAction::Cancel)]);
        let filter = RunFilter { workflow: Some(workflow.clone()), ..RunFilter::default() };
        let looked = filter.clone();
        let preview = caller
            .call(PATIENCE, move |engine| {
                let filter = looked.clone();
                async move { engine.runs().matching(tenant, &filter, Some(action)).await }
            })
            .await;
        let Ok(matching) = preview else { continue };
        let request = BulkRequest {
            tenant,
            action,
            filter,
            filter_text: json_of(&json!({ "workflow": workflow })),
            reason: "simulated".into(),
            rollback: dice.one_in(2),
            by: Context::operator("olga"),
            expected_count: matching.runs.len() as u64,
        };
        let answer = caller
            .call(PATIENCE, move |engine| {
                let request = request.clone();
                async move {
                    let job = engine.runs().draft_bulk(request).await?;
                    engine.runs().start_bulk(tenant, job.clone(), &Actor::user("olga"), None).await?;
                    Ok(job)
                }
            })
            .await;
        match answer {
            Ok(job) => {
                say!(sim, "operator", "{action:?} of {} runs of {workflow}: {}", job.total, job.id);
                sim.tally.count("bulk jobs");
                sim.books(|books| books.jobs.push(AckedJob { tenant, id: job.id, action }));
            }
            // Another run has come meanwhile.
            Err(CallError::Refused(EngineError::BulkCount { .. })) => {}
            Err(error) if error.is_transient() => {}
            Err(error) => sim.broken(format!("a bulk job was refused: {error}")),
        }
    }
}

/// Waits until every job is done. A server that died with one holds it for a while.
pub async fn settle(sim: &Sim) -> Result<(), String> {
    let began = Instant::now();
    loop {
        let mut open = None;
        for job in sim.books(|books| books.jobs.clone()) {
            let found = sim.database().bulk_job(job.tenant, job.id).await.map_err(|error| error.to_string())?;
            if found.is_some_and(|job| job.finished_at.is_none()) {
                open = Some(job.id);
            }
        }
        let Some(open) = open else { return Ok(()) };
        if began.elapsed() > DRAIN_MAX {
            return Err(format!("P8: the bulk job {open} is not done"));
        }
        sleep(Duration::from_secs(1)).await;
    }
}

/// Every job has dealt with each of its runs, and with none of them twice.
pub async fn check(sim: &Sim) -> Result<(), String> {
    for AckedJob { tenant, id, action } in sim.books(|books| books.jobs.clone()) {
        let unreadable = |error: interlock_store::ReadError| error.to_string();
        let Some(job) = sim.database().bulk_job(tenant, id).await.map_err(unreadable)? else {
            if sim.swarm.retention {
                continue;
            }
            return Err(format!("P1: the bulk job {id} was acknowledged and is gone"));
        };
        if job.succeeded + job.failed != job.total {
            let (good, bad, all) = (job.succeeded, job.failed, job.total);
            return Err(format!("P1: of {all} runs of the bulk job {id} {good} succeeded and {bad} failed"));
        }
        let failures = sim.database().bulk_failures(tenant, id, None, ALL).await.map_err(unreadable)?;
        let failed: BTreeSet<RunId> = failures.into_iter().map(|failure| failure.run).collect();
        for run in job.runs.iter().filter(|run| !failed.contains(run)) {
            let Some(summary) = sim.database().run_overview(tenant, *run).await.map_err(unreadable)? else { continue };
            let done = times_done(sim, tenant, *run, id).await?;
            let left_out = action == BulkAction::Cancel && summary.state != RunState::Canceled;
            if done > 1 || left_out {
                let state = summary.state;
                return Err(format!(
                    "P1: the bulk job {id} ({action:?}) acted {done} times on {run}, which is {state}"
                ));
            }
            sim.tally.add("runs of bulk jobs", u64::from(done));
        }
    }
    Ok(())
}

/// How often the job has acted on the run: its mark is on what it did.
async fn times_done(sim: &Sim, tenant: TenantId, run: RunId, job: JobId) -> Result<u32, String> {
    let events = sim.database().events(tenant, run, 0, ALL).await.map_err(|error| error.to_string())?;
    let mark = json!({ "bulk_job": job.to_string() }).to_string();
    let mut times = 0;
    for record in events {
        let event: Event = record.event.decode().map_err(|error| format!("an event is no event: {error}"))?;
        let acts = matches!(event, Event::RunCanceled { .. } | Event::RunResumed {});
        times += u32::from(acts && record.context.metadata.is_some_and(|metadata| metadata.as_str() == mark));
    }
    Ok(times)
}
