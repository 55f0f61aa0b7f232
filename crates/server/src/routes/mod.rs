//! The routes: a folder for each noun, a file for each verb.

pub mod agent;
pub mod approvals;
pub mod auth;
pub mod bulk;
pub mod delegations;
pub mod executions;
pub mod health;
pub mod keys;
pub mod live;
pub mod me;
pub mod metrics;
pub mod runs;
pub mod schedules;
pub mod signals;
pub mod tenants;
pub mod users;
pub mod waits;
pub mod webhook_endpoints;
pub mod webhooks;
pub mod workflows;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use interlock_engine::Engine;
use tokio_util::sync::CancellationToken;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::api_error::ApiError;
use crate::body::close_if_unread;
use crate::guard;
use crate::idempotency::outlive_connection;
use crate::listen::ServerOptions;
use crate::observe;
use crate::openapi;
use crate::pages;
use crate::request::check_address;
use crate::state::AppState;

/// The routes that need to know who asks.
fn guarded() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .merge(agent::routes())
        .merge(approvals::routes())
        .merge(auth::routes())
        .merge(delegations::routes())
        .merge(keys::routes())
        .merge(me::routes())
        .merge(runs::routes())
        .merge(executions::routes())
        .merge(bulk::routes())
        .merge(live::routes())
        .merge(signals::routes())
        .merge(waits::routes())
        .merge(metrics::routes())
        .merge(tenants::routes())
        .merge(users::routes())
        .merge(schedules::routes())
        .merge(webhook_endpoints::routes())
        .merge(webhooks::routes())
        .merge(workflows::routes())
}

/// The routes that everybody may use.
fn open() -> OpenApiRouter<AppState> {
    health::routes().merge(workflows::open()).merge(webhooks::open_routes())
}

/// What the guarded and the open routes say of themselves.
pub(crate) fn described() -> (OpenApi, OpenApi) {
    (guarded().merge(live::sockets()).into_openapi(), open().into_openapi())
}

/// All routes. `shutdown` lets requests that wait for news answer early.
pub fn router(engine: Engine, options: &ServerOptions, shutdown: CancellationToken) -> Router {
    router_of(AppState::new(engine, options, shutdown))
}

pub(crate) fn router_of(state: AppState) -> Router {
    let guarded = Router::from(guarded())
        .route_layer(from_fn(outlive_connection))
        .route_layer(from_fn_with_state(state.clone(), guard::check));
    Router::new()
        .merge(guarded)
        .merge(Router::from(live::sockets()))
        .merge(Router::from(open()))
        .merge(openapi::routes())
        .merge(pages::routes())
        .fallback(no_such_route)
        .method_not_allowed_fallback(no_such_method)
        .layer(from_fn(check_address))
        .layer(from_fn(close_if_unread))
        .layer(from_fn_with_state(state.clone(), observe::observe))
        .with_state(state)
}

async fn no_such_route() -> ApiError {
    ApiError::no_such_route()
}

async fn no_such_method() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", "this address takes another method")
}
