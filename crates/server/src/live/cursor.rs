//! Where a stream begins.

use axum::http::StatusCode;
use interlock_protocol::live::{Cursor, InvalidCursor};

use crate::api_error::ApiError;

/// The place that a client names.
pub fn cursor(text: &str) -> Result<Cursor, ApiError> {
    text.parse().map_err(|error: InvalidCursor| ApiError::malformed(error.to_string()))
}

/// A cursor that no event has reached yet was given out before the store was restored.
pub fn ahead() -> ApiError {
    let detail = "this place is ahead of everything that has happened here: the store was restored from a backup, or it \
                  belongs to another stream; ask again without `last_event_id` or `since`";
    ApiError::new(StatusCode::CONFLICT, "LIVE_CURSOR_AHEAD", detail)
}
