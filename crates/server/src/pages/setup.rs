//! `/setup?token=…`: a person sets a password by a link that works once. The first admin also chooses a name.

use axum::extract::{Query, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use interlock_protocol::identity::limits::PASSWORD_CHARS_MIN;
use serde::Deserialize;

use super::layout::{alert, escape, page, refusal};
use super::path;
use crate::api_error::ApiError;
use crate::origin;
use crate::request::Fields;
use crate::state::AppState;

#[derive(Deserialize)]
pub struct Link {
    #[serde(default)]
    token: String,
}

#[derive(Deserialize)]
pub struct Setup {
    token: String,
    #[serde(default)]
    name: String,
    password: String,
    again: String,
}

pub async fn show(State(state): State<AppState>, headers: HeaderMap, Query(link): Query<Link>) -> Response {
    match person(&state, &headers, &link.token).await {
        Ok(person) => form(StatusCode::OK, &link.token, person.as_deref(), "", None),
        Err(error) => over(&error),
    }
}

pub async fn submit(State(state): State<AppState>, headers: HeaderMap, Fields(setup): Fields<Setup>) -> Response {
    // A page of another site must not choose a person's password.
    if let Err(error) = origin::check_origin(&state, &headers) {
        return over(&error);
    }
    let person = match person(&state, &headers, &setup.token).await {
        Ok(person) => person,
        Err(error) => return over(&error),
    };
    let again =
        |status: StatusCode, message: &str| form(status, &setup.token, person.as_deref(), &setup.name, Some(message));
    if setup.password != setup.again {
        return again(StatusCode::UNPROCESSABLE_ENTITY, "The two passwords are not the same.");
    }
    let identity = state.identity();
    match identity.accept_invite(&setup.token, Some(setup.name.clone()), setup.password).await {
        Ok(user) => match identity.open_session(user).await {
            Ok(opened) => {
                (StatusCode::SEE_OTHER, [(SET_COOKIE, opened.cookie)], [(LOCATION, path::ROOT)]).into_response()
            }
            Err(_) => (StatusCode::SEE_OTHER, [(LOCATION, path::LOGIN)]).into_response(),
        },
        Err(error) if error.code() == "INVITE_OVER" => over(&error),
        Err(error) => again(error.status(), error.detail()),
    }
}

/// Whom the link is for; the first admin has no name yet.
async fn person(state: &AppState, headers: &HeaderMap, token: &str) -> Result<Option<String>, ApiError> {
    origin::check_host(state, headers)?;
    let invite = state.identity().open_invite(token).await?;
    Ok(state.identity().invited(&invite).await?.map(|user| user.name))
}

fn over(error: &ApiError) -> Response {
    let away = format!("<a class=\"button second\" href=\"{}\">Sign in</a>", path::LOGIN);
    // Without its database the server does not know whether the link counts.
    let title = if error.status().is_server_error() { "Try again in a moment" } else { "This link cannot be used" };
    refusal(title, error, &away)
}

fn form(status: StatusCode, token: &str, person: Option<&str>, name: &str, message: Option<&str>) -> Response {
    let (alert, token, name, action) = (alert(message), escape(token), escape(name), path::SETUP);
    let (title, who) = match person {
        Some(person) => {
            let person = escape(person);
            let who = format!(
                "<p>You are <strong>{person}</strong>.</p>
<input type=\"hidden\" name=\"name\" value=\"{person}\" autocomplete=\"username\">"
            );
            ("Choose your password", who)
        }
        None => (
            "Set up the first admin",
            format!(
                "<p>Nobody can sign in yet. The person who uses this link becomes the first admin of this installation.</p>
<div class=\"field\"><label for=\"name\">Your name here</label>
<input id=\"name\" name=\"name\" value=\"{name}\" autocomplete=\"username\" autocapitalize=\"none\" spellcheck=\"false\" \
maxlength=\"128\" required autofocus aria-describedby=\"name-hint\">
<p class=\"hint\" id=\"name-hint\">Letters, digits and . _ - @ +, as in “ada”. It stands in histories and does not change.</p></div>"
            ),
        ),
    };
    let content = format!(
        "{alert}<form method=\"post\" action=\"{action}\">
<input type=\"hidden\" name=\"token\" value=\"{token}\">
{who}
<div class=\"field\"><label for=\"password\">Password</label>
<input id=\"password\" name=\"password\" type=\"password\" autocomplete=\"new-password\" minlength=\"{PASSWORD_CHARS_MIN}\" \
required aria-describedby=\"password-hint\">
<p class=\"hint\" id=\"password-hint\">At least {PASSWORD_CHARS_MIN} characters. A few words are better than a few signs.</p></div>
<div class=\"field\"><label for=\"again\">The same password again</label>
<input id=\"again\" name=\"again\" type=\"password\" autocomplete=\"new-password\" required></div>
<button type=\"submit\">Set password and sign in</button>
</form>"
    );
    page(status, title, &content)
}
