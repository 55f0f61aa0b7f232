//! `POST /runs/{run}/signals`: a signal for this run, under the key that its waits have unless they name another.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use interlock_core::rejection::Rejection;
use interlock_engine::commands::signal::SignalRequest;
use interlock_protocol::runs::{RunSignal, Signaled, path};

use crate::api_error::ApiError;
use crate::request::{Body, Named};
use crate::routes::signals::send::answer;
use crate::state::AppState;

/// Send a signal to a run
///
/// Its key is the run's subject, else the run's id.
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
    Body(signal): Body<RunSignal>,
) -> Result<(StatusCode, Json<Signaled>), ApiError> {
    let overview = state.reads(tenant).run_overview(tenant, run).await?;
    let overview = overview.ok_or_else(|| ApiError::unknown_run(run))?;
    if overview.state.is_terminal() {
        return Err(Rejection::Terminal { run, state: overview.state }.into());
    }
    let key = overview.subject.unwrap_or_else(|| run.to_string());
    let RunSignal { signal, payload, source_id } = signal;
    let request = SignalRequest { tenant, signal_type: signal, key, payload, source_id };
    Ok(answer(state.engine().signal(request).await?))
}
