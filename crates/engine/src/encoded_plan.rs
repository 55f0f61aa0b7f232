//! Plans as runs are started from them.

use std::sync::Arc;

use interlock_core::json::{Hash, Json};
use interlock_core::plan::Plan;
use interlock_core::rejection::Rejection;
use interlock_workflow::expression;
use interlock_workflow::expression::budget::Budget;

/// A plan that has been checked, with the text under whose hash it is stored. Made once per workflow version.
#[derive(Debug, Clone)]
pub struct EncodedPlan {
    pub plan: Arc<Plan>,
    pub hash: Hash,
    pub text: Json,
}

impl EncodedPlan {
    /// A plan that comes with a request instead of a workflow: what it says of itself only tightens what is known. Its
    /// expressions are read, which may take a while.
    pub fn given(mut plan: Plan, budget: &Budget) -> Result<Arc<Self>, Rejection> {
        plan.check_given()?;
        interlock_workflow::given::tighten(&mut plan);
        for step in &plan.steps {
            if let Some(source) = &step.condition {
                let checked = expression::check(expression::pieces::unwrapped(source), budget);
                checked.map_err(|error| Rejection::InvalidPlan {
                    workflow: plan.workflow.clone(),
                    what: format!("step `{}`: {}", step.key, error.message),
                })?;
            }
        }
        Self::new(plan)
    }

    /// Checks a plan whose expressions were checked where it was made.
    pub fn new(plan: Plan) -> Result<Arc<Self>, Rejection> {
        plan.validate()?;
        let (hash, text) = plan.encode();
        Ok(Arc::new(Self { plan: Arc::new(plan), hash, text }))
    }
}
