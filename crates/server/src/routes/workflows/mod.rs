//! Workflows: apply files, look at what is there.

mod apply;
mod disable;
mod etag;
mod get;
mod list;
mod plan;
mod schema;
mod validate;
mod version;
mod versions;
mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(apply::apply, list::list))
        .routes(routes!(apply::put, get::get))
        .routes(routes!(versions::versions))
        .routes(routes!(version::version))
        .routes(routes!(validate::validate))
        .routes(routes!(plan::plan))
        .routes(routes!(disable::disable))
        .routes(routes!(disable::enable))
}

/// The schema for editors. It needs no credential.
pub fn open() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(schema::schema))
}
