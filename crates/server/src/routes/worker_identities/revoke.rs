//! `DELETE /worker-identities/{identity}`: its token and its certificate are good for nothing from now on.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::WorkerIdentityId;
use interlock_protocol::enrolment::{WorkerIdentityView, path};
use interlock_store::RevokeWorkerIdentity;

use super::view::{self, OfWorkerIdentity};
use crate::api_error::ApiError;
use crate::identity::{Caller, note};
use crate::state::AppState;

/// Revoke a worker
///
/// Every server refuses its certificate within seconds. What it holds is treated as that of a lost worker once its session's
/// lease is over.
#[utoipa::path(
    delete,
    path = path::IDENTITY,
    tag = "worker identities",
    operation_id = "revoke_worker_identity",
    params(("identity" = WorkerIdentityId, Path)),
    responses((status = 200, description = "The worker as it is now.", body = WorkerIdentityView)),
)]
pub async fn revoke(
    State(state): State<AppState>,
    caller: Caller,
    OfWorkerIdentity(mut row): OfWorkerIdentity,
) -> Result<Json<WorkerIdentityView>, ApiError> {
    let (at, by) = (state.now(), caller.name());
    let revoke = RevokeWorkerIdentity { tenant: row.tenant, identity: row.id, at, by: by.clone() };
    let what = note::by(&caller, "worker_identity.revoked", row.id, &serde_json::json!({ "name": row.name }));
    state.identity().write_noted(caller.tenant, revoke, what).await?;
    state.identity().forget_worker(row.id);
    if row.revoked_at.is_none() {
        (row.revoked_at, row.revoked_by) = (Some(at), Some(by));
    }
    let mut identity = view::identity(row, at);
    view::named(&state, &caller, std::slice::from_mut(&mut identity)).await?;
    Ok(Json(identity))
}
