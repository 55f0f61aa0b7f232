//! Keys of the caller's tenant.

mod create;
mod get;
mod list;
mod revoke;
mod rotate;
pub(crate) mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(create::create, list::list))
        .routes(routes!(get::get, revoke::revoke))
        .routes(routes!(rotate::rotate))
}
