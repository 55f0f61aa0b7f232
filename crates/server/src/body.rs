//! Reading a request's body: no longer than the route allows, no slower than [`ConnectionOptions`] say, and with all
//! others that have not come in completely within one budget of memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::body::Bytes;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt as _;
use tokio::time::{Instant, timeout_at};

use crate::api_error::ApiError;
use crate::connections::ConnectionOptions;
use crate::{limits, matrix};

/// What bodies that have not come in completely hold in memory.
pub struct Unfinished {
    options: ConnectionOptions,
    bytes: AtomicUsize,
}

impl Unfinished {
    pub fn new(options: ConnectionOptions) -> Self {
        Self { options, bytes: AtomicUsize::new(0) }
    }
}

/// One body's part of the budget; given back when it is dropped.
struct Share<'a> {
    of: &'a Unfinished,
    bytes: usize,
}

impl Share<'_> {
    fn grow(&mut self, bytes: usize) -> Result<(), ApiError> {
        self.bytes += bytes;
        let before = self.of.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes <= self.of.options.unfinished_bytes_max {
            return Ok(());
        }
        let detail = "too many large requests are coming in at this moment; try again";
        Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "OVERLOADED", detail))
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.of.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Whether a request's body was read to its end.
#[derive(Clone, Default)]
struct BodyRead(Arc<AtomicBool>);

/// The whole body.
pub async fn read(request: Request, unfinished: &Unfinished) -> Result<Bytes, ApiError> {
    let max = bytes_max(&request);
    if content_length(request.headers()).is_some_and(|length| length > max as u64) {
        return Err(too_large(max));
    }
    let mark = request.extensions().get::<BodyRead>().cloned();
    let ConnectionOptions { body_idle_timeout, body_timeout, .. } = unfinished.options;
    let mut share = Share { of: unfinished, bytes: 0 };
    let deadline = Instant::now() + body_timeout;
    let mut chunks = request.into_body().into_data_stream();
    let (mut only, mut all): (Option<Bytes>, Vec<u8>) = (None, Vec::new());
    loop {
        let next = timeout_at(deadline.min(Instant::now() + body_idle_timeout), chunks.next()).await;
        let chunk = match next.map_err(|_| too_slow())? {
            Some(Ok(chunk)) => chunk,
            Some(Err(error)) => return Err(ApiError::malformed(format!("the body broke off: {error}"))),
            None => break,
        };
        if share.bytes + chunk.len() > max {
            return Err(too_large(max));
        }
        share.grow(chunk.len())?;
        // Most bodies come in one piece, which is passed on as it is.
        match only.take() {
            None if all.is_empty() => only = Some(chunk),
            first => {
                all.extend_from_slice(&first.unwrap_or_default());
                all.extend_from_slice(&chunk);
            }
        }
    }
    if let Some(BodyRead(read)) = mark {
        read.store(true, Ordering::Relaxed);
    }
    Ok(only.unwrap_or_else(|| all.into()))
}

/// A connection whose request was answered before its body was read is closed after the answer: what still comes in is
/// no request.
pub async fn close_if_unread(mut request: Request, next: Next) -> Response {
    if !has_body(request.headers()) {
        return next.run(request).await;
    }
    let mark = BodyRead::default();
    request.extensions_mut().insert(mark.clone());
    let mut response = next.run(request).await;
    if !mark.0.load(Ordering::Relaxed) {
        response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    }
    response
}

fn has_body(headers: &HeaderMap) -> bool {
    headers.contains_key(header::TRANSFER_ENCODING) || content_length(headers).is_some_and(|length| length > 0)
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

fn bytes_max(request: &Request) -> usize {
    let pattern = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str).unwrap_or_default();
    matrix::find(request.method().as_str(), pattern).map_or(limits::PUBLIC_BODY_BYTES_MAX, matrix::Line::body_bytes_max)
}

fn too_large(max: usize) -> ApiError {
    let detail = format!("the body is larger than {max} bytes");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE", detail)
}

fn too_slow() -> ApiError {
    let detail = "the body did not come in within the time that a request has; send it again";
    ApiError::new(StatusCode::REQUEST_TIMEOUT, "BODY_TIMEOUT", detail)
}
