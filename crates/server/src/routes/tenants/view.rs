//! A tenant as an answer, and the tenant that a path names.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use interlock_core::tenant::identity::Permission;
use interlock_protocol::identity::limits::WEIGHT_MAX;
use interlock_protocol::identity::{ChangeTenant, TenantView};
use interlock_store::Tenant;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::named_in_path;
use crate::state::AppState;

pub fn tenant(row: Tenant) -> TenantView {
    TenantView {
        tenant: row.id,
        name: row.name,
        max_concurrency: row.caps.max_concurrency,
        max_runs_per_min: row.caps.max_runs_per_min,
        pending_runs_max: row.pending_runs_max,
        weight: row.weight,
        settings: row.settings,
        created_at: row.created_at,
        disabled_at: row.disabled_at,
    }
}

/// The tenant with these changes: a limit of 0 takes the limit away.
pub fn changed(mut tenant: Tenant, change: ChangeTenant, state: &AppState) -> Result<Tenant, ApiError> {
    let limit = |new: Option<u32>, old: Option<u32>| new.map_or(old, |new| Some(new).filter(|new| *new > 0));
    tenant.caps.max_concurrency = limit(change.max_concurrency, tenant.caps.max_concurrency);
    tenant.caps.max_runs_per_min = limit(change.max_runs_per_min, tenant.caps.max_runs_per_min);
    tenant.pending_runs_max = limit(change.pending_runs_max, tenant.pending_runs_max);
    if change.weight.is_some_and(|weight| !(1..=WEIGHT_MAX).contains(&weight)) {
        return Err(ApiError::invalid(format!("`weight` is between 1 and {WEIGHT_MAX}")));
    }
    tenant.weight = change.weight.unwrap_or(tenant.weight);
    let settings = &mut tenant.settings;
    settings.self_approval = change.self_approval.unwrap_or(settings.self_approval);
    settings.request_id_is_key = change.request_id_is_key.unwrap_or(settings.request_id_is_key);
    settings.two_keys_for_policy = change.two_keys_for_policy.unwrap_or(settings.two_keys_for_policy);
    settings.two_keys_for_access = change.two_keys_for_access.unwrap_or(settings.two_keys_for_access);
    settings.task_workspace = change.task_workspace.unwrap_or(settings.task_workspace);
    settings.worker_orchestration = change.worker_orchestration.unwrap_or(settings.worker_orchestration);
    settings.worker_channel = change.worker_channel.unwrap_or(settings.worker_channel);
    settings.worker_broker = change.worker_broker.unwrap_or(settings.worker_broker);
    settings.evidence_always = change.evidence_always.unwrap_or(settings.evidence_always);
    tenant.disabled_at = match change.disabled {
        Some(true) => tenant.disabled_at.or(Some(state.now())),
        Some(false) => None,
        None => tenant.disabled_at,
    };
    Ok(tenant)
}

/// The tenant that the path names, if it exists for the caller.
pub struct OfTenant(pub Tenant);

impl FromRequestParts<AppState> for OfTenant {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let text = named_in_path(parts, state, "tenant").await?;
        let found = match text.parse() {
            Ok(id) if id == caller.tenant || caller.may(Permission::Install) => state.installation().tenant(id).await?,
            _ => None,
        };
        found.map(Self).ok_or_else(|| ApiError::unknown("tenant", &text))
    }
}
