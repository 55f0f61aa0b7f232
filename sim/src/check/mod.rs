//! The promises, checked. [`claims`] looks after every commit, [`follow`] folds what runs have journaled meanwhile
//! through a model of its own ([`fold`]) and compares it with what is stored, [`finale`] looks at everything once
//! all runs have ended.

mod ballots;
mod effects;
pub mod finale;
mod fold;
pub mod heard;
mod payloads;
mod singles;
mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use interlock_core::ids::{RunId, SessionId, SignalId, TenantId};
use interlock_core::json::Hash;
use interlock_core::plan::Work;
use interlock_core::run::Run;
use interlock_core::run::event::Event;
use interlock_core::run::project::projected;
use interlock_core::state::{ReceiptState, StepState};
use interlock_core::tenant::caps::Caps;
use interlock_core::time::Timestamp;
use interlock_core::work::AttemptRef;
use interlock_store::{EventRecord, Page, RunFilter, RunSummary};

use tokio::time::Instant;

pub use ballots::STARTER;
pub use fold::{RunModel, Stage};

use crate::host::EPOCH;
use crate::sim::{ALL, Sim};
use crate::trace::say;
use crate::triggers;

/// How long a dead worker's claim may last. The reaper looks every second; it waits one lease after a start, and after
/// a store that stood still, as it may have done when the faults ended.
const RECLAIM_MAX: Duration = Duration::from_secs(30);

/// What the checks remember.
#[derive(Clone)]
pub struct Ledger {
    caps: BTreeMap<TenantId, Caps>,
    /// By workflow; in each tenant for itself.
    limits: BTreeMap<String, Caps>,
    /// The workflow of every run that was ever seen with a claim.
    workflows: BTreeMap<(TenantId, RunId), String>,
    /// Who held an attempt.
    claims: BTreeMap<AttemptRef, SessionId>,
    pub runs: BTreeMap<(TenantId, RunId), RunModel>,
    /// How far each tenant's watcher has come.
    watched: BTreeMap<TenantId, u64>,
    /// The last event of each run that the watcher has seen.
    watched_runs: BTreeMap<(TenantId, RunId), u64>,
    /// Claims of dead workers, and since when no worker has taken them.
    orphans: BTreeMap<AttemptRef, Instant>,
    /// Signals whose wait is open, and since when.
    unheard: BTreeMap<(TenantId, RunId, SignalId), Instant>,
    /// Runs that ended and are gone.
    swept: BTreeSet<(TenantId, RunId)>,
    /// Runs by what they were started for.
    pub occasions: BTreeMap<(TenantId, String), RunId>,
}

impl Ledger {
    pub fn new(caps: BTreeMap<TenantId, Caps>, limits: BTreeMap<String, Caps>) -> Self {
        Self {
            caps,
            limits,
            workflows: BTreeMap::new(),
            claims: BTreeMap::new(),
            runs: BTreeMap::new(),
            watched: BTreeMap::new(),
            watched_runs: BTreeMap::new(),
            orphans: BTreeMap::new(),
            unheard: BTreeMap::new(),
            swept: BTreeSet::new(),
            occasions: BTreeMap::new(),
        }
    }

    pub fn watched(&mut self, tenant: TenantId, cursor: u64, (run, seq): (RunId, u64)) {
        self.watched.insert(tenant, cursor);
        self.watched_runs.insert((tenant, run), seq);
    }

    pub fn watched_until(&self, tenant: TenantId) -> u64 {
        self.watched.get(&tenant).copied().unwrap_or(0)
    }

    fn check_claims(&mut self, live: &BTreeMap<AttemptRef, SessionId>) -> Result<(), String> {
        let mut per_tenant: BTreeMap<TenantId, u32> = BTreeMap::new();
        let mut per_workflow: BTreeMap<(TenantId, &String), u32> = BTreeMap::new();
        for (at, session) in live {
            *per_tenant.entry(at.tenant).or_default() += 1;
            if let Some(workflow) = self.workflows.get(&(at.tenant, at.run)) {
                *per_workflow.entry((at.tenant, workflow)).or_default() += 1;
            }
            let holder = *self.claims.entry(*at).or_insert(*session);
            if holder != *session {
                return Err(format!("P2: {at:?} was claimed by {holder} and then by {session}"));
            }
        }
        for (tenant, count) in per_tenant {
            let max = self.caps.get(&tenant).and_then(|caps| caps.max_concurrency);
            if max.is_some_and(|max| count > max) {
                return Err(format!("P9: {count} live claims of {tenant}, which may have {max:?}"));
            }
        }
        for ((tenant, workflow), count) in per_workflow {
            let max = self.limits.get(workflow).and_then(|caps| caps.max_concurrency);
            if max.is_some_and(|max| count > max) {
                return Err(format!("P9: {count} live claims of {workflow} in {tenant}, which may have {max:?}"));
            }
        }
        Ok(())
    }
}

/// After the faults: what a dead worker held is taken from it in time.
pub async fn reclaimed(sim: &Sim) -> Result<(), String> {
    let lost = sim.database().lost_claims(sim.hosts.now(), ALL).await.map_err(|error| error.to_string())?;
    sim.ledger(|ledger| {
        let now = Instant::now();
        let before = std::mem::take(&mut ledger.orphans);
        for claim in lost {
            let (tenant, run, position, attempt) = (claim.tenant, claim.run, claim.position, claim.attempt);
            let at = AttemptRef { tenant, run, position, attempt };
            if sim.damage.has_held(tenant, run) {
                continue;
            }
            let since = before.get(&at).copied().unwrap_or(now);
            if since.elapsed() > RECLAIM_MAX {
                return Err(format!("P8: {at:?} is held by a session that has been dead for {:?}", since.elapsed()));
            }
            ledger.orphans.insert(at, since);
        }
        Ok(())
    })
}

/// The claims that are live now: within the caps, and no attempt in two hands.
pub async fn claims(sim: &Sim) -> Result<(), String> {
    // At the end of all time every lease is over, so every claim is listed.
    let live = sim.database().lost_claims(Timestamp(i64::MAX), ALL).await.map_err(|error| error.to_string())?;
    let live: BTreeMap<AttemptRef, SessionId> = live
        .into_iter()
        .map(|claim| {
            let (tenant, run, position, attempt) = (claim.tenant, claim.run, claim.position, claim.attempt);
            (AttemptRef { tenant, run, position, attempt }, claim.session)
        })
        .collect();
    for at in live.keys() {
        let key = (at.tenant, at.run);
        if sim.ledger(|ledger| ledger.workflows.contains_key(&key)) {
            continue;
        }
        let found = sim.database().run_overview(at.tenant, at.run).await.map_err(|error| error.to_string())?;
        sim.ledger(|ledger| ledger.workflows.extend(found.map(|run| (key, run.workflow))));
    }
    sim.ledger(|ledger| ledger.check_claims(&live))
}

/// Reads what runs have journaled since the last look.
pub async fn follow(sim: &Sim) -> Result<(), String> {
    for tenant in &sim.tenants {
        let page = Page { limit: ALL, after: None };
        let runs = sim.database().list_runs(tenant.id, &RunFilter::default(), page).await;
        let runs = runs.map_err(|error| format!("runs cannot be listed: {error}"))?;
        still_there(sim, tenant.id, &runs)?;
        singles::one_per_subject(&runs)?;
        triggers::clock::no_overlap(sim, tenant.id, &runs)?;
        for summary in runs {
            follow_run(sim, &summary).await.map_err(|what| format!("{what} ({})", summary.run))?;
        }
    }
    Ok(())
}

/// What was there is there, or it has ended and was swept.
fn still_there(sim: &Sim, tenant: TenantId, runs: &[RunSummary]) -> Result<(), String> {
    let there: BTreeSet<RunId> = runs.iter().map(|run| run.run).collect();
    sim.ledger(|ledger| {
        let gone = ledger.runs.iter().filter(|((of, run), _)| *of == tenant && !there.contains(run));
        for (key, model) in gone {
            // A run whose row cannot be read is not followed: an engine that has it in memory may end it meanwhile.
            let is_followed = !sim.damage.has_held(key.0, key.1);
            if (model.ended.is_none() && is_followed) || !sim.swarm.retention {
                return Err(format!("P1: {} was there, {:?}, and is not any more", key.1, model.ended));
            }
            if ledger.swept.insert(*key) {
                sim.tally.count("runs swept");
            }
        }
        Ok(())
    })
}

/// Rows agree with each other at every instant, not only in the end.
pub async fn consistent(sim: &Sim) -> Result<(), String> {
    let findings = sim.database().check().await.map_err(|error| format!("the database cannot be read: {error}"))?;
    match findings.iter().find(|found| !sim.damage.explains(&found.row)) {
        Some(found) => Err(format!("the database disagrees with itself: {} in {}", found.what, found.row)),
        None => Ok(()),
    }
}

async fn follow_run(sim: &Sim, summary: &RunSummary) -> Result<(), String> {
    let key = (summary.tenant, summary.run);
    let mut model = sim.ledger(|ledger| ledger.runs.remove(&key)).unwrap_or_default();
    if model.seq == summary.version && model.seq > 0 {
        if model.ended.is_some_and(|state| state != summary.state) {
            return Err(format!("P4: it ended as {:?} and is {} now", model.ended, summary.state));
        }
        sim.ledger(|ledger| ledger.runs.insert(key, model));
        return Ok(());
    }
    if model.seq == 0 {
        singles::one_per_occasion(sim, summary)?;
    }
    if sim.damage.holds(key.0, key.1) {
        sim.ledger(|ledger| ledger.runs.insert(key, model));
        return Ok(());
    }
    let database = sim.database();
    let loaded = database.load_runs(&[key]).await.map_err(|error| format!("it cannot be loaded: {error}"))?;
    let run = loaded.into_iter().next().ok_or("it is listed and cannot be loaded")?;
    let events = database.events(key.0, key.1, model.seq, ALL).await.map_err(|error| error.to_string())?;
    for record in &events {
        say!(sim, "journal", "{} {} @{} {}", run.id, record.seq, record.at.0 - EPOCH.0, record.event.as_str());
        model.fold(&run, record, sim.swarm.skew())?;
        settled(sim, record)?;
    }
    if model.seq != run.version || run.version != summary.version {
        let (last, version) = (model.seq, run.version);
        return Err(format!("P4: its last event is {last}, its version {version} (listed: {})", summary.version));
    }
    compare(&model, &run)?;
    approved_inputs(sim, &model, &run).await?;
    sim.ledger(|ledger| ledger.runs.insert(key, model));
    Ok(())
}

/// That one attempt was refused does not settle an earlier one that had the effect. A restore forgets that there was one.
fn settled(sim: &Sim, record: &EventRecord) -> Result<(), String> {
    if sim.archive.restores() > 0 {
        return Ok(());
    }
    match record.event.decode() {
        Ok(Event::ReceiptRecorded { attempt, receipt, state: ReceiptState::Failed, .. })
            if sim.sink.was_refused_after(receipt, attempt) =>
        {
            Err(format!("P3: {receipt} is recorded as failed, and an earlier attempt has had its effect"))
        }
        _ => Ok(()),
    }
}

/// A step that people let run once more has the input whose hash they were shown.
async fn approved_inputs(sim: &Sim, model: &RunModel, run: &Run) -> Result<(), String> {
    if model.reruns.is_empty() {
        return Ok(());
    }
    let approvals = sim.database().approvals_of(run.tenant, run.id).await.map_err(|error| error.to_string())?;
    for (step, approval) in &model.reruns {
        let row = approvals.iter().find(|row| row.id == *approval);
        let shown = row.and_then(|row| row.message.as_deref()).unwrap_or_default();
        let input = run.input(*step);
        if !shown.contains(&Hash::of(input.as_str().as_bytes()).to_string()) {
            return Err(format!("P5: step {step} has the input {}, and people approved: {shown}", input.as_str()));
        }
    }
    Ok(())
}

/// What the events say and what is stored must be the same.
fn compare(model: &RunModel, run: &Run) -> Result<(), String> {
    let projected = projected(run);
    if run.state != projected && !run.state.is_terminal() {
        return Err(format!("P4: it is stored as {} and its steps say {projected}", run.state));
    }
    model.has_cause(run.reason).map_err(|what| format!("P5: it {what}"))?;
    if model.ended.is_some() != run.state.is_terminal() {
        return Err(format!("P4: it is {}, and its events say that it ended: {:?}", run.state, model.ended));
    }
    for (position, step) in run.steps.iter().enumerate() {
        let known = model.step(position);
        let (stored, stage) = (step.state(), known.stage);
        let same = match stage {
            Stage::Idle => match stored {
                StepState::Pending | StepState::Ready => true,
                // Steps that were never reached are canceled without a word.
                StepState::Canceled => run.notes.cancellation.is_some(),
                _ => false,
            },
            Stage::Running(_) => stored == StepState::Running,
            Stage::Waiting => stored == StepState::WaitingSignal,
            Stage::Asking => stored == StepState::WaitingApproval,
            Stage::Doubt => stored == StepState::InDoubt,
            Stage::Done(state) => stored == state || (known.inherited && stored == StepState::Skipped),
        };
        if !same {
            return Err(format!("P4: step {position} is stored as {stored}, its events say {stage:?}"));
        }
        if step.attempt != known.attempt
            || !iterations(run, position).contains(&(step.iteration.wrapping_sub(known.iteration)))
        {
            return Err(format!(
                "P2: step {position} is stored with attempt {} of iteration {}, its events say {} of {}",
                step.attempt, step.iteration, known.attempt, known.iteration
            ));
        }
    }
    Ok(())
}

/// Where the iterations of a step may begin: with those of what it undoes, or with what an earlier run has left, which
/// the end looks into.
fn iterations(run: &Run, position: usize) -> std::ops::RangeInclusive<u32> {
    match run.spec(position as u32).work {
        // One that was not reached has none of its own yet.
        Work::Rollback { undoes, .. } if run.steps[position].attempt == 0 => 0..=run.steps[undoes as usize].iteration,
        Work::Rollback { undoes, .. } => run.steps[undoes as usize].iteration..=run.steps[undoes as usize].iteration,
        _ if run.header.lineage.is_some() => 0..=u32::MAX,
        _ => 0..=0,
    }
}
