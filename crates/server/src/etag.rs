//! Entity tags (RFC 9110 §8.8.3, §13.1): changing something only if it is what the caller has seen.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};

use crate::api_error::ApiError;

/// A strong tag of something's current state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ETag(String);

impl ETag {
    /// From a version, a hash, or whatever changes when the thing does. Quotes and control characters are dropped.
    pub fn new(opaque: &impl std::fmt::Display) -> Self {
        let opaque = opaque.to_string();
        Self(opaque.chars().filter(|char| char.is_ascii_graphic() && *char != '"').collect())
    }

    pub fn header(&self) -> HeaderValue {
        HeaderValue::try_from(format!("\"{}\"", self.0)).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
    }
}

/// What the caller says about the state it has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfMatch {
    Absent,
    Any,
    OneOf(Vec<ETag>),
}

impl IfMatch {
    /// Reads `If-Match`. Weak tags never match a change, and are passed over.
    pub fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        tags(headers, &header::IF_MATCH)
    }

    /// Reads `If-None-Match`: `*` asks that there is nothing yet, tags ask for news only.
    pub fn none_match(headers: &HeaderMap) -> Result<Self, ApiError> {
        tags(headers, &header::IF_NONE_MATCH)
    }

    pub fn names(&self, current: &ETag) -> bool {
        match self {
            Self::Absent => false,
            Self::Any => true,
            Self::OneOf(tags) => tags.contains(current),
        }
    }

    /// Refuses a change of something that the caller has not seen as it is: 412, or 428 where a tag is demanded.
    pub fn check(&self, current: &ETag, demanded: bool) -> Result<(), ApiError> {
        match self {
            Self::Absent if demanded => Err(ApiError::new(
                StatusCode::PRECONDITION_REQUIRED,
                "PRECONDITION_REQUIRED",
                "send the ETag that you have seen as `If-Match`",
            )),
            Self::Absent => Ok(()),
            _ if self.names(current) => Ok(()),
            _ => Err(ApiError::new(
                StatusCode::PRECONDITION_FAILED,
                "PRECONDITION_FAILED",
                format!("it has changed: its ETag is \"{}\" now; look at it again", current.0),
            )),
        }
    }
}

fn tags(headers: &HeaderMap, name: &header::HeaderName) -> Result<IfMatch, ApiError> {
    let mut found = Vec::new();
    let mut seen = false;
    for value in headers.get_all(name) {
        seen = true;
        let invalid = || ApiError::malformed(format!("the header `{name}` is no list of quoted tags"));
        for tag in value.to_str().map_err(|_| invalid())?.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
            if tag == "*" {
                return Ok(IfMatch::Any);
            }
            let (weak, tag) = tag.strip_prefix("W/").map_or((false, tag), |tag| (true, tag));
            let inner = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).ok_or_else(invalid)?;
            if !weak {
                found.push(ETag(inner.to_owned()));
            }
        }
    }
    Ok(if seen { IfMatch::OneOf(found) } else { IfMatch::Absent })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_MATCH, HeaderValue::from_static(text));
        headers
    }

    #[test]
    fn a_change_needs_the_tag_that_stands() {
        let current = ETag::new(&7);
        assert_eq!(current.header(), "\"7\"");
        for text in ["\"7\"", "\"6\", \"7\"", "*"] {
            assert!(IfMatch::of(&given(text)).unwrap().check(&current, true).is_ok(), "{text}");
        }
        for text in ["\"6\"", "W/\"7\"", ""] {
            let error = IfMatch::of(&given(text)).unwrap().check(&current, true).unwrap_err();
            assert_eq!(error.code(), "PRECONDITION_FAILED", "{text}");
        }
        assert!(IfMatch::of(&given("7")).is_err());
        let absent = IfMatch::of(&HeaderMap::new()).unwrap();
        assert_eq!(absent.check(&current, true).unwrap_err().code(), "PRECONDITION_REQUIRED");
        assert!(absent.check(&current, false).is_ok());
    }
}
