//! Signing in and out.

mod login;
mod logout;
mod token;
mod ws_token;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(login::login))
        .routes(routes!(logout::logout))
        .routes(routes!(token::token))
        .routes(routes!(ws_token::ws_token))
}
