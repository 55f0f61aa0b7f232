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
use crate::listing::erased;
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
        .route(path::ROOT, get(erased(console::answer)))
        .route(path::SETUP, get(erased(setup::show)).post(erased(setup::submit)))
        .route(path::LOGIN, get(erased(login::show)).post(erased(login::submit)))
        .route(path::LOGOUT, post(erased(account::log_out)))
        .route(path::ACCOUNT, get(erased(account::show)))
        .route(path::CLI, get(erased(cli::show)).post(erased(cli::allow)))
        .route(path::SLACK_LINK, get(erased(slack::show)).post(erased(slack::submit)))
        .route(path::STYLE, get(erased(style)))
        .route(provider::START, get(erased(oidc::start)))
        .route(provider::CALLBACK, get(erased(oidc::callback)))
}

async fn style() -> impl IntoResponse {
    let headers = [(CONTENT_TYPE, "text/css; charset=utf-8"), (CACHE_CONTROL, "public, max-age=3600")];
    (headers, include_str!("sign-in.css"))
}
