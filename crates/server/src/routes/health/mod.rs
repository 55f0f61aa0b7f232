//! Health checks, which need no credential: they say nothing about what the server holds.

mod live;
mod ready;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(live::live)).routes(routes!(ready::ready))
}
