//! Schedules: make them, look at them, let them rest.

mod create;
mod get;
mod list;
mod next;
mod pause;
mod remove;
mod resume;
mod trigger;
mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(create::create, list::list))
        .routes(routes!(get::get, remove::remove))
        .routes(routes!(pause::pause))
        .routes(routes!(resume::resume))
        .routes(routes!(trigger::trigger))
        .routes(routes!(next::next))
}
