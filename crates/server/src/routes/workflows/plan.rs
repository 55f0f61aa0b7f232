//! `POST /workflows/plan`: what would be done, without doing it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use interlock_core::json::Json as Payload;
use interlock_engine::EngineError;
use interlock_protocol::workflows::{PlanRequest, Walk, path};
use interlock_workflow::expression::budget::Budget;
use interlock_workflow::walk::walk;

use super::apply::name_of;
use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::Body;
use crate::state::AppState;

/// Walk the steps on paper
///
/// Says for these inputs which steps would run, with what, how far they reach, and what the policy would decide on
/// them. Nothing is stored and nothing is
/// started. What depends on the answer of a step is left open, and said so.
#[utoipa::path(
    post,
    path = path::PLAN,
    tag = "workflows",
    request_body = PlanRequest,
    responses((status = 200, description = "What would be done.", body = Walk)),
)]
pub async fn plan(
    State(state): State<AppState>,
    caller: Caller,
    Body(body): Body<PlanRequest>,
) -> Result<Json<Payload>, ApiError> {
    let PlanRequest { source, file, workflow, version, inputs } = body;
    let given = inputs.to_exact_value().map_err(|error| ApiError::invalid(format!("the inputs: {error}")))?;
    let (walked, plan) = match (source, workflow) {
        (Some(source), None) if version.is_none() => {
            let name = name_of(file)?;
            let walk_file = move |budget: &Budget| {
                let checked = interlock_workflow::parse_within(&name, &source, budget)
                    .map_err(|found| ApiError::invalid_workflow(found.to_string(), view::diagnostics(&found.list)))?;
                let walked = walk(&checked.definition, &given, budget);
                let walked = walked.map_err(|faults| ApiError::invalid(faults.to_string()))?;
                Ok::<_, ApiError>((walked, checked.definition.plan(1)))
            };
            state.evaluate(caller.tenant, walk_file).await??
        }
        (None, Some(name)) if file.is_none() => {
            let unknown = || EngineError::UnknownWorkflow { workflow: name.clone(), version };
            let applied = match version {
                Some(version) => state.workflows().version(caller.tenant, &name, version).await?,
                None => state.workflows().latest(caller.tenant, &name).await?,
            };
            let applied = applied.ok_or_else(unknown)?;
            let walk_version = move |budget: &Budget| {
                let walked = walk(&applied.definition, &given, budget);
                walked.map(|walked| (walked, applied.definition.plan(applied.version)))
            };
            let walked = state.evaluate(caller.tenant, walk_version).await?;
            walked.map_err(|faults| ApiError::invalid(faults.to_string()))?
        }
        _ => {
            let detail = "give either `source` (and `file`), or `workflow` (and `version`)";
            return Err(ApiError::malformed(detail));
        }
    };
    let person = caller.responsible().map(str::to_owned);
    let walked = state.policies().predict(caller.tenant, Arc::new(plan), walked, person).await?;
    Payload::of(&walked).map(Json).map_err(|error| ApiError::invalid(error.to_string()))
}
