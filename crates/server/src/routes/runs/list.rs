//! `GET /runs`: runs, newest first, by what they have in common.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::RunId;
use interlock_core::state::RunState;
use interlock_protocol::runs::{RunList, limits, path};
use interlock_store::{Page, RunFilter};
use serde::Deserialize;
use utoipa::IntoParams;

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::Params;
use crate::state::AppState;

const PAGE_DEFAULT: usize = 50;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListParams {
    state: Option<RunState>,
    workflow: Option<String>,
    subject: Option<String>,
    /// `name:value`.
    label: Option<String>,
    limit: Option<usize>,
    after: Option<RunId>,
}

/// List runs, newest first
#[utoipa::path(
    get,
    path = path::RUNS,
    tag = "runs",
    params(ListParams),
    responses((status = 200, description = "A page of runs.", body = RunList)),
)]
pub async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<RunList>, ApiError> {
    let label = params.label.map(|label| {
        let (name, value) =
            label.split_once(':').ok_or_else(|| ApiError::malformed("write a label as `name:value`"))?;
        Ok::<_, ApiError>((name.to_owned(), value.to_owned()))
    });
    let filter = RunFilter {
        state: params.state,
        workflow: params.workflow,
        subject: params.subject,
        label: label.transpose()?,
        workspace: caller.workspace.as_deref().map(str::to_owned),
        ..RunFilter::default()
    };
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, limits::PAGE_MAX);
    // One more than asked for says whether there is another page.
    let page = Page { limit: limit + 1, after: params.after };
    let mut rows = state.reads(caller.tenant).list_runs(caller.tenant, &filter, page).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next_after = rows.last().filter(|_| more).map(|row| row.run);
    Ok(Json(RunList { runs: rows.into_iter().map(view::run).collect(), next_after }))
}
