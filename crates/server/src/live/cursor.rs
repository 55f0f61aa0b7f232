//! Where a stream begins.

use axum::http::{HeaderMap, StatusCode};
use interlock_protocol::live::{Cursor, InvalidCursor};

use crate::api_error::ApiError;

/// The place that a client names.
pub fn cursor(text: &str) -> Result<Cursor, ApiError> {
    text.parse().map_err(|error: InvalidCursor| ApiError::malformed(error.to_string()))
}

/// Where a request wants to go on: the header `Last-Event-ID`, as browsers send it on their own, or else the query.
pub fn place(headers: &HeaderMap, query: Option<&str>) -> Result<Option<Cursor>, ApiError> {
    let header = ["last-event-id", "last_event_id"].into_iter().find_map(|name| headers.get(name));
    let given = match header {
        // A browser that reconnects knows better than the address it was given at first.
        Some(value) => Some(value.to_str().unwrap_or_default().trim()),
        None => query,
    };
    given.filter(|text| !text.is_empty()).map(cursor).transpose()
}

/// The same at addresses that also take the place by its earlier name, `since`.
pub fn place_or_since(
    headers: &HeaderMap,
    last_event_id: Option<&str>,
    since: Option<&str>,
) -> Result<Option<Cursor>, ApiError> {
    if let (None, Some(since)) = (last_event_id, since.filter(|text| !text.is_empty())) {
        let wrong = |error: InvalidCursor| ApiError::malformed(format!("`since`: {error}"));
        since.parse::<Cursor>().map_err(wrong)?;
    }
    place(headers, last_event_id.or(since))
}

/// A cursor that no event has reached yet was given out before the store was restored.
pub fn ahead() -> ApiError {
    let detail = "this place is ahead of everything that has happened here: the store was restored from a backup, or it \
                  belongs to another stream; ask again without `last_event_id`";
    ApiError::new(StatusCode::CONFLICT, "LIVE_CURSOR_AHEAD", detail)
}
