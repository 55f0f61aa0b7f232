//! Messages of every kind that were given up: to be looked at, and to be sent again.

mod list;
mod replay;

pub use list::MessagePage;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(list::list)).routes(routes!(replay::replay))
}
