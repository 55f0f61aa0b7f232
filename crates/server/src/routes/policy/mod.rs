//! Policy: the rules that actions are held against, their versions, and what others would have decided.

mod ask;
mod change;
mod files;
mod replay;
mod show;
mod tests;
mod versions;
mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(show::show, change::change))
        .routes(routes!(versions::list, versions::add))
        .routes(routes!(files::files))
        .routes(routes!(ask::eval))
        .routes(routes!(replay::replay))
        .routes(routes!(tests::run))
}
