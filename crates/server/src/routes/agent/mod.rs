//! The calls of workers. Every one of them is safe to repeat.

mod complete;
mod heartbeat;
mod intent;
mod outcome;
mod poll;
mod register;
mod unregister;

use axum::Router;
use axum::routing::post;
use interlock_protocol::agent::path;

use crate::state::AppState;

pub fn routes() -> Router<AppState> {
    Router::new()
        .route(path::REGISTER, post(register::register))
        .route(path::HEARTBEAT, post(heartbeat::heartbeat))
        .route(path::POLL, post(poll::poll))
        .route(path::COMPLETE, post(complete::complete))
        .route(path::EFFECTS, post(intent::intent))
        .route(path::OUTCOMES, post(outcome::outcome))
        .route(path::UNREGISTER, post(unregister::unregister))
}
