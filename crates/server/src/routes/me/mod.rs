//! `GET /me`: who the server takes the caller for.

use axum::Json;
use axum::extract::State;
use interlock_protocol::identity::{Me, path};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::listing::{Listing, routes};
use crate::state::AppState;

pub fn routes<L: Listing>() -> L {
    L::default().routes(routes!(me))
}

/// Ask who one is
#[utoipa::path(
    get,
    path = path::ME,
    tag = "auth",
    responses((status = 200, description = "Who the server takes the caller for.", body = Me)),
)]
async fn me(State(state): State<AppState>, caller: Caller) -> Result<Json<Me>, ApiError> {
    describe(&state, &caller).await.map(Json)
}

pub async fn describe(state: &AppState, caller: &Caller) -> Result<Me, ApiError> {
    let tenant = state.for_tenant(caller.tenant).tenant().await?;
    Ok(Me {
        tenant: caller.tenant,
        flags: tenant.as_ref().map(|tenant| tenant.settings.flags()).unwrap_or_default(),
        tenant_name: tenant.map(|tenant| tenant.name).unwrap_or_default(),
        client: caller.client.to_string(),
        person: caller.person.as_deref().map(str::to_owned),
        key: caller.key_name().map(str::to_owned),
        roles: caller.roles,
        groups: caller.groups.to_vec(),
        workspace: caller.workspace.as_deref().map(str::to_owned),
        installation: caller.installation,
        csrf: state.identity().csrf(caller),
    })
}
