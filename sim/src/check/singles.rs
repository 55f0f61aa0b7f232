//! One active run for a subject at a time, and one run ever for an occasion: a slot, a delivery, a signal.

use std::collections::BTreeMap;

use interlock_core::ids::RunId;
use interlock_core::state::Detail;
use interlock_store::RunSummary;

use crate::sim::Sim;
use crate::triggers;

/// A slot, a delivery or a signal has one run of a workflow.
pub fn one_per_occasion(sim: &Sim, run: &RunSummary) -> Result<(), String> {
    let Some(occasion) = triggers::occasion(run) else { return Ok(()) };
    let key = (run.tenant, occasion);
    match sim.ledger(|ledger| *ledger.occasions.entry(key.clone()).or_insert(run.run)) {
        first if first == run.run => Ok(()),
        first => Err(format!("P1: {} has two runs, {first} and {}", key.1, run.run)),
    }
}

/// One active run per subject: all others that live wait for it.
pub fn one_per_subject(runs: &[RunSummary]) -> Result<(), String> {
    let mut active: BTreeMap<&str, RunId> = BTreeMap::new();
    for run in runs.iter().filter(|run| !run.state.is_terminal() && run.detail != Some(Detail::SubjectBusy)) {
        if let Some(subject) = run.subject.as_deref()
            && let Some(other) = active.insert(subject, run.run)
        {
            return Err(format!("{subject} has two active runs, {other} and {}", run.run));
        }
    }
    Ok(())
}
