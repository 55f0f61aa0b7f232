//! Where texts of users are evaluated: expressions, workflow files, schedules. Off the async threads, as many at once
//! as there are cores, of which one tenant has a share; and within bounds: each piece of work gets one [`Budget`] for
//! all that it evaluates, and when it takes too long its caller stops waiting and the budget refuses to go on.
//!
//! Requests and the steps of runs do not wait for each other: each has places of its own. A request that finds no
//! place for a while is told to come back ([`Refused::Busy`]); a step waits, since its run would fail otherwise. Tests of
//! policies have places of their own too: one operation of theirs can go on for minutes after its caller has stopped
//! waiting, and holds its place until then.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use interlock_core::ids::TenantId;
use interlock_core::limits::{EXPRESSION_QUEUE_TIME_MAX, EXPRESSION_TIME_MAX};
use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_workflow::expression::budget::Budget;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// One tenant has at most this part of the places.
const TENANT_SHARE: usize = 4;
/// The fewest places: one tenant's share leaves at least one to the others.
const PLACES_MIN: usize = 2;
/// Tenants whose share is remembered while nothing of theirs runs.
const SHARES_KEPT_MAX: usize = 1_024;

/// Evaluates on a bounded number of threads, or in place in a simulation.
pub struct Evaluator {
    in_place: bool,
    steps: Places,
    requests: Places,
    policy_tests: Places,
    time_max: Duration,
    queue_time_max: Duration,
    abandoned: Arc<AtomicUsize>,
}

/// Why a request's evaluation gave no answer.
#[derive(Debug, PartialEq)]
pub enum Refused {
    /// There was no place for it in time.
    Busy,
    Failed(StepError),
}

impl Evaluator {
    /// As many evaluations at once as there are cores, for steps, and half as many for requests, and for tests of
    /// policies.
    pub fn new(in_place: bool, cores: usize) -> Self {
        Self {
            in_place,
            steps: Places::new(cores),
            requests: Places::new(cores / 2),
            policy_tests: Places::new(cores / 2),
            time_max: EXPRESSION_TIME_MAX.as_duration(),
            queue_time_max: EXPRESSION_QUEUE_TIME_MAX.as_duration(),
            abandoned: Arc::default(),
        }
    }

    /// How many evaluations still run though their callers have stopped waiting. Each holds its place.
    pub fn abandoned(&self) -> usize {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Evaluates for a tenant's run, or for what will start one. Waits for a place as long as it takes.
    pub async fn for_run<T: Send + 'static>(
        &self,
        tenant: TenantId,
        evaluate: impl FnOnce(&Budget) -> T + Send + 'static,
    ) -> Result<T, StepError> {
        if self.in_place {
            return Ok(evaluate(&Budget::default()));
        }
        let place = self.steps.take(tenant).await.ok_or_else(|| failed("the engine is stopping"))?;
        let took_too_long = "evaluating the expressions of this step takes longer than {limit} s, which is the limit; \
                             use fewer or simpler expressions, or compute this in a task";
        self.run(tenant, place, took_too_long, evaluate).await
    }

    /// Evaluates for a tenant's request.
    pub async fn for_request<T: Send + 'static>(
        &self,
        tenant: TenantId,
        evaluate: impl FnOnce(&Budget) -> T + Send + 'static,
    ) -> Result<T, Refused> {
        self.requested(&self.requests, tenant, evaluate).await
    }

    /// Runs tests of a tenant's policy for a request.
    pub async fn for_policy_tests<T: Send + 'static>(
        &self,
        tenant: TenantId,
        evaluate: impl FnOnce(&Budget) -> T + Send + 'static,
    ) -> Result<T, Refused> {
        self.requested(&self.policy_tests, tenant, evaluate).await
    }

    async fn requested<T: Send + 'static>(
        &self,
        places: &Places,
        tenant: TenantId,
        evaluate: impl FnOnce(&Budget) -> T + Send + 'static,
    ) -> Result<T, Refused> {
        if self.in_place {
            return Ok(evaluate(&Budget::default()));
        }
        let place = tokio::time::timeout(self.queue_time_max, places.take(tenant)).await;
        let Ok(Some(place)) = place else { return Err(Refused::Busy) };
        let took_too_long = "checking this request takes longer than {limit} s, which is the limit for all that one \
                             request has evaluated; send a smaller file, with fewer or simpler expressions and patterns";
        self.run(tenant, place, took_too_long, evaluate).await.map_err(Refused::Failed)
    }

    async fn run<T: Send + 'static>(
        &self,
        tenant: TenantId,
        place: Slot,
        took_too_long: &str,
        evaluate: impl FnOnce(&Budget) -> T + Send + 'static,
    ) -> Result<T, StepError> {
        let budget = Budget::default();
        let spent = budget.clone();
        let mut running = tokio::task::spawn_blocking(move || {
            let answer = evaluate(&spent);
            drop(place);
            answer
        });
        if let Ok(ended) = tokio::time::timeout(self.time_max, &mut running).await {
            return ended.map_err(|_| failed("the evaluation of an expression was aborted"));
        }
        budget.stop();
        self.abandon(tenant, running);
        Err(failed(&took_too_long.replace("{limit}", &self.time_max.as_secs_f64().to_string())))
    }

    /// A thread cannot be stopped from outside; it is counted until it meets the stopped budget, or ends by itself.
    fn abandon<T: Send + 'static>(&self, tenant: TenantId, running: tokio::task::JoinHandle<T>) {
        let abandoned = Arc::clone(&self.abandoned);
        let now = abandoned.fetch_add(1, Ordering::Relaxed) + 1;
        tracing::warn!(%tenant, abandoned = now, "an evaluation takes too long; its caller has stopped waiting");
        tokio::spawn(async move {
            drop(running.await);
            abandoned.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// A bounded number of places, of which a tenant has a share.
struct Places {
    all: Arc<Semaphore>,
    share: usize,
    shares: Mutex<HashMap<TenantId, Arc<Semaphore>>>,
}

/// One place, given back when it is dropped.
type Slot = (OwnedSemaphorePermit, OwnedSemaphorePermit);

impl Places {
    fn new(wanted: usize) -> Self {
        let places = wanted.max(PLACES_MIN);
        Self { all: Arc::new(Semaphore::new(places)), share: (places / TENANT_SHARE).max(1), shares: Mutex::default() }
    }

    /// A place for a tenant; none where the engine is stopping.
    async fn take(&self, tenant: TenantId) -> Option<Slot> {
        // The tenant's own place first, so that a caller that waits for it takes none from other tenants.
        let share = self.share_of(tenant).acquire_owned().await.ok()?;
        let place = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some((place, share))
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

    fn evaluator(cores: usize) -> Evaluator {
        let short = Duration::from_millis(50);
        Evaluator { time_max: short, queue_time_max: short, ..Evaluator::new(false, cores) }
    }

    /// What follows may take its time: only what hangs is to be cut off.
    fn patient(pool: Evaluator) -> Evaluator {
        Evaluator { time_max: Duration::from_mins(1), ..pool }
    }

    #[tokio::test]
    async fn a_tenant_that_fills_its_share_leaves_the_rest_to_others_and_is_told() {
        let pool = evaluator(8);
        let mut held = Vec::new();
        for _ in 0..2 {
            let (release, wait) = mpsc::channel::<()>();
            held.push(release);
            let error = pool.for_run(tenant(1), move |_| wait.recv().ok()).await.unwrap_err();
            assert_eq!(error.code, "EXPRESSION_FAILED");
            assert!(error.message.contains("longer than"), "{error}");
        }
        assert_eq!(pool.abandoned(), 2);
        let pool = patient(pool);
        let third = tokio::time::timeout(Duration::from_millis(50), pool.for_run(tenant(1), |_| 3)).await;
        assert!(third.is_err(), "its share is used up");
        assert_eq!(pool.for_run(tenant(2), |_| 4).await.unwrap(), 4);
        held.clear();
        assert_eq!(pool.for_run(tenant(1), |_| 5).await.unwrap(), 5, "what has ended gives its place back");
    }

    #[tokio::test]
    async fn there_are_as_many_places_as_cores_and_a_request_is_told_when_there_is_none() {
        let pool = evaluator(2);
        assert_eq!((pool.steps.all.available_permits(), pool.requests.all.available_permits()), (2, 2));
        assert_eq!(evaluator(64).steps.all.available_permits(), 64);
        let (_release, wait) = mpsc::channel::<()>();
        let refused = pool.for_request(tenant(1), move |_| wait.recv().ok()).await.unwrap_err();
        let Refused::Failed(StepError { message, .. }) = refused else { panic!("{refused:?}") };
        assert!(
            message.contains("this request takes longer than 0.05 s") && message.contains("a smaller file"),
            "{message}"
        );
        let pool = patient(pool);
        assert_eq!(pool.for_request(tenant(1), |_| 1).await, Err(Refused::Busy));
        assert_eq!(pool.for_request(tenant(2), |_| 2).await, Ok(2));
        assert_eq!(pool.for_run(tenant(1), |_| 3).await, Ok(3), "runs have places of their own");
    }

    #[tokio::test]
    async fn a_policy_test_that_goes_on_keeps_no_place_but_that_of_tests() {
        let pool = evaluator(2);
        let (_release, wait) = mpsc::channel::<()>();
        let endless = pool.for_policy_tests(tenant(1), move |_| wait.recv().ok()).await;
        assert!(matches!(endless, Err(Refused::Failed(_))), "{endless:?}");
        let pool = patient(pool);
        assert_eq!(pool.for_policy_tests(tenant(1), |_| 1).await, Err(Refused::Busy));
        assert_eq!(pool.for_request(tenant(1), |_| 2).await, Ok(2), "other requests of the tenant are answered");
        assert_eq!(pool.for_policy_tests(tenant(2), |_| 3).await, Ok(3));
    }

    #[tokio::test]
    async fn work_that_takes_too_long_is_stopped_by_its_budget() {
        let pool = evaluator(2);
        let (ended, end) = mpsc::channel();
        let endless = move |budget: &Budget| {
            // Spends nothing, so that only the deadline ends it.
            while budget.hand_over(0).is_ok() {
                std::thread::yield_now();
            }
            ended.send(()).ok();
        };
        pool.for_run(tenant(1), endless).await.unwrap_err();
        let ended = tokio::task::spawn_blocking(move || end.recv_timeout(Duration::from_secs(30))).await.unwrap();
        assert_eq!(ended, Ok(()), "the thread ends by itself");
    }
}
