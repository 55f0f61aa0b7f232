//! `GET /readyz`: the store answers and takes commits, and the server is not on its way out.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use interlock_engine::parts::EngineHealth;
use interlock_protocol::health::Health;
use interlock_store::SubmitError;
use tokio::time::timeout;

use crate::api_error::ApiError;
use crate::limits;
use crate::state::AppState;

/// Whether the server can take requests
///
/// The store answers and takes commits, and the server is not on its way out. `degraded` says that it takes requests
/// and that some of its own work does not get done; `problems` says which.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "health",
    responses(
        (status = 200, description = "It can.", body = Health),
        (status = 503, description = "Not now."),
    ),
)]
pub async fn ready(State(state): State<AppState>) -> Result<Json<Health>, ApiError> {
    let not_ready = |why: &str| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "NOT_READY", why);
    if state.shutdown().is_cancelled() {
        return Err(not_ready("the server is shutting down"));
    }
    if let Some(why) = why_no_commits(&state.health()) {
        return Err(not_ready(why));
    }
    match timeout(limits::READY_TIMEOUT, state.health().store_health().restoring()).await {
        Ok(Ok(Some(_))) => Err(not_ready("a restore of the store is not finished; run `interlock db restore` again")),
        Ok(Ok(None)) => {
            let mut problems = problems(&state.health());
            if state.broker().is_some_and(|broker| !broker.is_connected()) {
                problems
                    .push("the broker of workers' calls is not reached: workers make requests meanwhile".to_owned());
            }
            let status = if problems.is_empty() { "ready" } else { "degraded" };
            Ok(Json(Health { status: status.to_owned(), problems }))
        }
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(not_ready("the store does not answer in time")),
    }
}

/// Why the store takes no commits; nothing where it takes them.
pub fn why_no_commits(health: &EngineHealth) -> Option<&'static str> {
    match health.store_health().takes_commits() {
        Ok(()) => None,
        Err(SubmitError::DiskFull(_)) => Some("the store takes no commits: its disk is full; free space"),
        Err(SubmitError::FileGone(_)) => Some(
            "the store takes no commits: the file of its database was removed or replaced; the server's log says what to do",
        ),
        Err(SubmitError::Restored(_)) => {
            Some("the store takes no commits: it was restored, or failed over; restart this server")
        }
        Err(SubmitError::LanePanicked(_)) => Some(
            "the store takes no commits: a commit lane of this server has panicked; restart this server; its log has the panic",
        ),
        Err(_) => Some("the store takes no commits: its database does not answer; the server's log has the reason"),
    }
}

/// What does not get done. It names no tenant, because the route needs no credential.
fn problems(health: &EngineHealth) -> Vec<String> {
    let ill = health.loops().into_iter().filter(|of| !of.well);
    let mut problems: Vec<String> = ill
        .map(|of| {
            format!("the loop `{}` panicked ({} times since the start) and was started again", of.name, of.panics)
        })
        .collect();
    let aside = health.set_aside().len();
    if aside > 0 {
        problems.push(format!("{aside} of the runs and other things to be worked on cannot be, and are set aside"));
    }
    let rows = health.store_health().unreadable_rows();
    if rows > 0 {
        problems.push(format!("{rows} rows of the store cannot be read"));
    }
    problems
}
