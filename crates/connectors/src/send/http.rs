//! An HTTP call: secrets in, send, secrets out.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use interlock_credentials::{SecretBuf, StepCredentials};
use interlock_outbound::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use interlock_outbound::{Call, Excess, Method, Outbound};
use serde_json::Value;
use zeroize::Zeroizing;

use super::secret::{HIDDEN, HIDDEN_BYTES_LEAST, not_had, not_kept};
use super::{Leave, not_answered, without_leave};
use crate::failure::CallFailure;
use crate::limits;
use crate::request::{CallBody, HeaderContent, HttpCall, Response, segment};
use crate::schema::secret_name;

/// How deep secrets are looked for in a body.
const DEPTH_MAX: usize = interlock_core::limits::JSON_DEPTH_MAX;

pub(super) async fn send(
    outbound: &Outbound,
    secrets: &StepCredentials,
    call: &HttpCall,
    leave: Leave<'_>,
) -> Result<Response, CallFailure> {
    let mut filling = Filler { secrets, used: Vec::new() };
    let headers = filling.headers(call).await?;
    let body = filling.body(&call.body).await?;
    let method = Method::from_bytes(call.method.as_bytes())
        .map_err(|_| CallFailure::refused("METHOD_INVALID", format!("`{}` is not a method", call.method)))?;
    let prepared = Call {
        headers,
        body,
        timeout: call.timeout,
        redirects_max: if call.follows_redirects { interlock_outbound::limits::REDIRECTS_MAX } else { 0 },
        answer_bytes_max: limits::ANSWER_BYTES,
        excess: if call.cuts_answer { Excess::Cut } else { Excess::Refuse },
        ..Call::new(method, call.url.clone())
    };
    if !leave() {
        return Err(without_leave());
    }
    let answer = outbound.send(prepared).await.map_err(|error| not_answered(&error))?;
    let shown = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let forms = filling.forms();
    let headers = answer.headers.iter().map(|(name, value)| (name.as_str().to_owned(), hidden(&shown(value), &forms)));
    let headers = headers.collect();
    Ok(Response { status: answer.status.as_u16(), headers, body: hidden_bytes(answer.body, &forms) })
}

/// Puts secrets in their places, and remembers which.
struct Filler<'a> {
    secrets: &'a StepCredentials,
    /// Every form in which a secret was sent.
    used: Vec<Arc<SecretBuf>>,
}

impl Filler<'_> {
    async fn fetch(&mut self, name: &str) -> Result<Arc<SecretBuf>, CallFailure> {
        let secret = self.secrets.get(name).await.map_err(not_had)?;
        self.used.push(Arc::clone(&secret));
        Ok(secret)
    }

    async fn headers(&mut self, call: &HttpCall) -> Result<HeaderMap, CallFailure> {
        let mut headers = HeaderMap::new();
        for (name, content) in &call.headers {
            let (text, secret): (Zeroizing<String>, Option<&str>) = match content {
                HeaderContent::Plain(text) => (Zeroizing::new(text.clone()), None),
                HeaderContent::Secret { name } => {
                    (Zeroizing::new(self.fetch(name).await?.reveal().to_owned()), Some(name))
                }
                HeaderContent::Bearer { secret } => {
                    (Zeroizing::new(format!("Bearer {}", self.fetch(secret).await?.reveal())), Some(secret))
                }
                HeaderContent::Basic { user, secret } => {
                    let password = self.fetch(secret).await?;
                    let both = Zeroizing::new(format!("{user}:{}", password.reveal()));
                    let encoded = Zeroizing::new(BASE64.encode(both.as_bytes()));
                    let kept = SecretBuf::new(&encoded).map_err(|error| not_kept(secret, error))?;
                    self.used.push(Arc::new(kept));
                    (Zeroizing::new(format!("Basic {}", *encoded)), Some(secret))
                }
            };
            let unusable = || match secret {
                Some(secret) => {
                    let what = format!("the secret `{secret}` holds characters that a header cannot");
                    CallFailure::refused("SECRET_UNUSABLE", what)
                }
                None => CallFailure::refused("HEADER_INVALID", format!("the header `{name}` cannot be sent")),
            };
            let mut value = HeaderValue::from_str(&text).map_err(|_| unusable())?;
            value.set_sensitive(secret.is_some());
            headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable())?, value);
        }
        let kind = match call.body {
            CallBody::Empty => None,
            CallBody::Json(_) => Some("application/json"),
            CallBody::Text(_) => Some("text/plain; charset=utf-8"),
        };
        if let Some(kind) = kind.filter(|_| !headers.contains_key(CONTENT_TYPE)) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        Ok(headers)
    }

    async fn body(&mut self, body: &CallBody) -> Result<Vec<u8>, CallFailure> {
        match body {
            CallBody::Empty => Ok(Vec::new()),
            CallBody::Text(text) => Ok(text.clone().into_bytes()),
            CallBody::Json(value) => {
                let mut names = Vec::new();
                find_secrets(value, DEPTH_MAX, &mut names)?;
                let mut found = Vec::new();
                for name in names {
                    found.push((name.clone(), self.fetch(&name).await?));
                }
                Ok(filled(value, &found).to_string().into_bytes())
            }
        }
    }

    /// All that no answer may bring back.
    fn forms(&self) -> Vec<Zeroizing<String>> {
        let used = self.used.iter().filter(|secret| secret.reveal().len() >= HIDDEN_BYTES_LEAST);
        let mut forms: Vec<_> = used.flat_map(|secret| spellings(secret.reveal())).collect();
        forms.dedup();
        forms
    }
}

fn hidden(text: &str, forms: &[Zeroizing<String>]) -> String {
    let hide = |text: String, form: &Zeroizing<String>| {
        if text.contains(form.as_str()) { text.replace(form.as_str(), HIDDEN) } else { text }
    };
    forms.iter().fold(text.to_owned(), hide)
}

fn hidden_bytes(bytes: Vec<u8>, forms: &[Zeroizing<String>]) -> Vec<u8> {
    if forms.is_empty() {
        return bytes;
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let without = hidden(&text, forms);
    let bytes = if without == text { bytes } else { without.into_bytes() };
    // JSON can spell the same text in many ways: `\/`, `\u002f`.
    if bytes.contains(&b'\\')
        && let Ok(answer) = serde_json::from_slice::<Value>(&bytes)
    {
        let without = hidden_value(&answer, forms);
        if without != answer {
            return without.to_string().into_bytes();
        }
    }
    bytes
}

fn hidden_value(value: &Value, forms: &[Zeroizing<String>]) -> Value {
    match value {
        Value::String(text) => Value::String(hidden(text, forms)),
        Value::Array(items) => items.iter().map(|item| hidden_value(item, forms)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, item)| (hidden(name, forms), hidden_value(item, forms))).collect()
        }
        other => other.clone(),
    }
}

/// How a secret may stand in an answer: as it is, as JSON writes it, and in an address.
fn spellings(secret: &str) -> impl Iterator<Item = Zeroizing<String>> {
    let quoted = Zeroizing::new(Value::String(secret.to_owned()).to_string());
    let inside = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default();
    let escaped = Zeroizing::new(inside.to_owned());
    let encoded = Zeroizing::new(segment(secret));
    let all = [Zeroizing::new(secret.to_owned()), escaped, encoded];
    all.into_iter().filter(|form| form.len() >= HIDDEN_BYTES_LEAST)
}

fn find_secrets(value: &Value, depth: usize, names: &mut Vec<String>) -> Result<(), CallFailure> {
    if depth == 0 {
        return Err(CallFailure::refused("BODY_TOO_DEEP", "the body is nested too deeply"));
    }
    if let Some(name) = secret_name(value) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
        return Ok(());
    }
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| find_secrets(item, depth - 1, names)),
        Value::Object(fields) => fields.values().try_for_each(|item| find_secrets(item, depth - 1, names)),
        _ => Ok(()),
    }
}

fn filled(value: &Value, found: &[(String, Arc<SecretBuf>)]) -> Value {
    if let Some(name) = secret_name(value)
        && let Some((_, secret)) = found.iter().find(|(known, _)| known == name)
    {
        return Value::String(secret.reveal().to_owned());
    }
    match value {
        Value::Array(items) => items.iter().map(|item| filled(item, found)).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, item)| (name.clone(), filled(item, found))).collect())
        }
        other => other.clone(),
    }
}
