//! Entity tags of definitions: the version, and the beginning of its source's hash.

use axum::http::{HeaderMap, StatusCode};
use interlock_core::json::Hash;
use interlock_engine::Expected;
use utoipa::IntoParams;

use crate::api_error::ApiError;
use crate::etag::{ETag, Tags};

/// The tag of a version.
pub fn of(version: u32, source: Hash) -> ETag {
    ETag::new(&format_args!("{version}-{}", &source.to_string()[..16]))
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

/// What the caller believes to be there.
pub fn expected(headers: &HeaderMap) -> Result<Expected, ApiError> {
    match (Tags::if_match(headers)?, Tags::if_none_match(headers)?) {
        (Tags::Absent, Tags::Absent) => Ok(Expected::Anything),
        (Tags::Any, Tags::Absent) => Ok(Expected::Something),
        (Tags::Absent, Tags::Any) => Ok(Expected::Nothing),
        (Tags::OneOf(tags), Tags::Absent) => {
            let version = |tag: &ETag| tag.opaque().split('-').next().and_then(|number| number.parse().ok());
            let [tag] = <[ETag; 1]>::try_from(tags).map_err(|_| {
                ApiError::malformed("`if-match` takes the `etag` of the version that is to be replaced, or `*`")
            })?;
            // A tag that this server has not made is the tag of no version: the condition does not hold.
            let foreign = || {
                let detail = format!("no version has the tag {}; look at the newest one for its `etag`", tag.quoted());
                ApiError::new(StatusCode::PRECONDITION_FAILED, "WORKFLOW_CHANGED", detail)
            };
            version(&tag).map(Expected::Version).ok_or_else(foreign)
        }
        _ => Err(ApiError::malformed("give either `if-match` or `if-none-match: *`")),
    }
}

/// Whether the caller has this tag already.
pub fn has(headers: &HeaderMap, tag: &ETag) -> Result<bool, ApiError> {
    Ok(Tags::if_none_match(headers)?.name(tag))
}
