//! Entity tags (RFC 9110 §8.8.3, §13.1): changing something only if it is what the caller has seen, and telling it only
//! what it has not.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

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
        HeaderValue::try_from(self.quoted()).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
    }

    pub fn quoted(&self) -> String {
        format!("\"{}\"", self.0)
    }

    /// What stands between the quotes.
    pub fn opaque(&self) -> &str {
        &self.0
    }
}

/// What the caller says about the state it has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tags {
    Absent,
    Any,
    OneOf(Vec<ETag>),
}

impl Tags {
    /// Reads `If-Match`. Weak tags never match a change, and are passed over.
    pub fn if_match(headers: &HeaderMap) -> Result<Self, ApiError> {
        tags(headers, &header::IF_MATCH, Weak::PassedOver)
    }

    /// Reads `If-None-Match`: `*` asks that there is nothing yet, tags ask for news only, and weak ones will do.
    pub fn if_none_match(headers: &HeaderMap) -> Result<Self, ApiError> {
        tags(headers, &header::IF_NONE_MATCH, Weak::Taken)
    }

    pub fn name(&self, current: &ETag) -> bool {
        match self {
            Self::Absent => false,
            Self::Any => true,
            Self::OneOf(tags) => tags.contains(current),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Weak {
    PassedOver,
    Taken,
}

fn tags(headers: &HeaderMap, name: &HeaderName, weak: Weak) -> Result<Tags, ApiError> {
    let mut found = Vec::new();
    let mut seen = false;
    for value in headers.get_all(name) {
        seen = true;
        let invalid = || ApiError::malformed(format!("the header `{name}` is no list of quoted tags"));
        for tag in value.to_str().map_err(|_| invalid())?.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
            if tag == "*" {
                return Ok(Tags::Any);
            }
            let (is_weak, tag) = tag.strip_prefix("W/").map_or((false, tag), |tag| (true, tag));
            let inner = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).ok_or_else(invalid)?;
            if !is_weak || weak == Weak::Taken {
                found.push(ETag(inner.to_owned()));
            }
        }
    }
    Ok(if seen { Tags::OneOf(found) } else { Tags::Absent })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(name: HeaderName, text: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_static(text));
        headers
    }

    #[test]
    fn tags_name_what_stands() {
        let current = ETag::new(&7);
        assert_eq!(current.header(), "\"7\"");
        for (text, changes, is_old) in [
            ("\"7\"", true, true),
            ("\"6\", \"7\"", true, true),
            ("*", true, true),
            ("W/\"7\"", false, true),
            ("\"6\"", false, false),
            ("", false, false),
        ] {
            let matches = Tags::if_match(&given(header::IF_MATCH, text)).unwrap();
            assert_eq!(matches.name(&current), changes, "{text}");
            let none = Tags::if_none_match(&given(header::IF_NONE_MATCH, text)).unwrap();
            assert_eq!(none.name(&current), is_old, "{text}");
        }
        assert!(Tags::if_match(&given(header::IF_MATCH, "7")).is_err());
        assert_eq!(Tags::if_match(&HeaderMap::new()).unwrap(), Tags::Absent);
    }
}
