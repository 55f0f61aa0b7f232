//! `GET /runs`: runs, newest first, by what they have in common.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use interlock_core::ids::RunId;
use interlock_core::state::RunState;
use interlock_core::time::Timestamp;
use interlock_protocol::runs::{RunList, RunQuery, States, limits, path};
use interlock_store::{Page, RunFilter, RunSummary, TenantStore};
use utoipa::IntoParams;

use super::{filter, searchable, view};
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::{Pairs, parsed};
use crate::request::{PAGE_DEFAULT, cut};
use crate::state::AppState;

/// Runs that are looked through for a text, before the answer says where to go on.
const LOOKED_THROUGH_MAX: usize = 5_000;

/// What the query string may hold. `label` and `input` may come up to three times together.
#[derive(Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RunListParams {
    /// One of these, where it comes several times.
    #[param(value_type = Option<Vec<RunState>>, style = Form, explode)]
    state: Vec<RunState>,
    workflow: Option<String>,
    subject: Option<String>,
    /// What caused the run: `api`, `schedule`, `webhook` …
    trigger: Option<String>,
    workspace: Option<String>,
    /// `name:value`.
    #[param(value_type = Option<Vec<String>>, style = Form, explode)]
    label: Vec<(String, String)>,
    /// `name:value` of an input that the workflow declares searchable.
    #[param(value_type = Option<Vec<String>>, style = Form, explode)]
    input: Vec<(String, String)>,
    /// Unix milliseconds.
    created_from: Option<Timestamp>,
    created_before: Option<Timestamp>,
    /// Occurs in the id, the subject, a label or a searchable input, in upper or lower case. Where many runs do not have
    /// it, a page is short, and `next_after` leads on all the same.
    text: Option<String>,
    limit: Option<usize>,
    /// `next_after` of the page before.
    after: Option<RunId>,
}

/// List runs, newest first
#[utoipa::path(
    get,
    path = path::RUNS,
    tag = "runs",
    params(RunListParams),
    responses((
        status = 200,
        description = "A page of runs.",
        body = RunList,
        headers(("link" = Option<String>, description = "The next page, as `rel=\"next\"`.")),
    )),
)]
pub async fn list(
    State(state): State<AppState>,
    caller: Caller,
    uri: Uri,
    pairs: Pairs,
) -> Result<(HeaderMap, Json<RunList>), ApiError> {
    let params = read(&pairs)?;
    let query = RunQuery {
        state: States(params.state),
        workflow: params.workflow,
        subject: params.subject,
        trigger: params.trigger,
        workspace: params.workspace,
        labels: params.label.into_iter().collect(),
        inputs: params.input.into_iter().collect(),
        created_from: params.created_from,
        created_before: params.created_before,
    };
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, limits::PAGE_MAX);
    searchable::check(&state, caller.tenant, &query).await?;
    let filter = filter::checked(query, &caller)?;
    let store = state.for_tenant(caller.tenant);
    let text = params.text.map(|text| text.to_lowercase()).filter(|text| !text.is_empty());
    let (rows, next_after) = if let Some(text) = text {
        with_text(&store, &filter, &text, Page { limit, after: params.after }).await?
    } else {
        // One more than asked for says whether there is another page.
        let mut rows = store.list_runs(&filter, Page { limit: limit + 1, after: params.after }).await?;
        let next_after = cut(&mut rows, limit, |row| row.run);
        (rows, next_after)
    };
    let mut headers = HeaderMap::new();
    if let Some(link) = next_after.and_then(|after| next_link(&uri, after)) {
        headers.insert(header::LINK, link);
    }
    let runs = rows.into_iter().map(|row| view::run(&state, row)).collect();
    Ok((headers, Json(RunList { runs, next_after })))
}

/// Runs in which a text occurs, and where to go on: behind the last one that was looked at, where there may be more.
async fn with_text(
    store: &TenantStore,
    filter: &RunFilter,
    text: &str,
    page: Page,
) -> Result<(Vec<RunSummary>, Option<RunId>), ApiError> {
    let (mut found, mut looked_at, mut after) = (Vec::new(), 0, page.after);
    loop {
        let rows = store.list_runs(filter, Page { limit: limits::PAGE_MAX, after }).await?;
        let is_last = rows.len() < limits::PAGE_MAX;
        looked_at += rows.len();
        for row in rows {
            after = Some(row.run);
            if has_text(&row, text) {
                found.push(row);
                if found.len() == page.limit {
                    return Ok((found, after));
                }
            }
        }
        if is_last {
            return Ok((found, None));
        }
        if looked_at >= LOOKED_THROUGH_MAX {
            return Ok((found, after));
        }
    }
}

fn has_text(row: &RunSummary, text: &str) -> bool {
    let has = |value: &str| value.to_lowercase().contains(text);
    has(&row.run.to_string()) || row.subject.as_deref().is_some_and(has) || row.labels.values().any(|value| has(value))
}

fn read(pairs: &Pairs) -> Result<RunListParams, ApiError> {
    let mut params = RunListParams::default();
    for (name, value) in pairs.iter() {
        match name {
            "state" => params.state.push(parsed(name, value)?),
            "workflow" => params.workflow = Some(value.to_owned()),
            "subject" => params.subject = Some(value.to_owned()),
            "trigger" => params.trigger = Some(value.to_owned()),
            "workspace" => params.workspace = Some(value.to_owned()),
            "label" => params.label.push(filter::pair(value, name)?),
            "input" => params.input.push(filter::pair(value, name)?),
            "created_from" => params.created_from = Some(Timestamp(parsed(name, value)?)),
            "created_before" => params.created_before = Some(Timestamp(parsed(name, value)?)),
            "text" => params.text = Some(value.to_owned()),
            "limit" => params.limit = Some(parsed(name, value)?),
            _ => params.after = Some(parsed(name, value)?),
        }
    }
    Ok(params)
}

/// The same question for the next page (RFC 8288).
fn next_link(uri: &Uri, after: RunId) -> Option<HeaderValue> {
    let kept = uri.query().unwrap_or_default().split('&');
    let kept: Vec<_> = kept.filter(|part| !part.is_empty() && !part.starts_with("after=")).collect();
    let joint = if kept.is_empty() { "" } else { "&" };
    HeaderValue::try_from(format!("<{}?{}{joint}after={after}>; rel=\"next\"", path::RUNS, kept.join("&"))).ok()
}
