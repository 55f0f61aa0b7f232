//! Runs: start them, look at them, direct them.

mod cancel;
mod events;
mod get;
mod list;
mod pause;
mod resolve;
mod restart;
mod resume;
mod retry;
mod rollback;
mod signal;
mod skip;
mod start;
mod steps;
mod view;

use axum::Router;
use axum::routing::{get, post};
use interlock_protocol::runs::path;

use crate::state::AppState;

pub fn routes() -> Router<AppState> {
    Router::new()
        .route(path::RUNS, post(start::start).get(list::list))
        .route(path::RUN, get(get::get))
        .route(path::STEPS, get(steps::steps))
        .route(path::EVENTS, get(events::events))
        .route(path::CANCEL, post(cancel::cancel))
        .route(path::PAUSE, post(pause::pause))
        .route(path::RESUME, post(resume::resume))
        .route(path::RETRY, post(retry::retry))
        .route(path::SKIP, post(skip::skip))
        .route(path::RESTART, post(restart::restart))
        .route(path::ROLLBACK, post(rollback::roll_back))
        .route(path::RESOLVE, post(resolve::resolve))
        .route(path::RUN_SIGNALS, post(signal::signal))
}
