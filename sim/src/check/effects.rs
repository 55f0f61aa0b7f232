//! What the steps say they did, against what the outside world has seen.

use interlock_core::plan::Work;
use interlock_core::run::Run;
use interlock_core::state::{StepKind, StepState};
use interlock_core::work::AttemptRef;
use serde_json::Value;

use crate::books::ReportKind;
use crate::given::is_marked;
use crate::plans::Behaviour;
use crate::sim::Sim;

/// Every step that succeeded has had each of its effects exactly once, and its output is its own attempt's.
pub fn check(sim: &Sim, run: &Run) -> Result<(), String> {
    for (position, step) in run.steps.iter().enumerate() {
        let spec = run.spec(position as u32);
        let wrong = |what: String| format!("step {position} ({}) of {}: {what}", spec.key, run.id);
        if step.state() != StepState::Succeeded || step.attempt == 0 {
            continue;
        }
        let output: Value = step.output.as_ref().and_then(|json| json.decode().ok()).unwrap_or_default();
        if spec.kind() == StepKind::Transform {
            let inputs: Value = run.header.inputs.decode().unwrap_or_default();
            // An operator's input takes the place of what the plan renders.
            let right = if is_marked(&output) {
                sim.given.is_of_run(run.tenant, run.id, &output)
            } else {
                output["sum"].as_i64() == inputs["n"].as_i64().map(|n| n + 1)
            };
            if !right {
                return Err(wrong(format!("a transform of {inputs} gave {output}")));
            }
            continue;
        }
        let handler = match &spec.work {
            Work::Task { handler, .. } => handler.as_str(),
            Work::Rollback { by, .. } => by.handler(),
            _ => continue,
        };
        if output["resolved"] == true {
            let at = AttemptRef { tenant: run.tenant, run: run.id, position: position as u32, attempt: step.attempt };
            if sim.books(|books| books.reports.get(&at) == Some(&ReportKind::Completed)) {
                return Err(wrong(format!(
                    "P1: its report was acknowledged, and what a person said stands there: {output}"
                )));
            }
            continue;
        }
        if output["attempt"] != step.attempt || output["step"] != spec.key.as_str() {
            return Err(wrong(format!("P2: attempt {} has the output {output}", step.attempt)));
        }
        let effects = Behaviour::parse(handler).map_or(0, |behaviour| behaviour.effects);
        let keys: Vec<&str> = output["keys"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if keys.len() != effects as usize {
            return Err(wrong(format!("P3: {effects} effects, and these keys: {keys:?}")));
        }
        for key in keys {
            let happened = sim.sink.happened(run.tenant, key);
            if happened != 1 {
                return Err(wrong(format!("P3: it succeeded, and its effect {key} happened {happened} times")));
            }
        }
    }
    Ok(())
}
