//! `GET /approvals`: the tenant's open approvals, or others by state; with `run` all of that run's, decided or not.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::RunId;
use interlock_core::plan::tier::Tier;
use interlock_core::state::ApprovalState;
use interlock_core::time::Timestamp;
use interlock_protocol::approvals::{ApprovalList, ApprovalOrder, path};
use interlock_protocol::identity::limits;
use interlock_store::ApprovalFilter;
use serde::Deserialize;
use utoipa::IntoParams;

use super::inbox::{Cursor, Inbox, InboxFilters};
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::Params;
use crate::request::PAGE_DEFAULT;
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ApprovalListParams {
    /// `requested` unless another is named.
    state: Option<ApprovalState>,
    run: Option<RunId>,
    workflow: Option<String>,
    subject: Option<String>,
    /// Those that the caller may decide (`true`), or may not (`false`). For people.
    mine: Option<bool>,
    /// Those that ask this group, in whichever of their lists.
    approvers: Option<String>,
    /// How much hangs on it. Open ones only.
    tier: Option<Tier>,
    /// Those that need at least so many people.
    quorum: Option<u32>,
    /// Those whose answer is overdue (`true`): no approver has decided in the time that is meant for it.
    overdue: Option<bool>,
    /// Those asked at this instant or later, in milliseconds since 1970.
    since: Option<Timestamp>,
    /// `oldest` unless said otherwise; `due` takes open ones only.
    #[serde(default)]
    #[param(inline)]
    order: ApprovalOrder,
    limit: Option<usize>,
    /// The `next_after` of the page before.
    after: Option<String>,
}

/// List approvals
///
/// The tenant's open approvals, oldest first; with `run`, all of that run's, decided or not. With `order=due` those
/// that the caller may decide come first, and of these what is due first.
#[utoipa::path(
    get,
    path = path::APPROVALS,
    tag = "approvals",
    params(ApprovalListParams),
    responses((status = 200, description = "A page of approvals.", body = ApprovalList)),
)]
pub async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<ApprovalListParams>,
) -> Result<Json<ApprovalList>, ApiError> {
    let (order, state_wanted) = (params.order, params.state.unwrap_or(ApprovalState::Requested));
    let open_only = params.run.is_none() && state_wanted != ApprovalState::Requested;
    let asks_of_open = params.tier.is_some() || params.mine.is_some() || params.overdue.is_some();
    if open_only && (order == ApprovalOrder::Due || asks_of_open) {
        let detail = format!(
            "`order=due`, `overdue`, `tier` and `mine` are about open approvals: leave `state={state_wanted}` out, or them"
        );
        return Err(ApiError::invalid(detail));
    }
    if params.mine.is_some() {
        caller.as_voter()?;
    }
    if let Some(run) = params.run {
        caller.reach(&state, run).await?;
    }
    let after = params.after.as_deref().map(|text| Cursor::parse(text, order)).transpose()?;
    let now = state.now();
    let inbox = Inbox {
        state: &state,
        caller: &caller,
        order,
        run: params.run,
        filter: ApprovalFilter {
            state: state_wanted,
            workflow: params.workflow,
            subject: params.subject,
            workspace: caller.workspace.as_deref().map(str::to_owned),
            since: params.since,
            due_before: params.overdue.unwrap_or_default().then_some(now),
            quorum: params.quorum.unwrap_or_default(),
        },
        wanted: InboxFilters {
            state: params.state,
            mine: params.mine,
            group: params.approvers,
            tier: params.tier,
            due_from: (params.overdue == Some(false)).then_some(now),
        },
    };
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, limits::PAGE_MAX);
    inbox.page(after, limit).await.map(Json)
}
