//! `GET /worker-identities`: the tenant's workers that may enrol, or have; newest first, revoked ones too.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::WorkerIdentityId;
use interlock_protocol::enrolment::{WorkerIdentityList, limits, path};
use serde::Deserialize;
use utoipa::IntoParams;

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::Params;
use crate::request::{PAGE_DEFAULT, cut};
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WorkerIdentityListParams {
    limit: Option<usize>,
    after: Option<WorkerIdentityId>,
}

/// List workers that may enrol, or have
///
/// Newest first, revoked ones too.
#[utoipa::path(
    get,
    path = path::IDENTITIES,
    tag = "worker identities",
    operation_id = "worker_identities",
    params(WorkerIdentityListParams),
    responses((status = 200, description = "A page of worker identities.", body = WorkerIdentityList)),
)]
pub async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<WorkerIdentityListParams>,
) -> Result<Json<WorkerIdentityList>, ApiError> {
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, limits::PAGE_MAX);
    let mut rows = state.for_tenant(caller.tenant).worker_identities(params.after, limit + 1).await?;
    let next_after = cut(&mut rows, limit, |row| row.id);
    let now = state.now();
    let mut identities: Vec<_> = rows.into_iter().map(|row| view::identity(row, now)).collect();
    view::named(&state, &caller, &mut identities).await?;
    let authority = state.worker_issuer().map(|issuer| issuer.serial().to_owned());
    Ok(Json(WorkerIdentityList { identities, next_after, authority }))
}
