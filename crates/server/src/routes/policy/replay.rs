//! `POST /policy/replay`: what a version would have decided where something was decided.

use axum::Json;
use axum::extract::State;
use interlock_core::time::Millis;
use interlock_engine::policy::ReplayedStanding;
use interlock_protocol::policy::{
    PolicyDifference, PolicyReplay, ReplayPolicy, StandingDifference, StandingReplay, limits, path,
};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::Body;
use crate::state::AppState;

/// Hold a version of the policy against what was decided
///
/// Under the version and the evaluator that decided there is no difference. Of what the rules in force allow in every run no decision is
/// kept: `standing` says what the version would say to those steps.
#[utoipa::path(
    post,
    path = path::REPLAY,
    tag = "policy",
    request_body = ReplayPolicy,
    responses((status = 200, description = "What would be another.", body = PolicyReplay)),
)]
pub async fn replay(
    State(state): State<AppState>,
    caller: Caller,
    Body(body): Body<ReplayPolicy>,
) -> Result<Json<PolicyReplay>, ApiError> {
    if body.days == 0 || body.days > limits::REPLAY_DAYS_MAX {
        return Err(ApiError::invalid(format!("`days` is between 1 and {}", limits::REPLAY_DAYS_MAX)));
    }
    let since = state.now() - Millis::from_hours(24 * u64::from(body.days));
    let found = state.policies().replay(caller.tenant, body.version, since).await?;
    let differences = found.differences.into_iter().map(|one| PolicyDifference {
        decision: one.decision,
        run_id: one.run,
        step: one.step,
        operation: one.operation,
        before: one.before,
        after: one.after,
        reasons: one.reasons,
    });
    Ok(Json(PolicyReplay {
        decisions: found.decisions,
        same: found.same,
        newly_allowed: found.newly_allowed,
        newly_gated: found.newly_gated,
        newly_denied: found.newly_denied,
        newly_undecided: found.newly_undecided,
        otherwise: found.otherwise,
        unreadable: found.unreadable,
        differences: differences.collect(),
        more: found.more,
        standing: standing(found.standing),
    }))
}

fn standing(found: ReplayedStanding) -> StandingReplay {
    let differences = found.differences.into_iter().map(|one| StandingDifference {
        workflow: one.workflow,
        version: one.version,
        step: one.step,
        after: one.after,
        reasons: one.reasons,
    });
    StandingReplay {
        steps: found.steps,
        same: found.same,
        may_change: found.may_change,
        newly_gated: found.newly_gated,
        newly_denied: found.newly_denied,
        newly_undecided: found.newly_undecided,
        differences: differences.collect(),
        more: found.more,
    }
}
