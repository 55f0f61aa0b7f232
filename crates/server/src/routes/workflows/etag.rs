//! Entity tags of definitions: the version, and the beginning of its source's hash.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use interlock_core::json::Hash;
use interlock_engine::Expected;
use utoipa::IntoParams;

use crate::api_error::ApiError;

/// The tag of a version.
pub fn of(version: u32, source: Hash) -> HeaderValue {
    let tag = format!("\"{version}-{}\"", &source.to_string()[..16]);
    HeaderValue::from_str(&tag).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}

/// The headers that [`expected`] reads.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub struct ConditionHeaders {
    /// Apply only if the newest version has this tag; `*` for any.
    #[param(rename = "if-match")]
    _matches: Option<String>,
    /// `*`: apply only if the name is new.
    #[param(rename = "if-none-match")]
    _none_matches: Option<String>,
}

/// The header that [`matches_none`] reads.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub struct CacheHeaders {
    /// Tags that the caller has; the answer is 304 if the newest version has one of them.
    #[param(rename = "if-none-match")]
    _none_matches: Option<String>,
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ApiError> {
    let value = headers.get(name).map(HeaderValue::to_str).transpose();
    value.map_err(|_| ApiError::malformed(format!("the header `{name}` is not visible ASCII")))
}

/// What the caller believes to be there.
pub fn expected(headers: &HeaderMap) -> Result<Expected, ApiError> {
    let matches = text(headers, &header::IF_MATCH)?.map(str::trim);
    let none = text(headers, &header::IF_NONE_MATCH)?.map(str::trim);
    match (matches, none) {
        (None, None) => Ok(Expected::Anything),
        (Some("*"), None) => Ok(Expected::Something),
        (None, Some("*")) => Ok(Expected::Nothing),
        (Some(tag), None) => {
            let version = tag.trim_matches('"').split('-').next().and_then(|number| number.parse().ok());
            let help = "`if-match` takes the `etag` of the version that is to be replaced, or `*`";
            version.map(Expected::Version).ok_or_else(|| ApiError::malformed(help))
        }
        _ => Err(ApiError::malformed("give either `if-match` or `if-none-match: *`")),
    }
}

/// Whether the caller has this tag already.
pub fn has(headers: &HeaderMap, tag: &HeaderValue) -> Result<bool, ApiError> {
    let Some(given) = text(headers, &header::IF_NONE_MATCH)? else { return Ok(false) };
    let has = |given: &str| {
        let given = given.trim();
        given == "*" || tag.to_str().is_ok_and(|tag| given.trim_start_matches("W/") == tag)
    };
    Ok(given.split(',').any(has))
}
