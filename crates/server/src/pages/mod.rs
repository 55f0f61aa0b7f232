//! Pages for people. The operator console ([`console`]), and the few that the server draws by itself, so that people can get
//! in without it: setting a password by a link, signing in, seeing as whom one is signed in, and letting a command line in.
//! Plain HTML, no script.

mod account;
mod cli;
pub(crate) mod console;
mod layout;
mod login;
mod oidc;
mod setup;
mod slack;

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse;
use axum::routing::{get, post};

use crate::identity::oidc::path as provider;
use crate::state::AppState;

pub mod path {
    pub const ROOT: &str = "/";
    pub const SETUP: &str = "/setup";
    pub const LOGIN: &str = "/login";
    pub const LOGOUT: &str = "/logout";
    pub const ACCOUNT: &str = "/account";
    pub const CLI: &str = "/auth/cli";
    pub const SLACK_LINK: &str = "/slack/link";
    pub const STYLE: &str = "/sign-in.css";
}

pub fn routes() -> Router<AppState> {
    Router::new()
        .route(path::ROOT, get(console::answer))
        .route(path::SETUP, get(setup::show).post(setup::submit))
        .route(path::LOGIN, get(login::show).post(login::submit))
        .route(path::LOGOUT, post(account::log_out))
        .route(path::ACCOUNT, get(account::show))
        .route(path::CLI, get(cli::show).post(cli::allow))
        .route(path::SLACK_LINK, get(slack::show).post(slack::submit))
        .route(path::STYLE, get(style))
        .route(provider::START, get(oidc::start))
        .route(provider::CALLBACK, get(oidc::callback))
}

async fn style() -> impl IntoResponse {
    let headers = [(CONTENT_TYPE, "text/css; charset=utf-8"), (CACHE_CONTROL, "public, max-age=3600")];
    (headers, include_str!("sign-in.css"))
}
