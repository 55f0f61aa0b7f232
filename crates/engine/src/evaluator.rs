//! Where expressions run: off the async threads, a bounded number at once.

use std::sync::Arc;

use interlock_core::retry::{ErrorClass, StepError};
use tokio::sync::Semaphore;

/// Runs expressions on a bounded pool of threads, or in place in a simulation.
pub struct Evaluator {
    in_place: bool,
    permits: Arc<Semaphore>,
}

impl Evaluator {
    pub fn new(in_place: bool, at_once_max: usize) -> Self {
        Self { in_place, permits: Arc::new(Semaphore::new(at_once_max)) }
    }

    /// Runs a piece of evaluation.
    pub async fn run<T: Send + 'static>(&self, evaluate: impl FnOnce() -> T + Send + 'static) -> Result<T, StepError> {
        if self.in_place {
            return Ok(evaluate());
        }
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| failed("the engine is stopping"))?;
        let running = tokio::task::spawn_blocking(move || {
            let answer = evaluate();
            drop(permit);
            answer
        });
        running.await.map_err(|_| failed("the evaluation of an expression was aborted"))
    }
}

fn failed(message: &str) -> StepError {
    StepError::new(ErrorClass::Invalid, "EXPRESSION_FAILED", message)
}
