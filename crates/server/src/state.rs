//! What every route can reach.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, header};
use interlock_core::ids::TenantId;
use interlock_core::json::Json;
use interlock_core::run::why::WorkerSettings;
use interlock_core::time::{Millis, Timestamp};
use interlock_engine::payloads::Payloads;
use interlock_engine::{EncodedPlan, Engine, EngineError, parts};
use interlock_store::{Installation, SignIn, TenantStore};
use interlock_workflow::expression::budget::Budget;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::api_error::ApiError;
use crate::body::Unfinished;
use crate::broker::Broker;
use crate::identity::Identity;
use crate::identity::oidc::Provider;
use crate::limits;
use crate::live::Hub;
use crate::metrics::Metrics;
use crate::options::{ServerOptions, scheme};
use crate::plans::Plans;
use crate::repeated_calls::RepeatedCalls;
use crate::seats::Seats;
use crate::tls::{Tls, WorkerIssuer};

/// Presses in Slack that are worked on at once.
const SLACK_PRESSES_MAX: usize = 64;

/// A route takes the part of the engine that it needs; no route gets the whole engine.
macro_rules! hands_out {
    ($($accessor:ident: $part:ty,)+) => {
        impl AppState {
            $(
                pub(crate) fn $accessor(&self) -> $part {
                    self.0.engine.$accessor()
                }
            )+
        }
    };
}

hands_out! {
    runs: parts::Runs,
    workers: parts::Workers,
    workflows: parts::Workflows,
    policies: parts::Policies,
    signals: parts::Signals,
    schedules: parts::Schedules,
    webhooks: parts::Webhooks,
    slack: parts::Slack,
    requests: parts::Requests,
    events: parts::Events,
    audit: parts::Audit,
    tenants: parts::Tenants,
    health: parts::EngineHealth,
    sign_in: SignIn,
    installation: Installation,
}

#[derive(Clone)]
pub struct AppState(Arc<SharedState>);

struct SharedState {
    engine: Engine,
    default_tenant: TenantId,
    identity: Identity,
    oidc: Option<Provider>,
    public_url: Option<String>,
    listen: SocketAddr,
    tls: Option<Tls>,
    shutdown: CancellationToken,
    metrics: Metrics,
    plans: Plans,
    hub: Hub,
    unfinished: Unfinished,
    /// For the channels of workers.
    channels: Arc<Seats>,
    repeated_calls: RepeatedCalls,
    broker: Option<Arc<Broker>>,
    /// Presses in Slack that are worked on behind their answers.
    slack_presses: Arc<Semaphore>,
}

impl AppState {
    pub(crate) fn new(engine: Engine, options: &ServerOptions, tls: Option<Tls>, shutdown: CancellationToken) -> Self {
        if let Some(outbound) = engine.outbound() {
            outbound.add_listener(options.listen);
        }
        let identity = Identity::new(engine.clone(), options.secret.clone(), options.identity());
        let (default_tenant, listen) = (options.default_tenant, options.listen);
        let (oidc, public_url) = (options.oidc.clone(), options.public_url.clone());
        let (metrics, plans) = (Metrics::default(), Plans::default());
        let hub = Hub::new(engine.clone(), options.live_streams_per_tenant_max, shutdown.clone());
        let unfinished = Unfinished::new(options.connections);
        Self(Arc::new(SharedState {
            engine,
            default_tenant,
            identity,
            oidc,
            public_url,
            listen,
            tls,
            shutdown,
            metrics,
            plans,
            hub,
            unfinished,
            broker: options.broker.clone().map(|address| Arc::new(Broker::new(address, &options.secret))),
            channels: Seats::new(limits::CHANNELS_MAX, limits::CHANNELS_PER_TENANT_MAX),
            repeated_calls: RepeatedCalls::default(),
            slack_presses: Arc::new(Semaphore::new(SLACK_PRESSES_MAX)),
        }))
    }

    pub fn now(&self) -> Timestamp {
        self.0.engine.now()
    }

    pub(crate) fn fresh_id(&self) -> Uuid {
        self.0.engine.fresh_id()
    }

    /// What a new row is known by: its id, and since when it is there.
    pub(crate) fn fresh(&self) -> (Uuid, Timestamp) {
        (self.fresh_id(), self.now())
    }

    /// Evaluates texts of users for a request, off the async threads and within its budget.
    pub(crate) async fn evaluate<T: Send + 'static>(
        &self,
        tenant: TenantId,
        work: impl FnOnce(&Budget) -> T + Send + 'static,
    ) -> Result<T, EngineError> {
        self.0.engine.evaluate(tenant, work).await
    }

    /// Where payloads are kept that are too long for the database.
    pub(crate) fn payloads(&self) -> Option<&Payloads> {
        self.0.engine.payloads()
    }

    /// A payload itself, wherever it is kept.
    pub(crate) async fn at_hand(&self, tenant: TenantId, json: Json) -> Result<Json, EngineError> {
        self.0.engine.at_hand(tenant, json).await
    }

    /// How long a worker session lives without a renewal.
    pub(crate) fn session_lease(&self) -> Millis {
        self.0.engine.session_lease()
    }

    /// How often a worker renews its session, and is looked for.
    pub(crate) fn worker_settings(&self) -> WorkerSettings {
        self.0.engine.worker_settings()
    }

    /// The tenant of people who sign in without naming one.
    pub fn default_tenant(&self) -> TenantId {
        self.0.default_tenant
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// The plan that a text says.
    pub(crate) async fn plan_of(&self, tenant: TenantId, text: &Json) -> Result<Arc<EncodedPlan>, ApiError> {
        self.0.plans.read(&self.0.engine, tenant, text).await
    }

    pub fn identity(&self) -> &Identity {
        &self.0.identity
    }

    /// A tenant's part of the store: the database itself hides all others' rows, where it can.
    pub fn for_tenant(&self, tenant: TenantId) -> TenantStore {
        self.0.engine.for_tenant(tenant)
    }

    /// The tenant of this name; the default one if none is named. `None` if there is no such tenant.
    pub async fn tenant_named(&self, name: Option<&str>) -> Result<Option<TenantId>, ApiError> {
        let Some(name) = name else { return Ok(Some(self.default_tenant())) };
        Ok(self.sign_in().tenant_named(name).await?)
    }

    /// The identity provider, if one is configured.
    pub fn oidc(&self) -> Option<&Provider> {
        self.0.oidc.as_ref()
    }

    /// How people reach this server: as the operator says, else as this request did.
    pub fn base_url(&self, headers: &HeaderMap) -> String {
        self.0.public_url.clone().unwrap_or_else(|| {
            let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
            let scheme = scheme(self.0.tls.is_some());
            format!("{scheme}://{}", host.map_or_else(|| self.0.listen.to_string(), str::to_owned))
        })
    }

    /// The host of the public address.
    pub(crate) fn public_host(&self) -> Option<&str> {
        let url = self.0.public_url.as_deref()?;
        url.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or(rest))
    }

    /// What signs the certificates of workers, if this server speaks HTTPS and has an authority.
    pub(crate) fn worker_issuer(&self) -> Option<Arc<WorkerIssuer>> {
        self.0.tls.as_ref()?.worker_issuer()
    }

    /// Whether only this machine can reach the server.
    pub(crate) fn is_on_loopback(&self) -> bool {
        self.0.listen.ip().is_loopback()
    }

    /// Fires when the server stops: a request that waits for news answers with what there is.
    pub(crate) fn shutdown(&self) -> &CancellationToken {
        &self.0.shutdown
    }

    /// The memory of bodies that have not come in completely.
    pub(crate) fn unfinished(&self) -> &Unfinished {
        &self.0.unfinished
    }

    /// Places for the channels of workers.
    pub(crate) fn channels(&self) -> &Arc<Seats> {
        &self.0.channels
    }

    /// The calls of workers that are known by their names.
    pub(crate) fn repeated_calls(&self) -> &RepeatedCalls {
        &self.0.repeated_calls
    }

    /// The broker of workers' calls, if this server has one.
    pub(crate) fn broker(&self) -> Option<&Arc<Broker>> {
        self.0.broker.as_ref()
    }

    /// Room to work on a press in Slack, if there is any.
    pub(crate) fn slack_place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.slack_presses).try_acquire_owned().ok()
    }

    /// The hub of the live streams.
    pub(crate) fn hub(&self) -> &Hub {
        &self.0.hub
    }
}
