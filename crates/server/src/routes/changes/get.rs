//! `GET /changes/{change}`: what exactly was asked for, and what became of it.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::ChangeId;
use interlock_protocol::changes::{ChangeView, path};

use super::view::{self, OfChange};
use crate::state::AppState;

/// Look at a change
#[utoipa::path(
    get,
    path = path::CHANGE,
    tag = "changes",
    params(("change" = ChangeId, Path)),
    responses((status = 200, description = "The change.", body = ChangeView)),
)]
pub async fn get(State(state): State<AppState>, OfChange(row): OfChange) -> Json<ChangeView> {
    Json(view::change(row, state.now()))
}
