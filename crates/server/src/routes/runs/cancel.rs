//! `POST /runs/{run}/cancel`: nothing further starts; what is running is told to stop.

use axum::Json;
use axum::extract::State;
use interlock_protocol::runs::{Cancel, Standing};

use crate::api_error::ApiError;
use crate::directive::{OPERATOR, answer};
use crate::request::{Body, Named, reason};
use crate::state::AppState;

pub async fn cancel(
    State(state): State<AppState>,
    Named { tenant, run }: Named,
    Body(cancel): Body<Cancel>,
) -> Result<Json<Standing>, ApiError> {
    let because = reason(cancel.reason)?;
    Ok(answer(state.engine().cancel(tenant, run, because, cancel.rollback, OPERATOR).await?))
}
