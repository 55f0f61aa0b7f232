//! `GET /tenants/{tenant}`: one tenant.

use axum::Json;
use interlock_core::ids::TenantId;
use interlock_protocol::identity::{TenantView, path};

use super::view::{self, OfTenant};

/// Look at a tenant
#[utoipa::path(
    get,
    path = path::TENANT,
    tag = "tenants",
    params(("tenant" = TenantId, Path)),
    responses((status = 200, description = "The tenant.", body = TenantView)),
)]
pub async fn get(OfTenant(tenant): OfTenant) -> Json<TenantView> {
    Json(view::tenant(tenant))
}
