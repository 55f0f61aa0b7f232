//! The tenant's audit log, and the evidence of runs.

mod checkpoint;
mod erase;
mod evidence;
mod key;
mod list;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(list::list))
        .routes(routes!(checkpoint::checkpoint))
        .routes(routes!(erase::erase))
        .routes(routes!(key::key))
        .routes(routes!(evidence::evidence))
}
