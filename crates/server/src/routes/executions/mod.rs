//! The runbook surface: runs under 002's names. Nothing here decides anything: every call is one of the engine's own,
//! with its words put right ([`view`]).

mod approve;
mod create;
mod events;
mod get;
mod rollback;
mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(create::create))
        .routes(routes!(get::get))
        .routes(routes!(approve::approve))
        .routes(routes!(rollback::roll_back))
        .routes(routes!(events::events))
}
