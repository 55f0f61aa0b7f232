//! Changes that a second admin must agree to ([`crate::two_keys`]).

mod decide;
mod get;
mod list;
mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(list::list)).routes(routes!(get::get)).routes(routes!(decide::decide))
}
