//! What every request leaves behind: a name that its answer carries (`X-Request-ID`), a line in the log, a count.

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::state::AppState;
use crate::trace;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// A longer id is replaced by one that the server makes.
const REQUEST_ID_BYTES_MAX: usize = 128;

pub async fn observe(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let id = request_id(&state, &request);
    // At the level of the lines that it names: a span below it would be off where they are on.
    let span = tracing::info_span!("request", %method, id = id.to_str().unwrap_or_default(), traceparent = trace::parent(request.headers()));
    let mut response = next.run(request).instrument(span).await;
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    state.metrics().answered(&method, route, response.status(), began.elapsed());
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// The caller's name for the request, if it is one that can be shown; else a fresh one.
fn request_id(state: &AppState, request: &Request) -> HeaderValue {
    let given = request.headers().get(REQUEST_ID).filter(|value| {
        let visible = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
        !value.is_empty() && value.len() <= REQUEST_ID_BYTES_MAX && value.as_bytes().iter().all(visible)
    });
    given.cloned().unwrap_or_else(|| {
        let id = state.fresh_id().simple().to_string();
        HeaderValue::try_from(id).unwrap_or_else(|_| HeaderValue::from_static("none"))
    })
}
