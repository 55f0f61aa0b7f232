//! `GET /runs/{run}/steps/{step}/output`: what a step has written, in pages or as one text.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures::stream::try_unfold;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::rejection::Rejection;
use interlock_engine::output::CHUNKS_READ_MAX;
use interlock_protocol::output::{OutputAttempt, OutputPage, OutputView, limits};
use interlock_protocol::runs::path;
use interlock_store::{OutputHead, OutputPlace, OutputRow, TenantStore};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::api_error::ApiError;
use crate::query::Params;
use crate::request::{NamedRun, StepKey};
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OutputParams {
    /// Which attempt; the newest that has written something where omitted.
    attempt: Option<u32>,
    /// Only what comes behind this chunk.
    #[serde(default)]
    after: u64,
    /// Only the last so many chunks.
    tail: Option<u64>,
    limit: Option<usize>,
    /// `json`, in pages; or `text`, all of it, as it was written.
    #[serde(default)]
    #[param(inline)]
    format: OutputFormat,
}

/// The form of the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    #[default]
    Json,
    Text,
}

/// What a step has written
///
/// Standard output, standard error, and what the worker and the server say about them, in the order in which it came. Much output is cut at the server's limit, and says so.
#[utoipa::path(
    get,
    path = path::OUTPUT,
    tag = "runs",
    params(NamedRun, StepKey, OutputParams),
    responses((
        status = 200,
        description = "Chunks in order, or all of it as text.",
        content((OutputPage = "application/json"), (String = "text/plain")),
    )),
)]
pub async fn output(
    State(state): State<AppState>,
    NamedRun { tenant, run }: NamedRun,
    StepKey(key): StepKey,
    Params(params): Params<OutputParams>,
) -> Result<Response, ApiError> {
    let position = position_of(&state, (tenant, run), &key).await?;
    let store = state.for_tenant(tenant);
    let heads = store.output_heads(run, limits::ATTEMPTS_MAX).await?;
    let heads: Vec<OutputHead> = heads.into_iter().filter(|head| head.position == position).collect();
    let attempt = params.attempt.or_else(|| heads.last().map(|head| head.attempt)).unwrap_or_default();
    let written = heads.iter().find(|head| head.attempt == attempt).map_or(0, |head| head.next_seq - 1);
    let after = params.tail.map_or(params.after, |tail| params.after.max(written.saturating_sub(tail)));
    let from = OutputReading { store, run, position, after: OutputPlace { attempt, seq: after } };
    if params.format == OutputFormat::Text {
        return Ok(text(from, &format!("{}-{attempt}.log", plain_name(&key))));
    }
    let limit = params.limit.unwrap_or(limits::CHUNKS_MAX).clamp(1, limits::CHUNKS_MAX);
    let rows = from.page(limit).await?;
    let next_after = rows.last().map_or(after, |row| row.seq);
    Ok(Json(OutputPage {
        step: key,
        position,
        attempt,
        chunks: rows.into_iter().map(view).collect(),
        next_after,
        more: next_after < written,
        attempts: heads.iter().map(attempt_view).collect(),
    })
    .into_response())
}

/// Where the run has the step of this key.
pub async fn position_of(state: &AppState, (tenant, run): (TenantId, RunId), key: &str) -> Result<u32, ApiError> {
    let steps = state.for_tenant(tenant).steps(run).await?;
    if steps.is_empty() {
        return Err(ApiError::unknown_run(run));
    }
    let step = steps.iter().find(|step| step.key == key).map(|step| step.position);
    step.ok_or_else(|| Rejection::UnknownStep { run, step: key.chars().take(80).collect() }.into())
}

pub fn view(row: OutputRow) -> OutputView {
    OutputView { attempt: row.attempt, seq: row.seq, stream: row.stream, at: row.at, text: row.text }
}

const fn attempt_view(head: &OutputHead) -> OutputAttempt {
    OutputAttempt {
        attempt: head.attempt,
        last_seq: head.next_seq - 1,
        bytes: head.bytes,
        cut: head.cut,
        began_at: head.began_at,
        last_at: head.last_at,
    }
}

/// A place in an attempt's output, to read from.
struct OutputReading {
    store: TenantStore,
    run: RunId,
    position: u32,
    after: OutputPlace,
}

impl OutputReading {
    /// Chunks behind the place, within the bounds of an answer.
    async fn page(&self, limit: usize) -> Result<Vec<OutputRow>, ApiError> {
        let (mut rows, mut bytes, mut after) = (Vec::new(), 0, self.after);
        while rows.len() < limit && bytes < limits::PAGE_BYTES_MAX {
            let count = CHUNKS_READ_MAX.min(limit - rows.len());
            let read = self.store.output_of_attempt(self.run, (self.position, after), count).await?;
            let Some(last) = read.last() else { break };
            after.seq = last.seq;
            bytes += read.iter().map(|row| row.text.len()).sum::<usize>();
            rows.extend(read);
        }
        Ok(rows)
    }
}

/// All of it, read as it is sent.
fn text(from: OutputReading, name: &str) -> Response {
    let pages = try_unfold(from, |mut from| async move {
        let rows =
            from.page(CHUNKS_READ_MAX).await.map_err(|error| std::io::Error::other(error.detail().to_owned()))?;
        let Some(last) = rows.last() else { return Ok::<_, std::io::Error>(None) };
        from.after.seq = last.seq;
        let text: String = rows.into_iter().map(|row| row.text).collect();
        Ok(Some((Bytes::from(text), from)))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    (headers, Body::from_stream(pages)).into_response()
}

/// A step's key as part of a file's name.
fn plain_name(key: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    key.chars().take(60).map(plain).collect()
}
