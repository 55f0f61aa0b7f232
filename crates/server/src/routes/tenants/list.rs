//! `GET /tenants`: those that exist for the caller.

use axum::Json;
use axum::extract::State;
use interlock_core::tenant::identity::Permission;
use interlock_protocol::identity::{TenantList, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::state::AppState;

/// List tenants
///
/// Those that exist for the caller.
#[utoipa::path(
    get,
    path = path::TENANTS,
    tag = "tenants",
    responses((status = 200, description = "The tenants.", body = TenantList)),
)]
pub async fn list(State(state): State<AppState>, caller: Caller) -> Result<Json<TenantList>, ApiError> {
    let rows = if caller.may(Permission::Install) {
        state.installation().tenants().await?
    } else {
        state.for_tenant(caller.tenant).tenant().await?.into_iter().collect()
    };
    Ok(Json(TenantList { tenants: rows.into_iter().map(view::tenant).collect() }))
}
