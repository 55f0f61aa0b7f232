//! Payloads too long for a row (the claim check): they are written to an object store first, named by tenant and hash,
//! and the row holds a reference with their length and hash.
//!
//! [`Payloads::check_in`] puts what a change set brings aside before it is submitted; [`Payloads::fetch`] brings it back
//! where it is read: by a worker, an expression, a caller of the API. Between the two, `decide` and the store carry the
//! reference like any other JSON. [`reference`] says what one looks like, [`objects`] where the bytes are, [`sweep`]
//! when they go. [`survey`] holds all of them against their rows, and [`copy`] takes them along with a backup.

pub mod copy;
mod hand_over;
pub mod objects;
mod outbound;
pub mod reference;
mod staging;
pub mod survey;
pub(crate) mod sweep;

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use interlock_boxed::boxed;
use interlock_core::ids::TenantId;
use interlock_core::json::{Hash, Json};
use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_core::planted::{Bug, is_planted};
use interlock_core::run::change::ChangeSet;
use interlock_core::time::{Millis, Timestamp};
use interlock_store::{KeepPayload, PayloadKept, PayloadOwner, PayloadRow, Store};

pub use objects::{Objects, PlaceError};
pub use reference::Reference;

use crate::Engine;
use crate::error::EngineError;

/// The longest payload that stands in its row, unless the operator sets another limit.
pub const INLINE_BYTES_MAX: usize = 64 << 10;
/// A change set takes seconds from its payloads to its commit, and minutes while the database is away.
const ON_ITS_WAY: Millis = Millis::from_hours(1);
/// References that are known to be on record; past that all are forgotten, and recorded once more.
const KEPT_MAX: usize = 10_000;
/// How often, and how long apart, an object that is just being removed is asked for anew.
const TRIES_MAX: u32 = 20;
const TRY_EVERY: Duration = Duration::from_millis(100);

/// Where long payloads go, and how long they have to be.
#[derive(Clone)]
pub struct PayloadOptions {
    pub objects: Objects,
    pub inline_max: usize,
    /// How long a reference stays although its owner is not there: it may be on its way.
    pub on_its_way: Millis,
}

impl PayloadOptions {
    pub fn new(objects: Objects) -> Self {
        Self { objects, inline_max: INLINE_BYTES_MAX, on_its_way: ON_ITS_WAY }
    }
}

/// Why a payload cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    #[error(
        "the payload {sha256} is missing from the payload store: it was removed, or this server looks in another place (--payloads)"
    )]
    Missing { sha256: Hash },
    #[error("the payload {sha256} is not what was stored: the object in the payload store was altered")]
    Altered { sha256: Hash },
    #[error("the payload store cannot be used: {what}; try again")]
    Unavailable { what: String },
}

impl PayloadError {
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "PAYLOAD_MISSING",
            Self::Altered { .. } => "PAYLOAD_ALTERED",
            Self::Unavailable { .. } => "PAYLOAD_STORE_UNAVAILABLE",
        }
    }

    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    /// What a step fails with that cannot be given its payload.
    pub fn step_error(&self) -> StepError {
        let class = if self.is_transient() { ErrorClass::Unavailable } else { ErrorClass::Invalid };
        StepError::new(class, self.code(), self.to_string())
    }
}

/// The payloads of one store.
pub struct Payloads {
    objects: Objects,
    inline_max: usize,
    on_its_way: Millis,
    mark: reference::Mark,
    store: Store,
    kept: Mutex<HashSet<(PayloadOwner, Hash)>>,
    /// When staging files were last looked for.
    staging_swept_at: Mutex<Option<Timestamp>>,
}

impl Payloads {
    pub(crate) fn new(options: PayloadOptions, mark: &str, store: Store) -> Self {
        let PayloadOptions { objects, inline_max, on_its_way } = options;
        let mark = reference::Mark::new(mark);
        let (kept, staging_swept_at) = (Mutex::default(), Mutex::default());
        Self { objects, inline_max, on_its_way, mark, store, kept, staging_swept_at }
    }

    /// What a stored text refers to, if it is a reference.
    pub fn reference(&self, json: &Json) -> Option<Reference> {
        self.mark.read(json)
    }

    /// A text with something else in the place of every reference, also of those inside of it.
    pub fn shown(&self, json: Json, show: impl Fn(Reference) -> Json) -> Json {
        let found = self.mark.all_in(json.as_str());
        found.into_iter().fold(json, |json, written| match self.mark.read(&written) {
            Some(reference) => Json::trusted(json.as_str().replace(written.as_str(), show(reference).as_str())),
            None => json,
        })
    }

    fn concerns(&self, json: &Json) -> bool {
        json.len() > self.inline_max || self.mark.is_on(json)
    }

    /// Puts aside what is too long for its row, and records that the owner refers to it.
    #[boxed]
    pub async fn keep(
        &self,
        tenant: TenantId,
        owner: PayloadOwner,
        json: &Json,
        now: Timestamp,
    ) -> Result<Json, EngineError> {
        let given = self.mark.read(json);
        if given.is_none() && json.len() <= self.inline_max {
            return Ok(json.clone());
        }
        let reference =
            given.unwrap_or_else(|| Reference { sha256: Hash::of(json.as_str().as_bytes()), bytes: json.len() as u64 });
        let Reference { sha256, bytes } = reference;
        if given.is_some() && self.is_kept(owner, sha256) {
            return Ok(json.clone());
        }
        self.record(PayloadRow { tenant, owner, sha256 }, bytes, now).await?;
        match given {
            // A reference that is handed on must not be one to a missing object.
            Some(_) => self.objects.check(tenant, &reference).await?,
            None if is_planted(Bug::PayloadForgotten) => {}
            None => self.objects.put(tenant, &reference, json).await?,
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert((owner, sha256));
        drop(kept);
        Ok(self.mark.write(&reference))
    }

    fn is_kept(&self, owner: PayloadOwner, sha256: Hash) -> bool {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).contains(&(owner, sha256))
    }

    async fn record(&self, row: PayloadRow, bytes: u64, now: Timestamp) -> Result<(), EngineError> {
        for _ in 0..TRIES_MAX {
            if self.store.write(KeepPayload { row, bytes, at: now }).await? == PayloadKept::Kept {
                return Ok(());
            }
            tokio::time::sleep(TRY_EVERY).await;
        }
        let what = format!("the payload {} is being removed", row.sha256);
        Err(PayloadError::Unavailable { what }.into())
    }

    /// The payload itself, where the text is a reference; its bytes are checked against the hash.
    #[boxed]
    pub async fn fetch(&self, tenant: TenantId, json: &Json) -> Result<Json, PayloadError> {
        match self.mark.read(json) {
            Some(reference) => self.objects.get(tenant, &reference).await,
            None => Ok(json.clone()),
        }
    }

    /// A payload by its hash.
    #[boxed]
    pub async fn get(&self, tenant: TenantId, reference: &Reference) -> Result<Json, PayloadError> {
        self.objects.get(tenant, reference).await
    }

    /// Puts aside what a change set brings that is too long for its rows. One that brings nothing of the kind costs a
    /// look at a few lengths.
    pub(crate) async fn check_in(&self, change: &mut ChangeSet, now: Timestamp) -> Result<(), EngineError> {
        if !change.payloads().any(|json| self.concerns(json)) {
            return Ok(());
        }
        let mut long: Vec<Json> = Vec::new();
        for json in change.payloads().filter(|json| self.concerns(json)) {
            if !long.contains(json) {
                long.push(json.clone());
            }
        }
        let mut put_aside = Vec::with_capacity(long.len());
        for json in long {
            let reference = self.keep(change.tenant, change.run.into(), &json, now).await?;
            put_aside.push((json, reference));
        }
        change.replace_payloads(|json| replacement(&put_aside, json));
        Ok(())
    }

    /// Those of some texts that are references, each with what it refers to.
    pub(crate) async fn fetch_all<'a>(
        &self,
        tenant: TenantId,
        texts: impl Iterator<Item = &'a Json>,
    ) -> Result<Vec<(Json, Json)>, PayloadError> {
        let mut fetched: Vec<(Json, Json)> = Vec::new();
        for json in texts.filter(|json| self.mark.is_on(json)) {
            if !fetched.iter().any(|(reference, _)| reference == json) {
                fetched.push((json.clone(), self.fetch(tenant, json).await?));
            }
        }
        Ok(fetched)
    }
}

/// The text that replaces this one, if there is one.
pub(crate) fn replacement(pairs: &[(Json, Json)], json: &Json) -> Option<Json> {
    pairs.iter().find(|(from, _)| from == json).map(|(_, to)| to.clone())
}

impl Engine {
    /// A text with everything that it refers to in its place; nothing where it is whole already. What undoes a step is given
    /// texts inside of its own.
    pub(crate) async fn whole(&self, tenant: TenantId, json: &Json) -> Result<Option<Json>, EngineError> {
        let Some(payloads) = self.payloads() else { return Ok(None) };
        let found: Vec<Json> = payloads.mark.all_in(json.as_str());
        if found.is_empty() {
            return Ok(None);
        }
        let mut text = json.as_str().to_owned();
        for (reference, whole) in payloads.fetch_all(tenant, found.iter()).await? {
            text = text.replace(reference.as_str(), whole.as_str());
        }
        Ok(Some(Json::trusted(text)))
    }

    /// Whether a text is the one that is kept in its row, or that the row refers to.
    pub(crate) fn is_same_payload(&self, kept: &Json, given: &Json) -> bool {
        match self.payloads().and_then(|payloads| payloads.reference(kept)) {
            Some(reference) => reference.sha256 == Hash::of(given.as_str().as_bytes()),
            None => kept == given,
        }
    }

    /// The same where another order of fields, or other blanks, make no difference. Of a long payload only the text can be compared.
    pub(crate) fn is_same_value(&self, kept: &Json, given: &Json) -> bool {
        let is_same =
            || matches!((kept.to_exact_value(), given.to_exact_value()), (Ok(kept), Ok(given)) if kept == given);
        self.is_same_payload(kept, given) || is_same()
    }

    /// The payloads beside the database, where the server has a place for them.
    pub fn payloads(&self) -> Option<&Payloads> {
        self.0.payloads.as_ref()
    }
}
