//! `GET /runs/{run}/receipts`: the run's effects on other systems.

use axum::Json;
use axum::extract::State;
use interlock_protocol::runs::{ReceiptList, path};

use crate::api_error::ApiError;
use crate::request::NamedRun;
use crate::state::AppState;

/// The run's effects: what was asked of other systems, and what they answered
#[utoipa::path(
    get,
    path = path::RECEIPTS,
    tag = "runs",
    params(NamedRun),
    responses((status = 200, description = "Receipts in the order of their intents.", body = ReceiptList)),
)]
pub async fn receipts(
    State(state): State<AppState>,
    NamedRun { tenant, run }: NamedRun,
) -> Result<Json<ReceiptList>, ApiError> {
    let store = state.for_tenant(tenant);
    let rows = store.receipts(run).await?;
    if rows.is_empty() && store.run_overview(run).await?.is_none() {
        return Err(ApiError::unknown_run(run));
    }
    Ok(Json(ReceiptList { receipts: rows.into_iter().map(|row| row.receipt).collect() }))
}
