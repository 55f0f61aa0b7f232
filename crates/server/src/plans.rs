//! Plans that came with requests, checked and encoded once. Most callers send the same few again and again, and reading
//! a plan costs more than everything else that a start does on this side of the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use interlock_core::ids::TenantId;
use interlock_core::json::{Hash, Json};
use interlock_core::plan::Plan;
use interlock_core::text::json_words::json_error;
use interlock_engine::{EncodedPlan, Engine};

use crate::api_error::ApiError;

/// Past this many the memory is emptied, which costs reading each of them once more.
const PLANS_MAX: usize = 1_024;
/// A longer one is not worth its memory.
const PLAN_BYTES_MAX: usize = 64 << 10;

#[derive(Default)]
pub struct Plans(Mutex<HashMap<Hash, Arc<EncodedPlan>>>);

impl Plans {
    /// The plan that a text says. Where it is not known yet its expressions are read where all of a tenant's are.
    pub async fn read(&self, engine: &Engine, tenant: TenantId, text: &Json) -> Result<Arc<EncodedPlan>, ApiError> {
        let hash = Hash::of(text.as_str().as_bytes());
        if let Some(known) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&hash) {
            return Ok(Arc::clone(known));
        }
        let plan: Plan =
            text.decode().map_err(|error| ApiError::malformed(format!("the body: plan: {}", json_error(&error))))?;
        let plan = engine.evaluate(tenant, move |budget| EncodedPlan::given(plan, budget)).await??;
        if text.len() <= PLAN_BYTES_MAX {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= PLANS_MAX {
                known.clear();
            }
            known.insert(hash, Arc::clone(&plan));
        }
        Ok(plan)
    }
}
