//! People of the caller's tenant.

mod change;
mod create;
mod get;
mod invite;
mod list;
mod password;
pub(crate) mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(create::create, list::list))
        .routes(routes!(get::get, change::change))
        .routes(routes!(password::set))
        .routes(routes!(invite::invite))
}
