//! `POST /runs/{run}/resume`: ends a pause. Refused where the run waits for another directive.

use axum::Json;
use axum::extract::State;
use interlock_protocol::runs::{Nothing, Standing};

use crate::api_error::ApiError;
use crate::directive::{OPERATOR, answer};
use crate::request::{Body, Named};
use crate::state::AppState;

pub async fn resume(
    State(state): State<AppState>,
    Named { tenant, run }: Named,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Standing>, ApiError> {
    Ok(answer(state.engine().resume(tenant, run, OPERATOR).await?))
}
