//! Inputs that operators have given to steps in place of what the plan says. They are the only other inputs that a step
//! may ever get. A restore does not take them back: they were said.

use std::sync::{Mutex, PoisonError};

use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::run::Run;
use serde_json::{Value, json};

use crate::plans::json_of;

/// The field that marks such an input.
const MARK: &str = "changed";

#[derive(Default)]
pub struct GivenInputs(Mutex<Vec<GivenInput>>);

struct GivenInput {
    tenant: TenantId,
    root: RunId,
    run: RunId,
    input: Value,
}

impl GivenInputs {
    /// What the run's current step was given, and one field more. Noted before the engine is asked to take it, because
    /// an answer may be lost.
    pub fn change(&self, run: &Run) -> Json {
        let mut input = run.input(run.position).to_value().unwrap_or_default();
        input[MARK] = json!(true);
        let changed = json_of(&input);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(GivenInput {
            tenant: run.tenant,
            root: run.root(),
            run: run.id,
            input,
        });
        changed
    }

    /// Whether an operator gave this input to a step of this very run.
    pub fn is_of_run(&self, tenant: TenantId, run: RunId, input: &Value) -> bool {
        self.any(|given| (given.tenant, given.run) == (tenant, run) && given.input == *input)
    }

    /// Whether an operator gave this input to a step of some run of the chain that began with `root`.
    pub fn is_of_chain(&self, tenant: TenantId, root: RunId, input: &Value) -> bool {
        self.any(|given| (given.tenant, given.root) == (tenant, root) && given.input == *input)
    }

    fn any(&self, matches: impl Fn(&GivenInput) -> bool) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().any(matches)
    }
}

/// Whether an input says of itself that an operator has given it.
pub fn is_marked(input: &Value) -> bool {
    input.get(MARK).is_some()
}
