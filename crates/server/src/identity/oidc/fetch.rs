//! What is asked of the provider, through the one client for calls to the outside: its configuration, its keys, tokens,
//! claims.

use axum::http::StatusCode;
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use interlock_core::time::{Millis, Timestamp};
use interlock_outbound::Call;
use jsonwebtoken::jwk::JwkSet;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{OidcOptions, Provider};
use crate::api_error::ApiError;

/// How long the configuration and the keys are believed. A token under an unknown key has them fetched again, but not
/// more often than this allows.
const BELIEVED: Millis = Millis::from_hours(1);
const ASKED_AGAIN_AFTER: Millis = Millis::from_secs(10);

/// Why a provider cannot vouch for a person right now. What it said is for the log; people get the short form.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    #[error("the provider cannot be asked: {0}")]
    Unreachable(String),
    #[error("the provider's answer makes no sense: {0}")]
    Nonsense(String),
    #[error("the provider's token does not count: {0}")]
    Untrusted(String),
    /// The code that the browser brought back was used, has expired, or was made for another sign-in.
    #[error("the provider does not take the code: {0}")]
    CodeOver(String),
    #[error("{0}")]
    Refused(String),
}

impl From<OidcError> for ApiError {
    fn from(error: OidcError) -> Self {
        tracing::warn!(%error, "a sign-in by the identity provider failed");
        match error {
            OidcError::Unreachable(_) | OidcError::Nonsense(_) => {
                let detail =
                    "the identity provider does not answer as it should; try again, and look into the server's log";
                Self::new(StatusCode::BAD_GATEWAY, "PROVIDER_UNAVAILABLE", detail)
            }
            OidcError::CodeOver(_) => {
                let detail =
                    "the identity provider no longer takes this sign-in: it was used or took too long; start again";
                Self::new(StatusCode::FORBIDDEN, "PROVIDER_REFUSED", detail)
            }
            OidcError::Untrusted(_) => {
                let detail = "the identity provider's answer cannot be trusted; start again";
                Self::new(StatusCode::FORBIDDEN, "PROVIDER_REFUSED", detail)
            }
            OidcError::Refused(why) => Self::new(StatusCode::FORBIDDEN, "PROVIDER_REFUSED", why),
        }
    }
}

/// The provider's configuration, as its discovery document has it.
#[derive(Debug, Clone, Deserialize)]
pub struct Metadata {
    pub issuer: String,
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    pub jwks_uri: String,
    #[serde(default)]
    pub userinfo_endpoint: Option<String>,
    #[serde(default)]
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

/// The provider's metadata and signing keys, and when they were fetched.
#[derive(Clone)]
pub struct ProviderConfiguration {
    pub metadata: Metadata,
    pub keys: JwkSet,
    at: Timestamp,
}

impl Provider {
    /// The configuration and the keys, from memory if they are fresh. `anew` asks again, if that was not just done.
    pub(super) async fn known(&self, now: Timestamp, anew: bool) -> Result<ProviderConfiguration, OidcError> {
        let mut kept = self.0.known.lock().await;
        if let Some(known) = &*kept {
            let believed = if anew { ASKED_AGAIN_AFTER } else { BELIEVED };
            if now.since(known.at) < believed {
                return Ok(known.clone());
            }
        }
        let OidcOptions { issuer, .. } = self.options();
        let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let metadata: Metadata = self.get(&url, None).await?;
        if metadata.issuer != *issuer {
            return Err(OidcError::Nonsense(format!("{url} speaks for {}", metadata.issuer)));
        }
        let keys: JwkSet = self.get(&metadata.jwks_uri, None).await?;
        let known = ProviderConfiguration { metadata, keys, at: now };
        *kept = Some(known.clone());
        Ok(known)
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, url: &str, token: Option<&str>) -> Result<T, OidcError> {
        let mut call = Call::get(url);
        if let Some(token) = token {
            call.headers.insert(AUTHORIZATION, sensitive(&format!("Bearer {token}"))?);
        }
        self.answer(call).await
    }

    /// A code for tokens.
    pub(super) async fn post_form<T: DeserializeOwned>(
        &self,
        metadata: &Metadata,
        mut form: Vec<(&str, &str)>,
    ) -> Result<T, OidcError> {
        let OidcOptions { client_id, client_secret, .. } = self.options();
        let methods = metadata.token_endpoint_auth_methods_supported.as_deref();
        // What is not said is `client_secret_basic`.
        let basic = methods.is_none_or(|methods| methods.iter().any(|method| method == "client_secret_basic"));
        let mut authorization = None;
        match client_secret {
            Some(secret) if basic => {
                let pair = STANDARD.encode(format!("{}:{}", encoded(client_id), encoded(secret)));
                authorization = Some(sensitive(&format!("Basic {pair}"))?);
            }
            Some(secret) => form.extend([("client_id", client_id.as_str()), ("client_secret", secret.as_str())]),
            None => form.push(("client_id", client_id)),
        }
        let body: Vec<_> = form.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let mut call = Call::post(&metadata.token_endpoint, body.join("&"));
        call.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        if let Some(authorization) = authorization {
            call.headers.insert(AUTHORIZATION, authorization);
        }
        self.answer(call).await
    }

    /// A redirect is no answer: it would take secrets along.
    async fn answer<T: DeserializeOwned>(&self, mut call: Call) -> Result<T, OidcError> {
        call.redirects_max = 0;
        call.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let sent = self.0.outbound.send(call).await;
        let answer = sent.map_err(|error| OidcError::Unreachable(error.to_string()))?;
        if !answer.status.is_success() {
            let what = format!("status {}{}", answer.status, reason(&answer.body));
            // RFC 6749 §5.2: the code is wrong, not the provider.
            let is_code = answer.status.as_u16() == 400 && what.ends_with(": invalid_grant");
            return Err(if is_code { OidcError::CodeOver(what) } else { OidcError::Nonsense(what) });
        }
        serde_json::from_slice(&answer.body).map_err(|error| OidcError::Nonsense(error.to_string()))
    }
}

fn sensitive(text: &str) -> Result<HeaderValue, OidcError> {
    let value = HeaderValue::from_str(text);
    let mut value = value.map_err(|_| OidcError::Nonsense("a credential that cannot be sent".into()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The standard's own word for what is wrong, which holds no secrets.
fn reason(bytes: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
    }
    let refusal = serde_json::from_slice::<Refusal>(bytes).ok();
    refusal.map(|refusal| format!(": {}", refusal.error.chars().take(80).collect::<String>())).unwrap_or_default()
}

/// Everything but unreserved characters as `%XX`.
pub fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            let _ = std::fmt::Write::write_fmt(&mut encoded, format_args!("%{byte:02X}"));
        }
    }
    encoded
}
