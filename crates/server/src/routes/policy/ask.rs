//! `POST /policy/eval`: what a policy says about an input document. Nothing happens by it.

use axum::Json;
use axum::extract::State;
use interlock_engine::policy::bundles::PolicySays;
use interlock_protocol::policy::{EvalPolicy, PolicyAnswer, path};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::Body;
use crate::state::AppState;

/// Ask a policy
#[utoipa::path(
    post,
    path = path::EVAL,
    tag = "policy",
    request_body = EvalPolicy,
    responses((status = 200, description = "What it says.", body = PolicyAnswer)),
)]
pub async fn eval(
    State(state): State<AppState>,
    caller: Caller,
    Body(body): Body<EvalPolicy>,
) -> Result<Json<PolicyAnswer>, ApiError> {
    let said = state.policies().ask(caller.tenant, body.version, &body.input).await?;
    let PolicySays { verdict, answer, explained } = said;
    Ok(Json(PolicyAnswer { verdict: verdict.to_owned(), answer, explained }))
}
