//! Tenants. A caller with charge of the installation sees them all; every other caller its own.

mod change;
mod create;
mod get;
mod list;
pub(crate) mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(create::create, list::list)).routes(routes!(get::get, change::change))
}
