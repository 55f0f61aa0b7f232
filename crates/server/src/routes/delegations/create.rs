//! `POST /delegations`: a person lends their right to decide, for a time and a reason.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use interlock_core::ids::{DelegationId, TenantId};
use interlock_core::time::Timestamp;
use interlock_protocol::delegations::{CreateDelegation, DelegationView, limits, path};
use interlock_store::{AddDelegation, DelegationRow, Stored};

use super::{check_owner, view};
use crate::api_error::ApiError;
use crate::idempotency::{IdempotencyHeaders, IdempotentRequest, Keep, Made};
use crate::identity::{Caller, Via, note};
use crate::request::{Body, reason};
use crate::state::AppState;

/// Delegate approvals
///
/// While it holds, the delegate may decide where the delegator may, and the two count as one person. A person delegates
/// signed in as themselves, or an admin does it for them.
#[utoipa::path(
    post,
    path = path::DELEGATIONS,
    tag = "delegations",
    params(IdempotencyHeaders),
    request_body = CreateDelegation,
    responses(
        (status = 201, description = "The delegation.", body = DelegationView),
        (status = 202, description = "The same request is still being worked on."),
    ),
)]
pub async fn create(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<CreateDelegation>,
) -> Result<Response, ApiError> {
    let keyed = IdempotentRequest { state: &state, headers: &headers, caller: &caller, source: "delegations" };
    let asked = body.clone();
    Box::pin(keyed.once_keeping(&asked, |keep| add(&state, &caller, body, keep))).await
}

async fn add(
    state: &AppState,
    caller: &Caller,
    body: CreateDelegation,
    keep: Keep<'_>,
) -> Result<Made<DelegationView>, ApiError> {
    let row = checked(state, caller, body).await?;
    let add = AddDelegation { row: row.clone(), open_max: limits::OPEN_MAX };
    let details = serde_json::json!({
        "delegator": row.delegator, "delegate": row.delegate, "from_at": row.from_at, "until_at": row.until_at,
    });
    let what = note::by(caller, "delegation.created", row.id, &details);
    let now = row.created_at;
    let made = Made::created(DelegationView { created_by: caller.shown_name(), ..view::delegation(row.clone(), now) });
    match state.identity().write_answering(caller.tenant, add, what, keep.answer(&made)?).await? {
        Stored::Stored => Ok(made),
        Stored::Duplicate => Err(refused(&row)),
    }
}

async fn checked(state: &AppState, caller: &Caller, body: CreateDelegation) -> Result<DelegationRow, ApiError> {
    let own = caller.person.as_deref().filter(|_| matches!(caller.via, Via::Session { .. }));
    let Some(delegator) = body.delegator.or_else(|| own.map(str::to_owned)) else {
        return Err(ApiError::invalid("a key has no right to decide that it could lend: name the `delegator`"));
    };
    check_owner(caller, &delegator)?;
    caller.check_one_hand()?;
    if delegator == body.delegate {
        return Err(ApiError::invalid("`delegate` is the delegator: nobody delegates to themselves"));
    }
    let now = state.now();
    let from_at = body.from.unwrap_or(now).max(now);
    check_span(now, from_at, body.until)?;
    for (field, name) in [("delegator", &delegator), ("delegate", &body.delegate)] {
        check_person(state, caller.tenant, field, name).await?;
    }
    Ok(DelegationRow {
        tenant: caller.tenant,
        id: DelegationId(state.fresh_id()),
        delegator,
        delegate: body.delegate,
        from_at,
        until_at: body.until,
        reason: reason(body.reason)?,
        created_at: now,
        created_by: caller.name(),
        revoked_at: None,
        revoked_by: None,
    })
}

fn check_span(now: Timestamp, from_at: Timestamp, until_at: Timestamp) -> Result<(), ApiError> {
    let days = |span: interlock_core::time::Millis| span.0 / 86_400_000;
    if until_at <= from_at {
        return Err(ApiError::invalid("`until` is not after `from`, or has passed; both are Unix milliseconds"));
    }
    if until_at.since(from_at) > limits::SPAN_MAX {
        let what = format!("a delegation lasts {} days at most; make a new one then", days(limits::SPAN_MAX));
        return Err(ApiError::invalid(what));
    }
    if from_at.since(now) > limits::AHEAD_MAX {
        return Err(ApiError::invalid(format!("`from` is at most {} days ahead", days(limits::AHEAD_MAX))));
    }
    Ok(())
}

async fn check_person(state: &AppState, tenant: TenantId, field: &str, name: &str) -> Result<(), ApiError> {
    match state.for_tenant(tenant).user_named(name).await? {
        Some(user) if user.disabled_at.is_none() => Ok(()),
        _ => {
            let named: String = name.chars().take(80).collect();
            Err(ApiError::invalid(format!("the {field} `{named}` is no person of this tenant")))
        }
    }
}

fn refused(row: &DelegationRow) -> ApiError {
    let DelegationRow { delegator, delegate, .. } = row;
    let detail = format!(
        "what was lent is not passed on, and here another person has lent to {delegator}, or {delegate} has lent to \
         another person, in that time; or one of the two has {} delegations already. Revoke what stands in the way, or \
         choose another delegate (`GET /delegations`)",
        limits::OPEN_MAX
    );
    ApiError::new(StatusCode::CONFLICT, "DELEGATION_REFUSED", detail)
}
