//! Reading a request's body: no longer than the route allows, no slower than [`ConnectionOptions`] say, and with all
//! others that have not come in completely within one budget of memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::body::{Bytes, HttpBody as _};
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt as _;
use tokio::time::{Instant, timeout_at};

use crate::api_error::ApiError;
use crate::connections::ConnectionOptions;
use crate::{limits, matrix};

/// The least and the most that is allocated at once for a body that comes in parts.
const SEGMENT_MIN: usize = 4 << 10;
const SEGMENT_MAX: usize = 64 << 10;

/// What is allocated for bodies that have not come in completely.
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
    /// Before it is allocated.
    fn take(&mut self, bytes: usize) -> Result<(), ApiError> {
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

/// A body as far as it has come in. Its segments are never moved to larger ones: what that leaves behind is nobody's, and
/// stays with the process.
struct Collected<'a> {
    share: Share<'a>,
    /// As long as the whole of it is, or may be.
    most: usize,
    received: usize,
    segments: Vec<Vec<u8>>,
}

impl<'a> Collected<'a> {
    fn new(of: &'a Unfinished, most: usize) -> Self {
        Self { share: Share { of, bytes: 0 }, most, received: 0, segments: Vec::new() }
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), ApiError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.segments.last().is_none_or(|segment| segment.len() == segment.capacity()) {
                self.grow()?;
            }
            let Some(segment) = self.segments.last_mut() else { break };
            let (part, later) = rest.split_at(rest.len().min(segment.capacity() - segment.len()));
            segment.extend_from_slice(part);
            self.received += part.len();
            rest = later;
        }
        Ok(())
    }

    /// One more segment, of the size of what has come in already: who sends little holds little.
    fn grow(&mut self) -> Result<(), ApiError> {
        let left = self.most.checked_sub(self.received).filter(|left| *left > 0);
        let size = self.received.clamp(SEGMENT_MIN, SEGMENT_MAX).min(left.unwrap_or(SEGMENT_MIN));
        self.share.take(size)?;
        self.segments.push(Vec::with_capacity(size));
        Ok(())
    }

    /// In one piece, for which there has to be room beside the segments.
    fn whole(mut self) -> Result<Bytes, ApiError> {
        if self.segments.len() < 2 {
            return Ok(self.segments.pop().unwrap_or_default().into());
        }
        self.share.take(self.received)?;
        let mut whole = Vec::with_capacity(self.received);
        for segment in std::mem::take(&mut self.segments) {
            whole.extend_from_slice(&segment);
        }
        Ok(whole.into())
    }
}

/// Whether a request's body was read to its end.
#[derive(Clone, Default)]
struct BodyRead(Arc<AtomicBool>);

/// The whole body.
pub async fn read(request: Request, unfinished: &Unfinished) -> Result<Bytes, ApiError> {
    let max = bytes_max(&request);
    let length = request.body().size_hint().exact().or_else(|| content_length(request.headers()));
    if length.is_some_and(|length| length > max as u64) {
        return Err(too_large(max));
    }
    let mark = request.extensions().get::<BodyRead>().cloned();
    let ConnectionOptions { body_idle_timeout, body_timeout, .. } = unfinished.options;
    let most = length.and_then(|length| usize::try_from(length).ok()).unwrap_or(max);
    let mut collected = Collected::new(unfinished, most);
    let deadline = Instant::now() + body_timeout;
    let mut chunks = request.into_body().into_data_stream();
    let mut only: Option<Bytes> = None;
    loop {
        let next = timeout_at(deadline.min(Instant::now() + body_idle_timeout), chunks.next()).await;
        let chunk = match next.map_err(|_| too_slow())? {
            Some(Ok(chunk)) => chunk,
            Some(Err(error)) => return Err(ApiError::malformed(format!("the body broke off: {error}"))),
            None => break,
        };
        let received = collected.received + only.as_ref().map_or(0, Bytes::len);
        if received + chunk.len() > max {
            return Err(too_large(max));
        }
        // Most bodies come in one piece, which is passed on as it is. A part of one would keep all of the buffer that it
        // was read into.
        if received == 0 && length == Some(chunk.len() as u64) {
            collected.share.take(chunk.len())?;
            only = Some(chunk);
            continue;
        }
        if let Some(first) = only.take() {
            collected.add(&first)?;
        }
        collected.add(&chunk)?;
    }
    if let Some(BodyRead(read)) = mark {
        read.store(true, Ordering::Relaxed);
    }
    match only {
        Some(only) => Ok(only),
        None => collected.whole(),
    }
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

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use futures::channel::mpsc;
    use futures::poll;

    use super::*;

    const LONG: usize = 4 << 20;

    fn unfinished(bytes_max: usize) -> Unfinished {
        Unfinished::new(ConnectionOptions { unfinished_bytes_max: bytes_max, ..ConnectionOptions::default() })
    }

    impl Unfinished {
        fn counted(&self) -> usize {
            self.bytes.load(Ordering::Relaxed)
        }
    }

    impl Collected<'_> {
        fn allocated(&self) -> usize {
            self.segments.iter().map(Vec::capacity).sum()
        }
    }

    /// A body of which all but the last byte has come in, in parts of this size.
    fn all_but_one(of: &Unfinished, length: Option<usize>, part: usize) -> Collected<'_> {
        let mut collected = Collected::new(of, length.unwrap_or(LONG * 2));
        let bytes: Vec<u8> = (0..LONG - 1).map(|at| (at % 251) as u8).collect();
        for part in bytes.chunks(part) {
            assert!(collected.add(part).is_ok());
        }
        collected
    }

    #[test]
    fn what_is_allocated_is_what_is_counted() {
        let budget = unfinished(256 << 20);
        for (length, part) in [(Some(LONG), 1_000), (Some(LONG), 70_000), (Some(LONG), LONG), (None, 8_192)] {
            let mut collected = all_but_one(&budget, length, part);
            assert_eq!(budget.counted(), collected.allocated(), "{length:?} in parts of {part}");
            let idle = collected.allocated() - collected.received;
            assert!(idle <= SEGMENT_MAX, "{idle} bytes lie idle");
            assert!(length.is_none() || collected.allocated() <= LONG, "its length was said");
            assert!(collected.add(b"x").is_ok());
            let whole = collected.whole().unwrap();
            assert_eq!((whole.len(), whole[LONG - 1], whole[1_000]), (LONG, b'x', (1_000 % 251) as u8));
            assert_eq!(budget.counted(), 0, "what has come in is not counted any more");
        }
        // Who sends little holds little, whatever it has announced.
        let mut little = Collected::new(&budget, LONG);
        assert!(little.add(b"{").is_ok());
        assert_eq!(budget.counted(), SEGMENT_MIN);
        drop(little);
        assert_eq!(budget.counted(), 0, "one that breaks off gives back what it held");
    }

    #[test]
    fn as_many_bodies_fit_as_have_room() {
        let budget = unfinished(4 * LONG);
        let mut held: Vec<_> = (0..4).map(|_| all_but_one(&budget, Some(LONG), 100_000)).collect();
        assert_eq!(budget.counted(), 4 * LONG);
        let refused = Collected::new(&budget, LONG).add(b"{").unwrap_err();
        assert_eq!(refused.code(), "OVERLOADED");
        // In one piece it needs its room a second time.
        let mut last = held.pop().unwrap();
        assert!(last.add(b"x").is_ok());
        assert_eq!(last.whole().unwrap_err().code(), "OVERLOADED");
        assert_eq!(budget.counted(), 3 * LONG);
        let mut last = held.pop().unwrap();
        assert!(last.add(b"x").is_ok());
        assert!(last.whole().is_ok(), "now there is room");
    }

    type Parts = mpsc::UnboundedSender<Result<Bytes, std::io::Error>>;

    /// A request whose body comes in the parts that are sent.
    fn request(length: usize) -> (Parts, Request) {
        let (parts, body) = mpsc::unbounded();
        let request =
            axum::http::Request::post("/").header(header::CONTENT_LENGTH, length).body(Body::from_stream(body));
        (parts, request.unwrap())
    }

    #[tokio::test]
    async fn a_request_that_goes_away_gives_back_what_it_held() {
        let budget = unfinished(1 << 20);
        let (parts, request) = request(10_000);
        let mut reading = Box::pin(read(request, &budget));
        for counted in [4_096, 8_192] {
            parts.unbounded_send(Ok(Bytes::from(vec![b' '; 4_000]))).unwrap();
            assert!(poll!(reading.as_mut()).is_pending());
            assert_eq!(budget.counted(), counted);
        }
        drop(reading);
        assert_eq!(budget.counted(), 0);
    }

    #[tokio::test]
    async fn a_body_in_one_piece_is_passed_on_as_it_is() {
        let budget = unfinished(1 << 20);
        let (parts, request) = request(10_000);
        let piece = Bytes::from(vec![b' '; 10_000]);
        let mut reading = Box::pin(read(request, &budget));
        parts.unbounded_send(Ok(piece.clone())).unwrap();
        assert!(poll!(reading.as_mut()).is_pending());
        assert_eq!(budget.counted(), 10_000);
        drop(parts);
        let read = reading.await.unwrap();
        assert_eq!((read.as_ptr(), read.len()), (piece.as_ptr(), piece.len()));
        assert_eq!(budget.counted(), 0);
    }
}
