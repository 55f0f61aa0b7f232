//! Answers of a Vault, read into secret memory.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{Cause, quoted};
use crate::fields::{Fields, Malformed, parse};
use crate::memory::SecretBuf;
use crate::provider::{EntryKind, Fetched, Lease};

/// What every answer has around its data. The data itself stays where it is until its fields are read.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default)]
    request_id: String,
    #[serde(default)]
    lease_id: String,
    #[serde(default)]
    lease_duration: u64,
    #[serde(default)]
    renewable: bool,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    auth: Option<&'a RawValue>,
}

impl Envelope<'_> {
    fn lease(&self) -> Option<Lease> {
        let duration = Duration::from_secs(self.lease_duration);
        (!self.lease_id.is_empty()).then(|| Lease { id: self.lease_id.clone(), duration, renewable: self.renewable })
    }
}

fn unreadable(error: impl Into<Malformed>) -> Cause {
    let at: Malformed = error.into();
    if at.is_cut_off {
        return Cause::CutOff(format!("it ends in {at}"));
    }
    Cause::Unreadable(format!("it is not what a Vault says ({at})"))
}

fn envelope(body: &[u8]) -> Result<Envelope<'_>, Cause> {
    serde_json::from_slice(body).map_err(unreadable)
}

fn lacks(what: &str) -> Cause {
    Cause::Unreadable(format!("it has no {what}"))
}

/// The fields of an entry, with its lease.
pub(super) fn read(body: &[u8], kind: EntryKind) -> Result<Fetched, Cause> {
    #[derive(Deserialize)]
    struct Versioned<'a> {
        #[serde(borrow, default)]
        data: Option<&'a RawValue>,
    }
    let envelope = envelope(body)?;
    let mut data = envelope.data.ok_or_else(|| lacks("data"))?;
    if kind == EntryKind::Versioned {
        let versioned: Versioned<'_> = serde_json::from_str(data.get()).map_err(unreadable)?;
        let deleted =
            || Cause::NotThere("it has no data: is it in a KV engine of version 2, and not deleted?".to_owned());
        data = versioned.data.filter(|data| data.get() != "null").ok_or_else(deleted)?;
    }
    let fields = parse(data.get().as_bytes(), Fields::All).map_err(unreadable)?;
    let request_id = (!envelope.request_id.is_empty()).then(|| envelope.request_id.clone());
    Ok(Fetched { fields, lease: envelope.lease(), request_id })
}

pub(super) fn lease(body: &[u8]) -> Result<Option<Lease>, Cause> {
    Ok(envelope(body)?.lease())
}

/// Whether the path that was asked about may be read.
pub(super) fn may_read(body: &[u8]) -> Result<bool, Cause> {
    #[derive(Deserialize)]
    struct Capabilities {
        #[serde(default)]
        capabilities: Vec<String>,
    }
    let data = envelope(body)?.data.ok_or_else(|| lacks("data"))?;
    let told: Capabilities = serde_json::from_str(data.get()).map_err(unreadable)?;
    Ok(told.capabilities.iter().any(|capability| capability == "read" || capability == "root"))
}

/// One field of the data, such as an unwrapped secret id.
pub(super) fn field(body: &[u8], name: &str) -> Result<SecretBuf, Cause> {
    let data = envelope(body)?.data.ok_or_else(|| lacks("data"))?;
    let mut fields = parse(data.get().as_bytes(), Fields::Only(name)).map_err(unreadable)?;
    fields.remove(name).ok_or_else(|| lacks(name))
}

/// A token, and how long it is good for.
pub(super) struct Granted {
    pub token: SecretBuf,
    /// Zero: without an end.
    pub duration: Duration,
    pub renewable: bool,
}

pub(super) fn granted(body: &[u8]) -> Result<Granted, Cause> {
    #[derive(Deserialize)]
    struct Terms {
        #[serde(default)]
        lease_duration: u64,
        #[serde(default)]
        renewable: bool,
    }
    let auth = envelope(body)?.auth.filter(|auth| auth.get() != "null").ok_or_else(|| lacks("token"))?;
    let terms: Terms = serde_json::from_str(auth.get()).map_err(unreadable)?;
    let mut fields = parse(auth.get().as_bytes(), Fields::Only("client_token")).map_err(unreadable)?;
    let token = fields.remove("client_token").ok_or_else(|| lacks("token"))?;
    Ok(Granted { token, duration: Duration::from_secs(terms.lease_duration), renewable: terms.renewable })
}

/// How it stands with the server, in a few words.
pub(super) fn health(body: &[u8]) -> Result<String, Cause> {
    #[derive(Deserialize)]
    struct Health {
        #[serde(default)]
        sealed: bool,
        #[serde(default)]
        version: String,
    }
    let health: Health = serde_json::from_slice(body).map_err(unreadable)?;
    if health.sealed {
        return Err(Cause::Sealed);
    }
    Ok(format!("answers, version {}", quoted(&health.version)))
}
