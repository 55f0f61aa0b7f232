//! `POST /runs/{run}/signals`: a signal for this run, under the key that its waits have unless they name another.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use interlock_core::rejection::Rejection;
use interlock_engine::commands::announce::Announced;
use interlock_engine::commands::signal::SignalRequest;
use interlock_protocol::runs::{RunSignal, Signaled, path};

use crate::api_error::ApiError;
use crate::request::Named;
use crate::routes::signals::event::SignalBody;
use crate::routes::signals::send::answer;
use crate::state::AppState;

/// Send a signal to a run
///
/// Its key is the run's subject, else the run's id. An event of CloudEvents 1.0 is taken as by `POST /signals`.
#[utoipa::path(
    post,
    path = path::RUN_SIGNALS,
    tag = "runs",
    params(Named),
    request_body = RunSignal,
    responses(
        (status = 201, description = "The signal is stored.", body = Signaled),
        (status = 200, description = "The same signal came before; nothing changes.", body = Signaled),
    ),
)]
pub async fn signal(
    State(state): State<AppState>,
    Named { tenant, run }: Named,
    signal: SignalBody<RunSignal>,
) -> Result<(StatusCode, Json<Signaled>), ApiError> {
    let overview = state.reads(tenant).run_overview(tenant, run).await?;
    let overview = overview.ok_or_else(|| ApiError::unknown_run(run))?;
    if overview.state.is_terminal() {
        return Err(Rejection::Terminal { run, state: overview.state }.into());
    }
    let key = overview.subject.unwrap_or_else(|| run.to_string());
    let (signal_type, payload, source_id) = match signal {
        SignalBody::Plain(RunSignal { signal, payload, source_id }) => (signal, payload, source_id),
        SignalBody::Event(event) => (event.kind, event.data, Some(event.source_id)),
    };
    let request = SignalRequest { tenant, signal_type, key, payload, source_id };
    // It is for this run alone: no workflow is started by it.
    let signaled = state.engine().signal(request).await?;
    Ok(answer(Announced { signaled, runs: Vec::new() }))
}
