//! Outputs that were too long for their rows: what the rows refer to is there, as it was reported.

use interlock_core::run::Run;
use interlock_engine::payloads::survey::{Depth, survey};

use crate::dice::Dice;
use crate::sim::Sim;

/// Puts outputs in the place of what the rows hold for them.
pub async fn bring_back(sim: &Sim, runs: &mut [Run]) -> Result<(), String> {
    if !sim.swarm.payloads {
        return Ok(());
    }
    let engine = sim.hosts.reach(&Dice::new(0)).await;
    let payloads = engine.payloads().ok_or("an engine of this world has a place for payloads")?;
    for run in runs {
        for step in &mut run.steps {
            let Some(output) = step.output.as_ref().filter(|output| payloads.reference(output).is_some()) else {
                continue;
            };
            let whole = payloads.fetch(run.tenant, output).await;
            step.output = Some(whole.map_err(|error| format!("P1: an output of {} is gone: {error}", run.id))?);
            sim.tally.count("payloads put aside");
        }
    }
    Ok(())
}

/// Every reference in the database is to something that is there.
pub async fn check(sim: &Sim) -> Result<(), String> {
    if !sim.swarm.payloads {
        return Ok(());
    }
    let found = survey(sim.database(), &sim.objects, Depth::Whole, |_| {}).await.map_err(|error| error.to_string())?;
    match found.lost_total {
        0 => Ok(()),
        lost => Err(format!("P1: {lost} payloads that rows refer to are not there")),
    }
}
