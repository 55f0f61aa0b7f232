//! The end: all runs are over. What was acknowledged is there, every event has been told exactly once, every rollback
//! was in order, and the database agrees with itself.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::ids::{RunId, TenantId};
use interlock_core::plan::Work;
use interlock_core::run::Run;
use interlock_core::run::receipt::Receipt;
use interlock_core::state::{EffectClass, Reason, ReceiptState, RunState, StepKind, StepState};
use interlock_core::time::{Millis, Timestamp};
use interlock_store::{Page, ReadError, RunFilter, RunSummary, Tenant};
use serde_json::Value;

use super::{effects, payloads, turns};
use crate::bulk;
use crate::sim::{ALL, Sim};
use crate::{plans, subjects, triggers};

/// Everything that must hold at the end.
pub async fn check(sim: &Sim) -> Result<(), String> {
    super::follow(sim).await?;
    super::consistent(sim).await?;
    let unmatched = sim.database().unmatched(ALL).await.map_err(unreadable)?;
    if !unmatched.is_empty() {
        return Err(format!("P8: a signal and the wait for it were not brought together: {unmatched:?}"));
    }
    let mut nonces = BTreeSet::new();
    for tenant in &sim.tenants {
        let page = Page { limit: ALL, after: None };
        let summaries = sim.database().list_runs(tenant.id, &RunFilter::default(), page).await.map_err(unreadable)?;
        let ids: Vec<(TenantId, RunId)> = summaries.iter().map(|run| (tenant.id, run.run)).collect();
        let mut runs = sim.database().load_runs(&ids).await.map_err(unreadable)?;
        payloads::bring_back(sim, &mut runs).await?;
        starts(sim, tenant.id, &summaries)?;
        for run in &runs {
            ended(sim, run)?;
            effects::check(sim, run)?;
            rolled_back(run)?;
            verified(run)?;
            conditions(run)?;
            denied(sim, run).await?;
            once(sim, run, &mut nonces)?;
        }
        continued(&runs)?;
        subjects::check_replaced(sim, &runs)?;
        chains(sim, &runs).await?;
        rates(sim, tenant, &summaries)?;
        feed(sim, tenant.id, &summaries).await?;
        if !sim.swarm.retention {
            // The feed no longer tells of those that were swept.
            turns::check(sim, tenant.id, &summaries).await?;
        }
    }
    payloads::check(sim).await?;
    bulk::check(sim).await?;
    triggers::check(sim).await?;
    reports(sim)?;
    votes(sim).await?;
    signals(sim).await?;
    messages(sim)
}

fn unreadable(error: ReadError) -> String {
    format!("the database cannot be read: {error}")
}

fn starts(sim: &Sim, tenant: TenantId, runs: &[RunSummary]) -> Result<(), String> {
    let mut by_key: BTreeMap<&str, RunId> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.trigger_type == "api") {
        if let Some(key) = run.trigger_ref.as_deref()
            && let Some(other) = by_key.insert(key, run.run)
        {
            return Err(format!("P1: {key} has made two runs, {other} and {}", run.run));
        }
    }
    let there: BTreeSet<RunId> = runs.iter().map(|run| run.run).collect();
    let swept = sim.ledger(|ledger| ledger.swept.clone());
    sim.books(|books| {
        let mut told = books.runs.iter().filter(|(of, _)| *of == tenant);
        match told.find(|(of, run)| !there.contains(run) && !swept.contains(&(*of, *run))) {
            Some((_, run)) => Err(format!("P1: {run} was acknowledged and does not exist")),
            None => Ok(()),
        }
    })
}

fn ended(sim: &Sim, run: &Run) -> Result<(), String> {
    let good = |state| matches!(state, StepState::Succeeded | StepState::Skipped);
    let all_good = run.steps[..run.forward_len()].iter().all(|step| good(step.state()));
    if (run.state == RunState::Succeeded) != (all_good && run.state != RunState::Canceled) {
        return Err(format!("P4: {} is {}, and all its steps are good: {all_good}", run.id, run.state));
    }
    let canceled = sim.books(|books| books.cancels.contains(&(run.tenant, run.id)));
    if canceled && run.state != RunState::Canceled {
        return Err(format!("P1: the cancel of {} was acknowledged, and it is {}", run.id, run.state));
    }
    sim.tally.count(match run.state {
        RunState::Succeeded => "runs succeeded",
        RunState::Failed => "runs failed",
        _ => "runs canceled",
    });
    match run.reason {
        Some(Reason::ApprovalRejected) => sim.tally.count("runs that ended as rejected"),
        Some(Reason::ApprovalExpired) => sim.tally.count("runs that ended as expired"),
        _ => {}
    }
    let key = (run.tenant, run.id);
    let refused = sim.ledger(|ledger| ledger.runs.get(&key).map_or(0, |model| model.refused_while_paused));
    sim.tally.add("approvals refused while their run was paused", refused);
    Ok(())
}

/// What is recorded as not having happened has not: no try of it, whichever of them was refused. A restore forgets what was recorded
/// since its backup.
async fn denied(sim: &Sim, run: &Run) -> Result<(), String> {
    if sim.archive.restores() > 0 {
        return Ok(());
    }
    for row in sim.database().receipts(run.tenant, run.id).await.map_err(unreadable)? {
        let Receipt { key, state, effect, .. } = &row.receipt;
        let is_denied = *state == ReceiptState::Failed && *effect != EffectClass::Read && !row.receipt.is_of_claim();
        if is_denied && sim.sink.happened(run.tenant, key) > 0 {
            return Err(format!("P3: {key} of {} is recorded as failed, and has happened", run.id));
        }
    }
    Ok(())
}

/// A step that was undone is done again in a new iteration, so that no old receipt answers for it.
fn continued(runs: &[Run]) -> Result<(), String> {
    let by_id: BTreeMap<RunId, &Run> = runs.iter().map(|run| (run.id, run)).collect();
    let mut continued = BTreeMap::new();
    for run in runs {
        if let Some(lineage) = &run.header.lineage
            && let Some(other) = continued.insert(lineage.resumed_from, run.id)
        {
            return Err(format!("P3: both {other} and {} continue {}", run.id, lineage.resumed_from));
        }
        let old = run.header.lineage.as_ref().and_then(|lineage| by_id.get(&lineage.resumed_from));
        let Some(old) = old else { continue };
        for position in 0..run.forward_len() {
            let (before, now) = (&old.steps[position], &run.steps[position]);
            let undone = before.state() == StepState::RolledBack;
            if now.iteration < before.iteration + u32::from(undone) {
                let (from, to) = (before.iteration, now.iteration);
                return Err(format!(
                    "P3: step {position} of {} was {} in iteration {from} and goes on in {to} as {}",
                    old.id,
                    before.state(),
                    run.id
                ));
            }
        }
    }
    Ok(())
}

/// No person decides on a run that continues one which they started or resumed.
async fn chains(sim: &Sim, runs: &[Run]) -> Result<(), String> {
    let by_id: BTreeMap<RunId, &Run> = runs.iter().map(|run| (run.id, run)).collect();
    for run in runs.iter().filter(|run| run.header.lineage.is_some()) {
        let mut people = BTreeSet::new();
        let mut at = Some(run);
        while let Some(run) = at {
            people.extend(run.header.started_by.clone());
            at = run.header.lineage.as_ref().and_then(|lineage| by_id.get(&lineage.resumed_from).copied());
        }
        for approval in sim.database().approvals_of(run.tenant, run.id).await.map_err(unreadable)? {
            if let Some(vote) = approval.votes.iter().find(|vote| people.contains(&vote.person)) {
                return Err(format!("P5: {} has decided on {}, whose chain they are part of", vote.person, run.id));
            }
        }
    }
    Ok(())
}

/// Newest first, each step once, and none of those that must be undone is left out.
fn rolled_back(run: &Run) -> Result<(), String> {
    let undone: Vec<u32> = run
        .added
        .iter()
        .filter_map(|spec| match spec.work {
            Work::Rollback { undoes, verifies: false, .. } => Some(undoes),
            _ => None,
        })
        .collect();
    if !undone.windows(2).all(|pair| pair[0] > pair[1]) {
        return Err(format!("rollback: {} undoes its steps in the order {undone:?}", run.id));
    }
    if undone.is_empty() {
        return Ok(());
    }
    let left_out = (0..run.forward_len() as u32).find(|position| {
        let declared = run.spec(*position).rollback.as_ref();
        let always = declared.is_some_and(|rollback| rollback.conditions.len() == 2);
        always && run.steps[*position as usize].state() == StepState::Succeeded && !undone.contains(position)
    });
    match left_out {
        Some(position) => Err(format!("rollback: step {position} of {} succeeded and was not undone", run.id)),
        None => Ok(()),
    }
}

/// A rollback that the workflow has looked at counts as verified only where what looked has succeeded.
fn verified(run: &Run) -> Result<(), String> {
    for entry in run.notes.compensation_log.iter().filter(|entry| entry.verified == Some(true)) {
        let next = entry.by_step + 1;
        let Some(step) = run.steps.get(next as usize).filter(|_| run.spec(next).verifies_rollback()) else { continue };
        if step.state() != StepState::Succeeded {
            let undone = entry.step;
            return Err(format!("rollback: {} counts step {undone} as verified, and {next} has not looked", run.id));
        }
    }
    Ok(())
}

/// A step whose condition does not hold is never begun.
fn conditions(run: &Run) -> Result<(), String> {
    let inputs: Value = run.header.inputs.decode().unwrap_or_default();
    let Some(n) = inputs["n"].as_i64() else { return Ok(()) };
    for (position, step) in run.steps[..run.forward_len()].iter().enumerate() {
        let condition = run.spec(position as u32).condition.as_deref();
        let begun = step.attempt > 0 || step.state() == StepState::Succeeded;
        if begun && condition.and_then(|text| plans::holds(text, n)) == Some(false) {
            return Err(format!("P4: step {position} of {} was begun, and its condition is false for {n}", run.id));
        }
    }
    Ok(())
}

/// One signal satisfies one wait.
fn once(sim: &Sim, run: &Run, nonces: &mut BTreeSet<String>) -> Result<(), String> {
    let model = sim.ledger(|ledger| ledger.runs.get(&(run.tenant, run.id)).cloned()).unwrap_or_default();
    for signal in &model.signals {
        if !nonces.insert(signal.to_string()) {
            return Err(format!("{signal} has woken two waits, the second one in {}", run.id));
        }
    }
    for (position, step) in run.steps.iter().enumerate() {
        if run.spec(position as u32).kind() != StepKind::Wait || model.step(position).inherited {
            continue;
        }
        let output: Value = step.output.as_ref().and_then(|json| json.decode().ok()).unwrap_or_default();
        if let Some(nonce) = output["nonce"].as_u64()
            && !nonces.insert(nonce.to_string())
        {
            return Err(format!("signal {nonce} has ended two waits, the second one in {}", run.id));
        }
    }
    Ok(())
}

/// No more runs begin in any span of time than the tenant, or the workflow, may begin.
fn rates(sim: &Sim, tenant: &Tenant, runs: &[RunSummary]) -> Result<(), String> {
    let begun = |of: Option<&str>| -> Vec<Timestamp> {
        let runs = runs.iter().filter(|run| of.is_none_or(|workflow| run.workflow == workflow));
        let keys = runs.map(|run| (tenant.id, run.run));
        sim.ledger(|ledger| keys.filter_map(|key| ledger.runs.get(&key)?.first_claim_at).collect())
    };
    if let Some(per_min) = tenant.caps.max_runs_per_min {
        rate(begun(None), per_min).map_err(|what| format!("P9: {what} of {}", tenant.id))?;
    }
    for encoded in &sim.workflows {
        let workflow = &encoded.plan.workflow;
        if let Some(per_min) = encoded.plan.rules.runs_per_min_max {
            rate(begun(Some(workflow)), per_min)
                .map_err(|what| format!("P9: {what} of {workflow} in {}", tenant.id))?;
        }
    }
    Ok(())
}

fn rate(mut begun: Vec<Timestamp>, per_min: u32) -> Result<(), String> {
    begun.sort_unstable();
    let spacing = Millis::from_mins(1).0 / u64::from(per_min);
    for (first, from) in begun.iter().enumerate() {
        for (last, until) in begun.iter().enumerate().skip(first) {
            let (count, allowed) = ((last - first + 1) as u64, u64::from(per_min) + until.since(*from).0 / spacing);
            if count > allowed + 1 {
                return Err(format!("within {:?} began {count} runs", until.since(*from)));
            }
        }
    }
    Ok(())
}

/// The tenant's feed holds every event once, and its watcher has seen them all. Of runs that were swept it holds the places.
async fn feed(sim: &Sim, tenant: TenantId, runs: &[RunSummary]) -> Result<(), String> {
    let swept = sim.ledger(|ledger| {
        let models = ledger.runs.iter().filter(|(key, _)| key.0 == tenant && ledger.swept.contains(key));
        models.map(|(_, model)| model.seq).sum::<u64>()
    });
    let expected: u64 = runs.iter().map(|run| run.version).sum::<u64>() + swept;
    let mut seen: BTreeMap<RunId, u64> = BTreeMap::new();
    let (mut cursor, mut last_told) = (0, 0);
    // Few at a time where some are gone, so that whole pages are.
    let limit = if sim.swarm.retention { 3 } else { 700 };
    loop {
        let page = sim.database().tenant_events(tenant, cursor, limit).await.map_err(unreadable)?;
        if page.cursor == cursor {
            break;
        }
        for event in page.events {
            let last = seen.entry(event.run).or_default();
            let follows = event.cursor == last_told + 1 || (event.cursor > last_told && swept > 0);
            if !follows || event.seq != *last + 1 {
                return Err(format!("feed: event {} of {} stands at {}", event.seq, event.run, event.cursor));
            }
            (last_told, *last) = (event.cursor, event.seq);
        }
        cursor = page.cursor;
    }
    if let Some(run) = runs.iter().find(|run| seen.get(&run.run) != Some(&run.version)) {
        return Err(format!("feed: of {} events of {} it holds {:?}", run.version, run.run, seen.get(&run.run)));
    }
    let watched = sim.ledger(|ledger| ledger.watched_until(tenant));
    let unseen = runs
        .iter()
        .find(|run| sim.ledger(|ledger| ledger.watched_runs.get(&(tenant, run.run)).copied()) != Some(run.version));
    if cursor != expected || unseen.is_some() || (swept == 0 && watched != expected) {
        return Err(format!("feed: of {expected} events of {tenant} it holds {cursor}, the watcher saw {watched}"));
    }
    sim.tally.add("events watched", watched);
    Ok(())
}

/// A report that was answered with success has been recorded as what it was.
fn reports(sim: &Sim) -> Result<(), String> {
    let reports = sim.books(|books| books.reports.clone());
    sim.ledger(|ledger| {
        for (at, word) in &reports {
            let model = ledger.runs.get(&(at.tenant, at.run));
            if !model.is_some_and(|model| model.recorded.contains(&(at.position, at.attempt, *word))) {
                return Err(format!("P1: the report of {at:?} ({word:?}) was acknowledged and is not recorded"));
            }
        }
        Ok(())
    })
}

async fn votes(sim: &Sim) -> Result<(), String> {
    for vote in sim.books(|books| books.votes.clone()) {
        if sim.ledger(|ledger| ledger.swept.contains(&(vote.tenant, vote.run))) {
            continue;
        }
        let approvals = sim.database().approvals_of(vote.tenant, vote.run).await.map_err(unreadable)?;
        let approval = approvals.iter().find(|approval| approval.id == vote.approval);
        let counted = approval.is_some_and(|approval| {
            approval.votes.iter().any(|cast| cast.person == vote.person && cast.approve == vote.approve)
        });
        if !counted {
            return Err(format!("P1: the vote of {} on {} was acknowledged and is gone", vote.person, vote.approval));
        }
    }
    Ok(())
}

/// A signal that was acknowledged still waits for its wait, or some wait has used it up.
async fn signals(sim: &Sim) -> Result<(), String> {
    let mut acked: BTreeMap<(TenantId, String, String), u64> = BTreeMap::new();
    for signal in sim.books(|books| books.signals.clone()) {
        *acked.entry((signal.tenant, signal.signal_type, signal.key)).or_default() += 1;
    }
    for ((tenant, signal_type, key), count) in acked {
        let ever = Timestamp(0);
        let pending =
            sim.database().pending_signals(tenant, &signal_type, &key, ever, ALL).await.map_err(unreadable)?;
        let awaited = (signal_type, key);
        let consumed: u64 = sim.ledger(|ledger| {
            let runs = ledger.runs.iter().filter(|((of, _), _)| *of == tenant);
            runs.filter_map(|(_, model)| model.consumed.get(&awaited)).sum()
        });
        if count > pending.len() as u64 + consumed {
            let left = pending.len();
            return Err(format!("P1: of {count} signals {awaited:?} {consumed} were used up and {left} are left"));
        }
    }
    Ok(())
}

/// What was sent with an acknowledged wait has reached the outside.
fn messages(sim: &Sim) -> Result<(), String> {
    sim.books(|books| match books.questions.difference(&books.delivered).next() {
        Some(question) => Err(format!("outbox: {question} was never delivered")),
        None => Ok(()),
    })
}
