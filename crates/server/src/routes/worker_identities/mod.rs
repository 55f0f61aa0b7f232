//! Workers that enrol by a token: who may, who has, and who no longer may.

mod create;
mod list;
mod revoke;
mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(create::create)).routes(routes!(list::list)).routes(routes!(revoke::revoke))
}
