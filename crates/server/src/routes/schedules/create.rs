//! `POST /schedules`: makes a schedule. Its slots count from now on.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use interlock_core::trigger::Origin;
use interlock_protocol::schedules::{NewSchedule, ScheduleView, path};
use interlock_store::ScheduleSpec;
use interlock_workflow::cadence::{wrong_cron, wrong_zone};

use super::view;
use crate::api_error::ApiError;
use crate::idempotency::{IdempotencyHeaders, IdempotentRequest, Keep, Made};
use crate::identity::Caller;
use crate::request::Body;
use crate::state::AppState;

const WORKSPACE_DEFAULT: &str = "default";

/// Make a schedule
///
/// It starts the newest version of a workflow. Slots count from now on.
#[utoipa::path(
    post,
    path = path::SCHEDULES,
    tag = "schedules",
    params(IdempotencyHeaders),
    request_body = NewSchedule,
    responses(
        (status = 201, description = "The schedule.", body = ScheduleView),
        (status = 202, description = "The same request is still being worked on."),
    ),
)]
pub async fn create(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    Body(new): Body<NewSchedule>,
) -> Result<Response, ApiError> {
    let keyed = IdempotentRequest { state: &state, headers: &headers, caller: &caller, source: "schedules" };
    let asked = new.clone();
    Box::pin(keyed.once_keeping(&asked, |keep| add(&state, &caller, new, keep))).await
}

async fn add(
    state: &AppState,
    caller: &Caller,
    new: NewSchedule,
    keep: Keep<'_>,
) -> Result<Made<ScheduleView>, ApiError> {
    let workspace = caller.workspace_for(new.workspace)?;
    // Off the async threads: a wrong name is compared with those of all time zones.
    let (cron, timezone) = (new.cron.clone(), new.timezone.clone());
    let wrong = state.evaluate(caller.tenant, move |_| wrong_cron(&cron).or_else(|| wrong_zone(&timezone))).await?;
    if let Some(wrong) = wrong {
        return Err(ApiError::invalid(wrong));
    }
    // A schedule for a workflow that is not there, or does not take these inputs, would fail at every slot.
    state.schedules().check_slot(caller.tenant, &new.name, &new.workflow, &new.inputs).await?;
    let spec = ScheduleSpec {
        name: new.name,
        workflow: new.workflow,
        origin: Origin::Api,
        cron: new.cron,
        timezone: new.timezone,
        dst: new.dst,
        overlap: new.overlap,
        catch_up: new.catch_up_ms,
        jitter: new.jitter_ms,
        inputs: new.inputs,
        workspace: workspace.unwrap_or_else(|| WORKSPACE_DEFAULT.to_owned()),
        paused: new.paused,
    };
    caller.check_one_hand()?;
    let row = state.schedules().draft(caller.tenant, spec, Some(caller.name())).await?;
    let location = path::SCHEDULE.replace("{schedule}", &row.id.to_string());
    let made = Made::created(view::schedule(state, caller, row.clone()).await?).at(location);
    state.schedules().add(row, &caller.actor(), keep.answer(&made)?).await?;
    Ok(made)
}
