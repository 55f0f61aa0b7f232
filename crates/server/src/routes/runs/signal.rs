//! `POST /runs/{run}/signals`: a signal for this run, under the key that its waits have unless they name another.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use interlock_core::rejection::Rejection;
use interlock_core::trigger::cloudevent::CloudEvent;
use interlock_engine::commands::announce::Announced;
use interlock_engine::commands::signal;
use interlock_protocol::runs::{RunSignal, Signal, Signaled, path};

use crate::api_error::ApiError;
use crate::idempotency::{IdempotencyHeaders, IdempotentRequest, Keep, Made};
use crate::identity::Caller;
use crate::request::NamedRun;
use crate::routes::signals::event::SignalBody;
use crate::routes::signals::send::{SOURCE, answer, request};
use crate::state::AppState;

/// Send a signal to a run
///
/// Its key is the run's subject, else the run's id. An event of CloudEvents 1.0 is taken as by `POST /signals`.
#[utoipa::path(
    post,
    path = path::RUN_SIGNALS,
    tag = "runs",
    params(NamedRun, IdempotencyHeaders),
    request_body = RunSignal,
    responses(
        (status = 201, description = "The signal is stored.", body = Signaled),
        (status = 200, description = "The same signal came before; nothing changes.", body = Signaled),
        (status = 202, description = "The same request is still being worked on."),
    ),
)]
pub async fn signal(
    State(state): State<AppState>,
    caller: Caller,
    NamedRun { tenant, run }: NamedRun,
    headers: HeaderMap,
    signal: SignalBody<RunSignal>,
) -> Result<Response, ApiError> {
    let RunSignal { signal, payload, source_id } = match signal {
        SignalBody::Plain(signal) => signal,
        SignalBody::Event(CloudEvent { kind, data, source_id, .. }) => {
            RunSignal { signal: kind, payload: data, source_id: Some(source_id) }
        }
    };
    let keyed = IdempotentRequest { state: &state, headers: &headers, caller: &caller, source: SOURCE };
    // The run is part of what was asked, where the subject is what it is stored under.
    let asked = Signal { signal, key: run.to_string(), payload, source_id, broadcast: false };
    let mut request = request(&keyed, asked.clone()).await?;
    let store = async |keep: Keep<'_>| {
        let overview = state.for_tenant(tenant).run_overview(run).await?;
        let overview = overview.ok_or_else(|| ApiError::unknown_run(run))?;
        request.key = overview.subject.unwrap_or_else(|| run.to_string());
        // It is for this run alone: it starts no workflow, and no other run gets it.
        request.run = Some(run);
        // One event may go to several runs, and what one workspace calls its own is in no other's way.
        request.source_id = request.source_id.map(|source| source.for_run(run));
        let made = |signaled| Made::from(answer(Announced { signaled, runs: Vec::new(), skipped: Vec::new() }));
        if overview.state.is_terminal() {
            // A repeat of what it has heard in time is told so, and not that it comes too late.
            if state.signals().came_before(&request).await? {
                return Ok(made(signal::Signaled::Duplicate));
            }
            return Err(Rejection::Terminal { run, state: overview.state }.into());
        }
        let row = state.signals().draft(request).await?;
        let kept = keep.answer(&made(signal::Signaled::Stored(row.id)))?;
        Ok(made(state.signals().add(row, kept).await?))
    };
    Box::pin(keyed.once_keeping(&asked, store)).await
}
