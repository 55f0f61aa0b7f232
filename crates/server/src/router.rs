//! Routes, pages and the description of the API in one router, with what every request passes on its way.

use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::{Extension, Router};
use interlock_engine::Engine;
use tokio_util::sync::CancellationToken;

use crate::api_error::ApiError;
use crate::body::close_if_unread;
use crate::idempotency::outlive_connection;
use crate::options::ServerOptions;
use crate::parameters::check_query;
use crate::request::check_address;
use crate::routes::agent::calls::Calls;
use crate::state::AppState;
use crate::{guard, observe, openapi, pages, routes};

/// All routes. `shutdown` lets requests that wait for news answer early.
pub fn router(engine: Engine, options: &ServerOptions, shutdown: CancellationToken) -> Router {
    router_of(AppState::new(engine, options, None, shutdown))
}

pub(crate) fn router_of(state: AppState) -> Router {
    let guarded = routes::guarded::<Router<AppState>>()
        .route_layer(from_fn(outlive_connection))
        .route_layer(from_fn(check_query))
        .route_layer(from_fn_with_state(state.clone(), guard::check))
        .layer(Extension(Calls::new(&state)));
    Router::new()
        .merge(guarded)
        .merge(routes::live::sockets::<Router<AppState>>())
        .merge(routes::open::<Router<AppState>>())
        .merge(openapi::routes())
        .merge(pages::routes())
        .fallback(pages::console::answer)
        .method_not_allowed_fallback(no_such_method)
        .layer(from_fn(check_address))
        .layer(from_fn(close_if_unread))
        .layer(from_fn_with_state(state.clone(), observe::observe))
        .with_state(state)
}

async fn no_such_method() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", "this address takes another method")
}
