//! Workers: who takes steps, from which queues, and when each was last heard of.

mod drain;
mod forget;
mod get;
mod list;
mod maintenance;
pub mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(list::list))
        .routes(routes!(get::get, forget::forget))
        .routes(routes!(drain::drain))
        .routes(routes!(maintenance::begin, maintenance::end))
}
