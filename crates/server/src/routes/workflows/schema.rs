//! `GET /schema/workflow.json`: the JSON Schema of a workflow file, for editors.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::IntoResponse;
use interlock_protocol::workflows::path;

static TEXT: LazyLock<String> = LazyLock::new(|| format!("{:#}\n", interlock_workflow::schema::schema()));

/// The JSON Schema of a workflow file
///
/// Put `# yaml-language-server: $schema=…/schema/workflow.json` into the first line of a file, and the editor knows its
/// fields.
#[utoipa::path(
    get,
    path = path::SCHEMA,
    tag = "workflows",
    responses((status = 200, description = "JSON Schema 2020-12.", content_type = "application/schema+json")),
)]
pub async fn schema() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/schema+json"), (header::CACHE_CONTROL, "no-cache")], TEXT.as_str())
}
