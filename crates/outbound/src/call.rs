//! What is asked of the outside, and what it answered.

use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode, Url};

use crate::limits;

/// What becomes of an answer that is longer than its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    Refuse,
    /// The beginning is enough, for instance for a log.
    Cut,
}

/// One call. Mark header values that must not follow a redirect to another origin as sensitive.
#[derive(Debug, Clone)]
pub struct Call {
    pub method: Method,
    pub url: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub timeout: Duration,
    /// 0: a redirect is the answer.
    pub redirects_max: u32,
    pub answer_bytes_max: usize,
    pub excess: Excess,
}

impl Call {
    pub fn new(method: Method, url: impl Into<String>) -> Self {
        Self {
            method,
            url: url.into(),
            headers: HeaderMap::new(),
            body: Vec::new(),
            timeout: limits::CALL_TIMEOUT,
            redirects_max: limits::REDIRECTS_MAX,
            answer_bytes_max: limits::ANSWER_BYTES_MAX,
            excess: Excess::Refuse,
        }
    }

    pub fn get(url: impl Into<String>) -> Self {
        Self::new(Method::GET, url)
    }

    pub fn post(url: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..Self::new(Method::POST, url) }
    }
}

#[derive(Debug, Clone)]
pub struct HttpResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// Where the answer came from, after redirects.
    pub url: Url,
}
