//! `GET /healthz`: the process answers.

use axum::Json;
use serde_json::{Value, json};

pub async fn live() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}
