//! `GET /policy/versions` and `POST /policy/versions`: the versions that were given.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use interlock_core::limits::REASON_BYTES_MAX;
use interlock_engine::policy::bundles::NewPolicy;
use interlock_protocol::policy::{NewPolicyVersion, PolicyVersion, PolicyVersionList, limits, path};
use interlock_store::PolicyBundleSummary;
use serde::Deserialize;
use utoipa::IntoParams;

use super::view;
use crate::api_error::ApiError;
use crate::idempotency::{IdempotencyHeaders, IdempotentRequest, Keep, Made};
use crate::identity::Caller;
use crate::query::Params;
use crate::request::{Body, cut};
use crate::state::AppState;

const PAGE_DEFAULT: usize = 50;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PolicyVersionsParams {
    limit: Option<usize>,
    /// The version below which the page begins.
    before: Option<u32>,
}

/// List the versions of the policy
///
/// Newest first.
#[utoipa::path(
    get,
    path = path::VERSIONS,
    tag = "policy",
    params(PolicyVersionsParams),
    responses((status = 200, description = "A page of versions.", body = PolicyVersionList)),
)]
pub async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<PolicyVersionsParams>,
) -> Result<Json<PolicyVersionList>, ApiError> {
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, limits::PAGE_MAX);
    let mut rows = state.for_tenant(caller.tenant).policy_bundles(params.before, limit + 1).await?;
    let next_before = cut(&mut rows, limit, |row| row.version);
    Ok(Json(PolicyVersionList { versions: view::versions(&state, &caller, rows).await?, next_before }))
}

/// Give a new version of the policy
///
/// It is checked, and its tests must pass; it is not in force by that. The same files again are the version that they were,
/// so the request may be repeated.
#[utoipa::path(
    post,
    path = path::VERSIONS,
    tag = "policy",
    params(IdempotencyHeaders),
    request_body = NewPolicyVersion,
    responses(
        (status = 201, description = "The version.", body = PolicyVersion),
        (status = 202, description = "The same request is still being worked on."),
    ),
)]
pub async fn add(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<NewPolicyVersion>,
) -> Result<Response, ApiError> {
    if body.note.as_ref().is_some_and(|note| note.len() > REASON_BYTES_MAX) {
        return Err(ApiError::invalid(format!("the note is longer than {REASON_BYTES_MAX} bytes")));
    }
    let keyed = IdempotentRequest { state: &state, headers: &headers, caller: &caller, source: "policy versions" };
    let asked = body.clone();
    let put = async |keep: Keep<'_>| {
        let new = NewPolicy { tenant: caller.tenant, files: body.files, note: body.note, by: caller.actor() };
        let made = |summary: &PolicyBundleSummary| Made::created(view::version_made_by(&caller, summary.clone()));
        let summary = state.policies().put(new, |summary| keep.answer(&made(summary))).await?;
        Ok(made(&summary))
    };
    Box::pin(keyed.once_keeping(&asked, put)).await
}
