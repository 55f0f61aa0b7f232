//! Workspaces share a tenant's subjects, but no start does anything to another workspace's run: it is refused, and not
//! told which run it is. Such a refusal is believed only where there was such a run.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::ids::{RunId, TenantId};
use interlock_core::run::Run;
use interlock_store::{Page, RunFilter, RunSummary};

use crate::sim::ALL;
use crate::sim::Sim;

/// The runs of a subject that had ended before a start was asked for, and so cannot have been in its way.
pub struct EndedRuns {
    world: u64,
    runs: BTreeSet<RunId>,
}

/// Where a start asks for a subject.
#[derive(Clone, Copy)]
pub struct SubjectRequest<'a> {
    pub tenant: TenantId,
    pub workspace: &'a str,
    pub subject: Option<&'a str>,
}

impl SubjectRequest<'_> {
    async fn runs(&self, sim: &Sim) -> Vec<RunSummary> {
        let Some(subject) = self.subject else { return Vec::new() };
        let filter = RunFilter { subject: Some(subject.to_owned()), ..RunFilter::default() };
        match sim.database().list_runs(self.tenant, &filter, Page { limit: ALL, after: None }).await {
            Ok(runs) => runs,
            Err(error) => {
                sim.broken(format!("runs of `{subject}` cannot be listed: {error}"));
                Vec::new()
            }
        }
    }

    /// To be looked at before the start is asked for.
    pub async fn ended(&self, sim: &Sim) -> EndedRuns {
        let world = sim.archive.restores();
        let ended = self.runs(sim).await.into_iter().filter(|run| run.state.is_terminal());
        EndedRuns { world, runs: ended.map(|run| run.run).collect() }
    }

    /// The start was refused for the sake of another workspace's run: there must have been one.
    pub async fn refused_elsewhere(&self, sim: &Sim, ended: &EndedRuns) {
        sim.tally.count("subject held by another workspace");
        let runs = self.runs(sim).await;
        let held = runs.iter().any(|run| run.workspace != self.workspace && !ended.runs.contains(&run.run));
        // A run that had ended lives again after a restore.
        if !held && ended.world == sim.archive.restores() {
            let Self { tenant, workspace, subject } = self;
            sim.broken(format!("no other workspace than {workspace} of {tenant} can have held {subject:?}"));
        }
    }

    /// The start was told of this run, refused for its sake or turned into a signal to it: both have one workspace.
    pub async fn told_of(&self, sim: &Sim, run: RunId) {
        let found = self.runs(sim).await.into_iter().find(|found| found.run == run);
        if let Some(found) = found.filter(|found| found.workspace != self.workspace) {
            let Self { workspace, subject, .. } = self;
            sim.broken(format!("{workspace} was told of {run} of {} for {subject:?}", found.workspace));
        }
    }
}

/// A run that was canceled to make room has made room for one of its own workspace.
pub fn check_replaced(sim: &Sim, runs: &[Run]) -> Result<(), String> {
    let by_id: BTreeMap<RunId, &Run> = runs.iter().map(|run| (run.id, run)).collect();
    for run in runs {
        let reason = run.notes.cancellation.as_ref().and_then(|canceled| canceled.reason.strip_prefix("replaced by "));
        let by = reason.and_then(|reason| reason.split(' ').next()?.parse().ok());
        let Some(by) = by.and_then(|by: RunId| by_id.get(&by)) else { continue };
        sim.tally.count("runs replaced on their subject");
        if by.header.workspace != run.header.workspace {
            let (mine, other) = (&run.header.workspace, &by.header.workspace);
            return Err(format!("{} of {mine} was canceled to make room for {} of {other}", run.id, by.id));
        }
    }
    Ok(())
}
