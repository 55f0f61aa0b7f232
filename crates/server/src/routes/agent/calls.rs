//! The calls of a session where they come another way than by requests of their own: as frames of a WebSocket, or over the
//! broker. Each goes the way that a request would go, past the guard too.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Response;
use tower::ServiceExt as _;

use crate::api_error::ApiError;
use crate::parameters::check_query;
use crate::state::AppState;
use crate::{guard, observe};

/// The calls, with all that stands before them.
#[derive(Clone)]
pub struct Calls(Router);

impl Calls {
    pub fn new(state: &AppState) -> Self {
        let calls = super::calls::<Router<AppState>>()
            .route_layer(from_fn(check_query))
            .route_layer(from_fn_with_state(state.clone(), guard::check))
            .fallback(no_such_call)
            .layer(from_fn_with_state(state.clone(), observe::observe));
        Self(calls.with_state(state.clone()))
    }

    pub async fn answer(&self, request: Request) -> Response {
        self.0.clone().oneshot(request).await.unwrap_or_else(|never| match never {})
    }
}

async fn no_such_call() -> ApiError {
    ApiError::no_such_route()
}
