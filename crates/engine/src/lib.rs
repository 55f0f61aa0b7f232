//! The engine: commands on runs, and the loops that keep them going.
//!
//! [`Engine`] is the handle. A command loads the run's cell, evaluates what must be known beforehand ([`bind`]), lets
//! `core::decide` choose, and submits the change set; a refused version loads and decides again. After a commit the
//! hints go out: to [`dispatch`] (a step is ready), to the timers, to the [`feed`]. The loops find by themselves what
//! no hint told them of, so a lost hint costs time and never a run.

mod assignment;
pub mod audit;
pub mod bind;
pub mod cells;
pub mod clock;
pub mod commands;
pub mod counters;
pub mod deliver;
pub mod dispatch;
mod encoded_plan;
pub mod error;
pub mod evaluator;
mod execute;
mod faults;
pub mod feed;
mod health;
pub mod ids;
pub mod loops;
pub mod message;
mod missed;
pub mod options;
pub mod output;
pub mod parts;
pub mod payloads;
pub mod policy;
pub mod run_log;
pub mod schedules;
pub mod sessions;
pub mod set_aside;
pub mod slack;
pub mod sole_tenant;
mod targets;
pub mod tenants;
pub mod traces;
mod triggers;
mod unparked;
pub mod vault;
pub mod webhooks;
pub mod workflows;

use std::sync::Arc;
use std::time::Duration;

use interlock_boxed::boxed;
use interlock_core::ids::TenantId;
use interlock_core::plan::retry::StepError;
use interlock_core::planted::{Bug, is_planted};
use interlock_core::rejection::Rejection;
use interlock_core::run::why::WorkerSettings;
use interlock_core::time::{Millis, Timestamp};
use interlock_outbound::Outbound;
use interlock_store::{Installation, SignIn, Store, TenantStore};
use interlock_workflow::expression::budget::Budget;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use commands::apply::{Applied, ApplyError, ApplyWorkflow, Expected};
pub use commands::start::{IdempotencyKey, StartRun, Started};
pub use commands::start_workflow::StartWorkflow;
pub use encoded_plan::EncodedPlan;
pub use error::EngineError;
pub use options::EngineOptions;
pub use policy::JudgedBy;
pub use workflows::WorkflowVersion;

/// A running engine. Cheap to clone; all clones are one engine.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub store: Store,
    pub options: EngineOptions,
    pub epoch: u64,
    pub cells: cells::Cells,
    pub dispatch: dispatch::Dispatch,
    pub sessions: sessions::Sessions,
    pub feed: feed::Feed,
    pub set_aside: set_aside::SetAside,
    pub unparked: unparked::Unparked,
    pub outages: loops::outage::Outages,
    pub loops: loops::supervise::Loops,
    pub evaluator: evaluator::Evaluator,
    pub workflows: workflows::Cache,
    pub rules: policy::Rules,
    pub standing: policy::StandingLeave,
    pub tenant_switches: tenants::TenantSwitches,
    pub sole_tenant: Arc<sole_tenant::SoleTenant>,
    pub targets: targets::Targets,
    pub timers: loops::timers::Alarm,
    pub wake_sealer: tokio::sync::Notify,
    pub wake_audit: tokio::sync::Notify,
    pub wake_evidence: tokio::sync::Notify,
    pub relay: tokio::sync::Notify,
    pub bulk: tokio::sync::Notify,
    pub counters: counters::Counters,
    pub publish: tokio::sync::Notify,
    pub output_room: tokio::sync::Semaphore,
    pub schedules: loops::schedules::Bell,
    pub payloads: Option<payloads::Payloads>,
    pub traces: Option<traces::Traces>,
    pub tasks: TaskTracker,
    pub stopping: CancellationToken,
}

/// Why an engine does not start.
#[derive(Debug, thiserror::Error)]
pub enum OpenEngineError {
    #[error(
        "this machine's clock is {skew_ms} ms away from the database's (limit {max_ms} ms): set it right, then start again"
    )]
    ClockSkew { skew_ms: i64, max_ms: u64 },
    #[error(transparent)]
    Store(#[from] interlock_store::OpenError),
    #[error(transparent)]
    Read(#[from] interlock_store::ReadError),
    #[error("the restore of this store was interrupted and cannot be finished: {0}")]
    Restore(#[from] Box<EngineError>),
}

impl Engine {
    /// Takes over a store and starts the loops. What was under way when the last engine stopped goes on.
    #[boxed]
    pub async fn open(store: Store, options: EngineOptions) -> Result<Self, OpenEngineError> {
        if options.loops {
            // From here on no restore gets under this engine; one that is under way is not got under either.
            store.enter_service().await?;
        }
        loops::clock_sync::at_start(&store, &options).await?;
        let epoch = store.epoch().await?;
        let payloads = match options.payloads.clone() {
            Some(place) => Some(payloads::Payloads::new(place, &store.payload_mark().await?, store.clone())),
            None => None,
        };
        let inner = Inner {
            epoch,
            cells: cells::Cells::new(options.cells_max),
            dispatch: dispatch::Dispatch::new(options.ready_max, options.busy_from_places),
            sessions: sessions::Sessions::default(),
            feed: feed::Feed::default(),
            set_aside: set_aside::SetAside::default(),
            unparked: unparked::Unparked::default(),
            outages: loops::outage::Outages::default(),
            loops: loops::supervise::Loops::new(options.clock.clone()),
            workflows: workflows::Cache::default(),
            rules: policy::Rules::default(),
            standing: policy::StandingLeave::default(),
            tenant_switches: tenants::TenantSwitches::default(),
            sole_tenant: Arc::default(),
            evaluator: evaluator::Evaluator::new(options.expressions_in_place, options.expressions_max),
            targets: targets::Targets::default(),
            timers: loops::timers::Alarm::default(),
            wake_sealer: tokio::sync::Notify::new(),
            wake_audit: tokio::sync::Notify::new(),
            wake_evidence: tokio::sync::Notify::new(),
            relay: tokio::sync::Notify::new(),
            bulk: tokio::sync::Notify::new(),
            counters: counters::Counters::new(options.metrics_by_tenant),
            publish: tokio::sync::Notify::new(),
            output_room: tokio::sync::Semaphore::new(commands::output::OUTPUT_IN_FLIGHT_KIB),
            schedules: loops::schedules::Bell::default(),
            payloads,
            traces: options.traces.clone().map(|to| traces::Traces::new(to, options.ids.fresh().to_string())),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
            store,
            options,
        };
        let engine = Self(Arc::new(inner));
        if engine.0.options.loops {
            // Nothing is dispatched, and no timer runs, before what a restore left to do is done.
            let parked = if is_planted(Bug::RestoreNotFinished) {
                Vec::new()
            } else {
                engine.runs().park_restored().await.map_err(Box::new)?.parked
            };
            if !parked.is_empty() {
                tracing::warn!(runs = parked.len(), "an interrupted restore was finished: runs that act are paused");
            }
        }
        // Read after that: another process may be the one that finishes the restore, and the list is written with the same commit.
        engine.learn_unparked().await?;
        if engine.0.options.loops {
            engine.park_readable().await.map_err(Box::new)?;
            loops::spawn_all(&engine).await?;
        }
        Ok(engine)
    }

    pub fn now(&self) -> Timestamp {
        self.0.options.clock.now()
    }

    pub fn clock(&self) -> &clock::Clock {
        &self.0.options.clock
    }

    /// The whole store, for those who run the server: the command line, tests and tools. The server's routes use the
    /// handles that follow.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// One tenant's part of the store.
    pub fn for_tenant(&self, tenant: TenantId) -> TenantStore {
        self.0.store.for_tenant(tenant)
    }

    /// Finds out whose credential a request brings.
    pub fn sign_in(&self) -> SignIn {
        self.0.store.sign_in()
    }

    /// The tenants themselves, and what the store keeps once.
    pub fn installation(&self) -> Installation {
        self.0.store.installation()
    }

    /// A fresh id from the engine's own source.
    pub fn fresh_id(&self) -> uuid::Uuid {
        self.0.options.ids.fresh()
    }

    /// Evaluates texts of users for a request, off the async threads and within its budget.
    pub async fn evaluate<T: Send + 'static>(
        &self,
        tenant: TenantId,
        work: impl FnOnce(&Budget) -> T + Send + 'static,
    ) -> Result<T, EngineError> {
        Ok(self.0.evaluator.for_request(tenant, work).await?)
    }

    /// The same for tests of a policy.
    pub(crate) async fn evaluate_tests<T: Send + 'static>(
        &self,
        tenant: TenantId,
        work: impl FnOnce(&Budget) -> T + Send + 'static,
    ) -> Result<T, EngineError> {
        Ok(self.0.evaluator.for_policy_tests(tenant, work).await?)
    }

    /// The same for what happens without a request that could be sent again.
    pub(crate) async fn evaluate_trigger<T: Send + 'static>(
        &self,
        tenant: TenantId,
        work: impl FnOnce(&Budget) -> T + Send + 'static,
    ) -> Result<T, EngineError> {
        let refused = |error: StepError| Rejection::InvalidInput { what: error.message };
        self.0.evaluator.for_run(tenant, work).await.map_err(|error| refused(error).into())
    }

    /// The client for calls to the outside, where the engine was given one.
    pub fn outbound(&self) -> Option<&Outbound> {
        self.0.options.outbound.as_ref()
    }

    /// How long a worker session lives without a renewal.
    pub fn session_lease(&self) -> Millis {
        self.0.options.session_lease
    }

    /// How often a worker renews its session, and is looked for.
    pub fn worker_settings(&self) -> WorkerSettings {
        let options = &self.0.options;
        WorkerSettings {
            renewal: options.session_renewal,
            assignment_attempts: options.assignment.attempts_max() as u32,
        }
    }

    /// Does something after a while, or as soon as the engine stops, which waits for it.
    pub fn do_later(&self, wait: Duration, work: impl Future<Output = ()> + Send + 'static) {
        let stopping = self.0.stopping.clone();
        self.0.tasks.spawn(async move {
            let _ = tokio::time::timeout(wait, stopping.cancelled()).await;
            work.await;
        });
    }

    /// Stops the loops and waits for them. The store stays open for its other holders.
    #[boxed]
    pub async fn stop(&self) {
        self.0.stopping.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}
