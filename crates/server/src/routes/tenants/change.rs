//! `PATCH /tenants/{tenant}`: limits and settings. Limits, and whether a tenant is there at all, need charge of the
//! installation; settings are up to the tenant's own admins.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use interlock_core::ids::TenantId;
use interlock_core::tenant::identity::Permission;
use interlock_engine::EngineError;
use interlock_protocol::identity::{ChangeTenant, TenantView, path};
use interlock_store::Changed;

use super::view::{self, OfTenant};
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::identity::people::CHANGE_TRIES;
use crate::request::Body;
use crate::state::AppState;
use crate::two_keys;

/// Change a tenant
///
/// Limits need charge of the installation; settings are up to the tenant's admins.
#[utoipa::path(
    patch,
    path = path::TENANT,
    tag = "tenants",
    params(("tenant" = TenantId, Path)),
    request_body = ChangeTenant,
    responses((status = 200, description = "The tenant.", body = TenantView)),
)]
pub async fn change(
    State(state): State<AppState>,
    caller: Caller,
    OfTenant(tenant): OfTenant,
    Body(change): Body<ChangeTenant>,
) -> Result<Json<TenantView>, ApiError> {
    let settings_only = ChangeTenant {
        self_approval: change.self_approval,
        request_id_is_key: change.request_id_is_key,
        two_keys_for_policy: change.two_keys_for_policy,
        two_keys_for_access: change.two_keys_for_access,
        task_workspace: change.task_workspace,
        worker_orchestration: change.worker_orchestration,
        worker_channel: change.worker_channel,
        worker_broker: change.worker_broker,
        evidence_always: change.evidence_always,
        ..ChangeTenant::default()
    };
    if change != settings_only && !caller.may(Permission::Install) {
        let detail = "only an administrator of the installation changes a tenant's limits";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "PERMISSION_DENIED", detail));
    }
    if change.disabled == Some(true) && tenant.id == caller.tenant {
        return Err(ApiError::invalid(
            "this credential belongs to the tenant that would be disabled; use one of another tenant, which can enable it again",
        ));
    }
    for _ in 0..CHANGE_TRIES {
        // As it is now: it is written whole, and others may have changed it while the body came in, or since it was judged.
        let found = state.installation().tenant(tenant.id).await?;
        let read = found.ok_or_else(|| ApiError::unknown("tenant", &tenant.id.to_string()))?;
        two_keys::check_settings(&state, &caller, &read, &change).await?;
        let changed = view::changed(read.clone(), change, &state)?;
        let answer = state.tenants().change(read, changed.clone(), &caller.as_tenant_actor()).await?;
        if answer == Changed::Done {
            state.identity().forget();
            return Ok(Json(view::tenant(changed)));
        }
    }
    Err(EngineError::Overloaded.into())
}
