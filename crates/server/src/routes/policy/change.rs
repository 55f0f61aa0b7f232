//! `PATCH /policy`: puts a version in force, or tries one beside it.

use axum::Json;
use axum::extract::State;
use interlock_engine::policy::bundles::PolicyChange;
use interlock_protocol::policy::{ChangePolicy, PolicyView, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::Body;
use crate::state::AppState;

/// Put a version of the policy in force
///
/// It counts for everything that is decided from then on, on this server at once and on the others within a second. What
/// people have approved stays approved. A version under `shadow` is asked beside the one in force, and decides nothing.
#[utoipa::path(
    patch,
    path = path::POLICY,
    tag = "policy",
    request_body = ChangePolicy,
    responses((status = 200, description = "The policy in force.", body = PolicyView)),
)]
pub async fn change(
    State(state): State<AppState>,
    caller: Caller,
    Body(body): Body<ChangePolicy>,
) -> Result<Json<PolicyView>, ApiError> {
    if body.active.is_none() && body.shadow.is_none() {
        return Err(ApiError::malformed("give `active` or `shadow`: a version, or 0 for none of your own"));
    }
    let version = |asked: Option<u32>| asked.map(|version| (version > 0).then_some(version));
    let change = PolicyChange {
        active: version(body.active),
        shadow: version(body.shadow),
        revision: body.revision,
        by: caller.actor(),
    };
    let policy = state.policies().change(caller.tenant, change).await?;
    view::named(&state, &caller, policy).await.map(Json)
}
