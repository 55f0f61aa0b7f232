//! One call to a Vault, and what its answer's status means.

use std::time::Duration;

use interlock_outbound::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use interlock_outbound::{Call, Method, Outbound, OutboundError};
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::error::{Cause, quoted};
use crate::limits;
use crate::memory::SecretBuf;

/// Shorter secrets would be found everywhere.
const HIDDEN_BYTES_LEAST: usize = 4;

pub(super) struct Api {
    pub outbound: Outbound,
    /// Without a slash at its end.
    pub url: String,
    pub namespace: Option<String>,
    pub timeout: Duration,
}

pub(super) struct VaultCall<'a> {
    method: Method,
    path: &'a str,
    body: Zeroizing<Vec<u8>>,
    /// What stands in the body and must not come back in an error.
    secrets: Vec<&'a SecretBuf>,
}

impl<'a> VaultCall<'a> {
    pub fn get(path: &'a str) -> Self {
        Self { method: Method::GET, path, body: Zeroizing::default(), secrets: Vec::new() }
    }

    pub fn post(path: &'a str, body: &impl serde::Serialize) -> Self {
        let mut bytes = Zeroizing::new(Vec::with_capacity(BODY_BYTES));
        // Writing to memory does not fail, and our bodies are plain values.
        let _ = serde_json::to_writer(&mut *bytes, body);
        Self { method: Method::POST, path, body: bytes, secrets: Vec::new() }
    }

    pub fn hiding(self, secrets: impl IntoIterator<Item = &'a SecretBuf>) -> Self {
        Self { secrets: secrets.into_iter().collect(), ..self }
    }
}

/// Room for a login with a long token, so that the buffer is not moved.
const BODY_BYTES: usize = 16 << 10;

pub(super) struct Sent {
    pub body: Zeroizing<Vec<u8>>,
}

impl Api {
    pub async fn send(&self, call: &VaultCall<'_>, token: Option<&SecretBuf>) -> Result<Sent, Cause> {
        let mut headers = HeaderMap::new();
        headers.insert("x-vault-request", HeaderValue::from_static("true"));
        if let Some(token) = token {
            let unusable = |_| Cause::LoginRefused(": the token holds characters that a header cannot".to_owned());
            let mut value = HeaderValue::from_str(token.reveal()).map_err(unusable)?;
            value.set_sensitive(true);
            headers.insert("x-vault-token", value);
        }
        if let Some(namespace) = &self.namespace {
            let unusable = |_| Cause::AddressClosed("the namespace holds characters that a header cannot".to_owned());
            headers.insert("x-vault-namespace", HeaderValue::from_str(namespace).map_err(unusable)?);
        }
        if !call.body.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let answer = self.outbound.send(Call {
            headers,
            body: call.body.to_vec(),
            timeout: self.timeout,
            // A redirect would take the token elsewhere.
            redirects_max: 0,
            ..Call::new(call.method.clone(), format!("{}/v1/{}", self.url, call.path))
        });
        let answer = answer.await.map_err(not_answered)?;
        let (status, body) = (answer.status.as_u16(), Zeroizing::new(answer.body));
        if (200..300).contains(&status) {
            return Ok(Sent { body });
        }
        let mut said = said(&body);
        for secret in call.secrets.iter().copied().chain(token) {
            if secret.reveal().len() >= HIDDEN_BYTES_LEAST {
                said = said.replace(secret.reveal(), "***");
            }
        }
        Err(refused(status, &said, &answer.headers, call.path))
    }
}

fn not_answered(error: OutboundError) -> Cause {
    match error {
        OutboundError::Timeout(span) => Cause::TooSlow(span),
        OutboundError::Failed(what) => Cause::CutOff(what),
        OutboundError::AnswerTooLarge { .. } => Cause::Unreadable(error.to_string()),
        OutboundError::InvalidUrl(_) | OutboundError::Forbidden(_) | OutboundError::TooManyRedirects { .. } => {
            Cause::AddressClosed(error.to_string())
        }
        OutboundError::Setup(what) | OutboundError::NotConnected(what) => {
            Cause::Unavailable(format!("cannot connect: {what}"))
        }
    }
}

/// What a Vault says beside a status: a list of errors, or one from servers that speak its language.
fn said(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Errors {
        #[serde(default)]
        errors: Vec<String>,
        #[serde(default)]
        error: Option<String>,
    }
    let errors: Option<Errors> = serde_json::from_slice(body).ok();
    errors.map(|said| said.errors.into_iter().chain(said.error).collect::<Vec<_>>().join("; ")).unwrap_or_default()
}

fn refused(status: u16, said: &str, headers: &HeaderMap, path: &str) -> Cause {
    let path = path.split('?').next().unwrap_or_default();
    let also = if said.is_empty() { String::new() } else { format!(": {}", quoted(said)) };
    match status {
        300..=399 => {
            Cause::AddressClosed(format!("it answers with a redirect ({status}); name the address of the active node"))
        }
        403 => Cause::Denied(format!(" for `{path}`{also}")),
        400 | 404 if said.is_empty() => Cause::NotThere(format!("there is nothing at `{path}` ({status})")),
        400 | 404 => Cause::NotThere(format!("`{path}` ({status}){also}")),
        429 => Cause::Throttled { after: retry_after(headers) },
        503 if path == "sys/health" || said.to_ascii_lowercase().contains("sealed") => Cause::Sealed,
        501 if path == "sys/health" => Cause::Unavailable("it is not initialised".to_owned()),
        _ => Cause::Unavailable(format!("status {status}{also}")),
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(limits::RETRY_AFTER_MAX))
}
