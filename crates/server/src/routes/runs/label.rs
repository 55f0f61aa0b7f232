//! `PATCH /runs/{run}/labels`: labels of a run that has ended.

use axum::Json;
use axum::extract::State;
use interlock_core::limits::{INPUT_LABELS, OWN_LABELS};
use interlock_protocol::runs::{ChangeRunLabels, RunLabels, path};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::{Body, NamedRun};
use crate::state::AppState;

/// Change the labels of a run that has ended
///
/// A value sets a label, null removes it, others stay. Nothing else about an ended run can be changed. While a run lives, its
/// conditions and the policy read its labels, so they are fixed. The audit log says who changed which.
#[utoipa::path(
    patch,
    path = path::LABELS,
    tag = "runs",
    params(NamedRun),
    request_body = ChangeRunLabels,
    responses((status = 200, description = "All labels that the run has now.", body = RunLabels)),
)]
pub async fn label(
    State(state): State<AppState>,
    caller: Caller,
    NamedRun { tenant, run }: NamedRun,
    Body(change): Body<ChangeRunLabels>,
) -> Result<Json<RunLabels>, ApiError> {
    let mut labels = state.runs().label(tenant, run, &change.labels, &caller.actor()).await?;
    labels.retain(|name, _| !name.starts_with(OWN_LABELS) && !name.starts_with(INPUT_LABELS));
    Ok(Json(RunLabels { run_id: run, labels }))
}
