//! Where expressions run: off the async threads, a bounded number at once, of which one tenant has a share, and nobody
//! waits longer than a limit for one of them. What an expression may cost is bounded where it is evaluated
//! (`interlock_workflow::expression::budget`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use interlock_core::ids::TenantId;
use interlock_core::limits::EXPRESSION_TIME_MAX;
use interlock_core::retry::{ErrorClass, StepError};
use tokio::sync::Semaphore;

/// One tenant has at most this part of the pool.
const TENANT_SHARE: usize = 4;
/// Tenants whose share is remembered while nothing of theirs runs.
const SHARES_KEPT_MAX: usize = 1_024;

/// Runs expressions on a bounded pool of threads, or in place in a simulation.
pub struct Evaluator {
    in_place: bool,
    permits: Arc<Semaphore>,
    share: usize,
    shares: Mutex<HashMap<TenantId, Arc<Semaphore>>>,
    time_max: Duration,
    abandoned: Arc<AtomicUsize>,
}

impl Evaluator {
    pub fn new(in_place: bool, at_once_max: usize) -> Self {
        Self {
            in_place,
            permits: Arc::new(Semaphore::new(at_once_max)),
            share: (at_once_max / TENANT_SHARE).max(1),
            shares: Mutex::default(),
            time_max: EXPRESSION_TIME_MAX.as_duration(),
            abandoned: Arc::default(),
        }
    }

    /// How many evaluations still run though nobody waits for them any more. Each holds its place in the pool.
    pub fn abandoned(&self) -> usize {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Runs a piece of evaluation for a tenant.
    pub async fn run<T: Send + 'static>(
        &self,
        tenant: TenantId,
        evaluate: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, StepError> {
        if self.in_place {
            return Ok(evaluate());
        }
        let stopping = |_| failed("the engine is stopping");
        // The tenant's own place first, so that whoever waits for it takes none from the others.
        let share = self.share_of(tenant).acquire_owned().await.map_err(stopping)?;
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(stopping)?;
        let mut running = tokio::task::spawn_blocking(move || {
            let answer = evaluate();
            drop((permit, share));
            answer
        });
        if let Ok(ended) = tokio::time::timeout(self.time_max, &mut running).await {
            return ended.map_err(|_| failed("the evaluation of an expression was aborted"));
        }
        self.abandon(tenant, running);
        let limit = self.time_max.as_secs_f64();
        Err(failed(&format!("the evaluation takes longer than {limit} s; compute this in a task")))
    }

    /// A thread cannot be stopped; it is counted until it ends by itself.
    fn abandon<T: Send + 'static>(&self, tenant: TenantId, running: tokio::task::JoinHandle<T>) {
        let abandoned = Arc::clone(&self.abandoned);
        let now = abandoned.fetch_add(1, Ordering::Relaxed) + 1;
        tracing::warn!(%tenant, abandoned = now, "an evaluation takes too long; nobody waits for it any more");
        tokio::spawn(async move {
            drop(running.await);
            abandoned.fetch_sub(1, Ordering::Relaxed);
        });
    }

    fn share_of(&self, tenant: TenantId) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if shares.len() >= SHARES_KEPT_MAX {
            shares.retain(|_, share| Arc::strong_count(share) > 1);
        }
        Arc::clone(shares.entry(tenant).or_insert_with(|| Arc::new(Semaphore::new(self.share))))
    }
}

fn failed(message: &str) -> StepError {
    StepError::new(ErrorClass::Invalid, "EXPRESSION_FAILED", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn tenant(number: u128) -> TenantId {
        TenantId(uuid::Uuid::from_u128(number))
    }

    #[tokio::test]
    async fn a_tenant_that_fills_its_share_leaves_the_rest_to_others_and_is_told() {
        let pool = Evaluator { time_max: Duration::from_millis(50), ..Evaluator::new(false, 8) };
        let mut held = Vec::new();
        for _ in 0..2 {
            let (release, wait) = mpsc::channel::<()>();
            held.push(release);
            let error = pool.run(tenant(1), move || wait.recv().ok()).await.unwrap_err();
            assert_eq!(error.code, "EXPRESSION_FAILED");
            assert!(error.message.contains("longer than"), "{error}");
        }
        assert_eq!(pool.abandoned(), 2);
        let third = tokio::time::timeout(Duration::from_millis(50), pool.run(tenant(1), || 3)).await;
        assert!(third.is_err(), "its share is used up");
        assert_eq!(pool.run(tenant(2), || 4).await.unwrap(), 4);
        held.clear();
        assert_eq!(pool.run(tenant(1), || 5).await.unwrap(), 5, "what has ended gives its place back");
    }
}
