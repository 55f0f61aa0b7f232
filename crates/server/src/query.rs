//! The query string: what is not understood is refused, and the refusal names the parameter and the form it has.
//!
//! [`Params`] reads a query into a type. What it says about a wrong one comes from the description of the route
//! ([`queries`]), so every route says it alike. [`Pairs`] is for queries whose parameters may be repeated.

use std::error::Error as _;
use std::str::FromStr;

use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query};
use axum::http::Uri;
use axum::http::request::Parts;
use interlock_core::text::nearest::hint;
use serde::de::DeserializeOwned;

use crate::api_error::ApiError;
use crate::openapi::queries::{self, KnownParameter};
use crate::state::AppState;

/// The query string as a type that refuses unknown fields.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<AppState> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, ApiError> {
        let read = Query::try_from_uri(&parts.uri);
        read.map(|Query(params)| Self(params)).map_err(|rejection| misread(parts, &rejection))
    }
}

/// What is wrong with a query: in our own words if the description of the route says it, else as its type says it.
fn misread(parts: &Parts, rejection: &QueryRejection) -> ApiError {
    let known = queries::known(&parts.method, &parts.extensions);
    check(&Pairs::of(&parts.uri), known).err().unwrap_or_else(|| {
        let why = rejection.source().map_or_else(|| rejection.body_text(), ToString::to_string);
        ApiError::malformed(format!("the query: {why}"))
    })
}

/// The query string as pairs, for queries whose parameters may be repeated.
pub struct Pairs(Vec<(String, String)>);

impl Pairs {
    pub fn of(uri: &Uri) -> Self {
        Self(Query::try_from_uri(uri).map(|Query(pairs)| pairs).unwrap_or_default())
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl FromRequestParts<AppState> for Pairs {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, ApiError> {
        Ok(Self::of(&parts.uri))
    }
}

/// Refuses what is no known parameter, what stands twice and may not, and values of another form.
pub fn check(pairs: &Pairs, known: &[KnownParameter]) -> Result<(), ApiError> {
    let mut seen: Vec<&str> = Vec::new();
    for (name, value) in pairs.iter() {
        let Some((_, form)) = known.iter().find(|(known, _)| *known == name) else {
            let help = match known {
                [] => "this address takes none".to_owned(),
                known => hint(name, known.iter().map(|(known, _)| *known)),
            };
            return Err(ApiError::malformed(format!("the query has no parameter `{}`; {help}", shown(name))));
        };
        let form = Form::of(form);
        if seen.contains(&name) && form != Form::List {
            return Err(ApiError::malformed(format!("the query: `{name}` stands twice; give it once")));
        }
        seen.push(name);
        form.check(name, value)?;
    }
    Ok(())
}

/// What the value of a parameter looks like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Instant,
    Span,
    Whole,
    Flag,
    List,
    /// A text, or something that says itself what it expects.
    Other,
}

impl Form {
    /// By the word that the list of known parameters has for it.
    fn of(word: &str) -> Self {
        match word {
            "instant" => Self::Instant,
            "span" => Self::Span,
            "whole" => Self::Whole,
            "flag" => Self::Flag,
            "list" => Self::List,
            _ => Self::Other,
        }
    }

    fn check(self, name: &str, value: &str) -> Result<(), ApiError> {
        let (fits, form) = match self {
            Self::Instant => (value.parse::<i64>().is_ok(), "an instant in Unix milliseconds, such as 1762607143120"),
            Self::Span => (value.parse::<u64>().is_ok(), "a span in milliseconds, such as 5000"),
            Self::Whole => (value.parse::<u64>().is_ok(), "a whole number, such as 50"),
            Self::Flag => (value.parse::<bool>().is_ok(), "`true` or `false`"),
            Self::List | Self::Other => return Ok(()),
        };
        let wrong = || ApiError::malformed(format!("the query: `{name}` is {form}, not `{}`", shown(value)));
        if fits { Ok(()) } else { Err(wrong()) }
    }
}

fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

/// A parameter's value as what its name says it is.
pub fn parsed<T: FromStr<Err: std::fmt::Display>>(name: &str, value: &str) -> Result<T, ApiError> {
    value.parse().map_err(|error| ApiError::malformed(format!("the query: `{name}`: {error}")))
}
