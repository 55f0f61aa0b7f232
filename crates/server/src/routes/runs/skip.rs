//! `POST /runs/{run}/skip`: goes on without the step that stopped the run. Past an approval that was not given, it is the
//! caller's vote.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use interlock_core::decide::skip_terms;
use interlock_core::rejection::Rejection;
use interlock_core::run::approval::Voter;
use interlock_protocol::runs::{Because, Standing, path};

use crate::api_error::ApiError;
use crate::directive::answer;
use crate::guard;
use crate::identity::Caller;
use crate::request::{Body, NamedRun, reason};
use crate::routes::approvals::vote::loaded;
use crate::routes::approvals::voter::{Question, VoterClaims, voter};
use crate::state::AppState;

/// Go on without the step that stopped the run
///
/// A gate, or a step whose approval was refused, is skipped by as many people as could have approved it: each of them gives
/// the directive, or votes on the approval that the first one opens.
#[utoipa::path(
    post,
    path = path::SKIP,
    tag = "runs",
    params(NamedRun),
    request_body = Because,
    responses(
        (status = 200, description = "Where the run stands.", body = Standing),
        (status = 202, description = "The vote is recorded; `needs` says how many are missing.", body = Standing),
    ),
)]
pub async fn skip(
    State(state): State<AppState>,
    caller: Caller,
    NamedRun { tenant, run }: NamedRun,
    Body(because): Body<Because>,
) -> Result<Response, ApiError> {
    let because = reason(because.reason)?;
    let voter = voter_of(&state, &caller, NamedRun { tenant, run }).await?;
    let standing = state.runs().skip(tenant, run, because, voter, caller.operator()).await?;
    let status = if standing.needs.is_some() { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, answer(standing)).into_response())
}

/// The caller as a voter, where the step needs votes. A key has no vote, and the engine refuses it.
async fn voter_of(state: &AppState, caller: &Caller, named: NamedRun) -> Result<Option<Voter>, ApiError> {
    let run = loaded(state, named.tenant, named.run).await?;
    let Some(terms) = skip_terms(&run).filter(|_| !run.state.is_terminal()) else { return Ok(None) };
    if caller.as_voter().is_err() {
        return Ok(None);
    }
    let question = Question { approvers: &terms.approvers, quorum: terms.quorum, approve: true };
    let voter = voter(state, caller, &run, question, &VoterClaims::default()).await;
    voter.map(Some).map_err(|refused| match refused.code() {
        // Their role permits the directive; what they lack is the right to approve.
        guard::PERMISSION_DENIED => Rejection::DirectiveNotPermitted {
            run: run.id,
            step: run.spec(run.position).key.clone(),
            verb: "skip",
            quorum: terms.quorum,
            why: refused.detail().to_owned(),
        }
        .into(),
        _ => refused,
    })
}
