//! Webhooks that come in: the addresses at which a tenant takes them, and taking them.

mod change;
mod create;
mod deliveries;
mod get;
mod list;
pub mod receive;
mod remove;
mod rotate;
pub mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(create::create, list::list))
        .routes(routes!(get::get, change::change, remove::remove))
        .routes(routes!(rotate::rotate))
        .routes(routes!(deliveries::deliveries))
}

/// Needs no credential: the sender proves itself by its signature.
pub fn open_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(receive::receive))
}
