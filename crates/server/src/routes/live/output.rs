//! `GET /runs/{run}/steps/{step}/output/stream`: what a step writes, while it writes it.

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use interlock_engine::output::OutputTopic;
use interlock_protocol::live::path;
use interlock_protocol::output::{OutputId, OutputView};
use interlock_store::OutputPlace;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::live::{Credential, stream_output};
use crate::query::Params;
use crate::request::{NamedRun, StepKey};
use crate::routes::runs::output::position_of;
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OutputStreamParams {
    /// Only this attempt; all of them, one after the other, where omitted.
    attempt: Option<u32>,
    /// The `id` of the last chunk that you have; the header `Last-Event-ID` says the same and comes first.
    last_event_id: Option<String>,
}

/// The place behind which a request wants to go on.
pub struct LastOutput(OutputPlace);

impl FromRequestParts<AppState> for LastOutput {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let Params(params) = Params::<OutputStreamParams>::from_request_parts(parts, state).await?;
        let header = parts.headers.get("last-event-id").map(|value| value.to_str().unwrap_or_default().to_owned());
        let given = header.or(params.last_event_id).filter(|text| !text.is_empty());
        let Some(text) = given else { return Ok(Self(OutputPlace::default())) };
        let id: OutputId =
            text.trim().parse().map_err(|error| ApiError::malformed(format!("last_event_id: {error}")))?;
        Ok(Self(OutputPlace { attempt: id.attempt, seq: id.seq }))
    }
}

/// Follow what a step writes
///
/// As server-sent events called `output`, from the first chunk on unless `Last-Event-ID` says otherwise. Ends with
/// `stream.end` when the step has ended. See `docs/reference/live.md`.
#[utoipa::path(
    get,
    path = path::SSE_OUTPUT,
    tag = "live",
    params(NamedRun, StepKey, OutputStreamParams),
    responses(
        (status = 200, description = "Chunks as server-sent events.", body = OutputView, content_type = "text/event-stream"),
    ),
)]
pub async fn step_output(
    State(state): State<AppState>,
    caller: Caller,
    NamedRun { tenant, run }: NamedRun,
    StepKey(key): StepKey,
    Params(params): Params<OutputStreamParams>,
    LastOutput(place): LastOutput,
) -> Result<Response, ApiError> {
    let position = position_of(&state, (tenant, run), &key).await?;
    let topic = OutputTopic { tenant, run, position, attempt: params.attempt };
    let hub = state.hub().clone();
    let seat = hub.seat(tenant)?;
    let watcher = state.events().watch_output(topic, place);
    Ok(stream_output((hub, seat), watcher, Credential::new(state.identity().clone(), caller)))
}
