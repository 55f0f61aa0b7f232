//! `POST /workflows/validate`: what is wrong with a file, without storing anything.

use axum::Json;
use axum::extract::State;
use interlock_protocol::workflows::{File, Validation, path};
use interlock_workflow::expression::budget::Budget;

use super::apply::name_of;
use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::Body;
use crate::state::AppState;

/// Check a workflow file
///
/// Says everything that is wrong with it at once, each with line and column, and stores nothing.
#[utoipa::path(
    post,
    path = path::VALIDATE,
    tag = "workflows",
    request_body = File,
    responses((status = 200, description = "What was found.", body = Validation)),
)]
pub async fn validate(
    State(state): State<AppState>,
    caller: Caller,
    Body(file): Body<File>,
) -> Result<Json<Validation>, ApiError> {
    let File { source, file } = file;
    let name = name_of(file)?;
    let check = move |budget: &Budget| match interlock_workflow::parse_within(&name, &source, budget) {
        Err(found) => Validation { valid: false, workflow: None, diagnostics: view::diagnostics(&found.list) },
        Ok(checked) => {
            let (remarks, valid) = checked.remarks();
            let diagnostics = view::diagnostics(&remarks);
            let workflow = Some(checked.definition.name.0.clone());
            Validation { valid, workflow, diagnostics }
        }
    };
    let checked = state.evaluate(caller.tenant, check).await?;
    Ok(Json(checked))
}
