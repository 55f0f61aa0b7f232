//! `GET /healthz`: the process answers.

use axum::Json;
use interlock_protocol::health::Health;

/// Whether the process answers
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "health",
    responses((status = 200, description = "It does.", body = Health)),
)]
pub async fn live() -> Json<Health> {
    Json(Health { status: "ok".to_owned(), problems: Vec::new() })
}
