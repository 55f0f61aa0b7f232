//! `POST /policy/eval`: what a policy says about an input document. Nothing happens by it.

use axum::Json;
use axum::extract::State;
use interlock_core::json::Json as Payload;
use interlock_policy::explain;
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
    let input =
        body.input.decode().map_err(|error| ApiError::invalid(format!("`input` is no input document: {error}")))?;
    let decided = state.engine().policies().ask(caller.tenant, body.version, input).await?;
    let explained = explain(&decided);
    let verdict = decided.as_ref().map_or("undecided", |decision| decision.verdict.as_str()).to_owned();
    let answer = decided.ok().and_then(|decision| Payload::of(&decision).ok());
    Ok(Json(PolicyAnswer { verdict, answer, explained }))
}
