//! `POST /tenants`: a new tenant, and the key of its first admin.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use interlock_core::ids::TenantId;
use interlock_core::tenant::identity::Role;
use interlock_engine::tenants::NewTenant;
use interlock_protocol::identity::{CreateTenant, CreatedTenant, path};
use interlock_store::Tenant;

use super::view;
use crate::api_error::ApiError;
use crate::idempotency::{IdempotencyHeaders, IdempotentRequest, Keep, Made};
use crate::identity::key::KeyText;
use crate::identity::{Caller, NewKey, keys};
use crate::request::{Body, name};
use crate::state::AppState;

/// Make a tenant
///
/// The answer holds the key of its first admin, this once.
#[utoipa::path(
    post,
    path = path::TENANTS,
    tag = "tenants",
    params(IdempotencyHeaders),
    request_body = CreateTenant,
    responses(
        (status = 201, description = "The tenant, with its first admin's key.", body = CreatedTenant),
        (status = 202, description = "The same request is still being worked on."),
    ),
)]
pub async fn create(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<CreateTenant>,
) -> Result<Response, ApiError> {
    let keyed = IdempotentRequest { state: &state, headers: &headers, caller: &caller, source: "tenants" };
    let asked = body.clone();
    Box::pin(keyed.once_keeping(&asked, |keep| add(&state, &caller, body, keep))).await
}

async fn add(
    state: &AppState,
    caller: &Caller,
    body: CreateTenant,
    keep: Keep<'_>,
) -> Result<Made<CreatedTenant>, ApiError> {
    let name = name("name", body.name)?;
    if state.installation().tenant_by_name(&name).await?.is_some() {
        let detail = format!("there is already a tenant called `{name}`");
        return Err(ApiError::new(StatusCode::CONFLICT, "TENANT_EXISTS", detail));
    }
    let tenant = Tenant::new(TenantId(state.fresh_id()), name, state.now());
    let tenant = view::changed(tenant, body.with, state)?;
    let mut key = NewKey::new(tenant.id, "first admin", [Role::Admin].into_iter().collect());
    key.created_by = Some(caller.name());
    let text = KeyText::random();
    let key = key.row(state.fresh(), state.identity().secret(), &text, None);
    let admin_key = text.reveal().to_owned();
    let answer = CreatedTenant { tenant: view::tenant(tenant.clone()), admin_key, shown_once: Vec::new() };
    let made = Made::created(answer).showing_once(&["admin_key"]);
    let key_created = keys::created(&key, &caller.actor());
    let new = NewTenant { tenant, key, key_created, by: caller.as_tenant_actor() };
    state.tenants().add(new, keep.answer(&made)?).await?;
    state.identity().forget();
    Ok(made)
}
