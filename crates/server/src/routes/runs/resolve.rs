//! `POST /runs/{run}/steps/{step}/resolve`: a person says what became of an effect in doubt.

use axum::Json;
use axum::extract::State;
use interlock_engine::commands::control::ResolveRequest;
use interlock_protocol::runs::{Resolve, Standing};

use crate::api_error::ApiError;
use crate::directive::{OPERATOR, answer};
use crate::request::{Body, Named, StepKey, reason};
use crate::state::AppState;

pub async fn resolve(
    State(state): State<AppState>,
    Named { tenant, run }: Named,
    StepKey(step): StepKey,
    Body(resolve): Body<Resolve>,
) -> Result<Json<Standing>, ApiError> {
    let Resolve { outcome: resolution, output, reason: because } = resolve;
    let request = ResolveRequest { step, resolution, output, reason: reason(because)? };
    Ok(answer(state.engine().resolve(tenant, run, request, OPERATOR).await?))
}
