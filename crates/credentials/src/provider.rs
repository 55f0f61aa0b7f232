//! [`SecretProvider`]: where values come from.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::BoxFuture;
use interlock_core::ids::TenantId;
use interlock_core::secret_name::is_secret_name;
use serde::Serialize;

use crate::error::Cause;
use crate::memory::SecretBuf;

/// Whose secrets a worker has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tenancy {
    One,
    /// A worker inside the server: every name is looked up under its tenant.
    Several,
}

/// Knows the values of secrets, and gives leases back.
pub trait SecretProvider: Send + Sync {
    /// Which entry holds the secret, and in which field. Names that share an entry share one fetch, so that a user name
    /// and its password belong together.
    fn locate(&self, tenant: TenantId, name: &str) -> Result<Location, Cause>;

    fn fetch<'a>(&'a self, entry: &'a Entry) -> BoxFuture<'a, Result<Fetched, Cause>>;

    /// Whether the entry could be fetched now. A lease is never taken for that: where the entry has one, this says no more than
    /// whether the provider answers, unless it has a question for it.
    fn check<'a>(&'a self, entry: &'a Entry) -> BoxFuture<'a, Result<(), Cause>> {
        Box::pin(async move {
            if entry.kind != EntryKind::Leased {
                return self.fetch(entry).await.map(drop);
            }
            let Description { reachable, detail, .. } = self.describe().await;
            if reachable { Ok(()) } else { Err(Cause::Unavailable(detail)) }
        })
    }

    /// Has a lease end after this span from now, sooner or later than it would have.
    fn renew<'a>(&'a self, lease_id: &'a str, span: Duration) -> BoxFuture<'a, Result<Lease, Cause>>;

    /// Ends a lease. One that has ended already is no error.
    fn revoke<'a>(&'a self, lease_id: &'a str) -> BoxFuture<'a, Result<(), Cause>>;

    /// What it is and whether it answers; never values.
    fn describe(&self) -> BoxFuture<'_, Description>;

    /// Signs in, where that is needed, so that a mistake shows before the first step.
    fn prepare(&self) -> BoxFuture<'_, Result<(), Cause>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Signs off.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A place in a provider that is read as a whole.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The path in the provider's own words.
    pub path: String,
    pub kind: EntryKind,
}

/// What an entry's answer looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// Fields that stay until they are changed at the provider.
    Plain,
    /// The same, wrapped with their version (KV version 2).
    Versioned,
    /// Made for each request, with a lease.
    Leased,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    pub entry: Entry,
    pub field: String,
}

impl Location {
    /// A provider that has one value under each name.
    pub(crate) fn of_name(name: &str) -> Self {
        Self { entry: Entry { path: name.to_owned(), kind: EntryKind::Plain }, field: ONLY_FIELD.to_owned() }
    }
}

impl Tenancy {
    /// Where a provider keeps a secret that has one value under each name, and under its tenant where there are several. A
    /// name may be a part of a path: nothing in it may lead elsewhere.
    pub(crate) fn locate(self, tenant: TenantId, name: &str) -> Result<Location, Cause> {
        if !is_secret_name(name) {
            return Err(Cause::NotThere("that is not a possible name".to_owned()));
        }
        let mut location = Location::of_name(name);
        if self == Self::Several {
            location.entry.path = format!("{tenant}/{name}");
        }
        Ok(location)
    }
}

const ONLY_FIELD: &str = "value";

pub type SecretFields = BTreeMap<String, SecretBuf>;

/// What a fetch brought.
pub struct Fetched {
    pub fields: SecretFields,
    pub lease: Option<Lease>,
    /// By which the provider's audit log knows the request.
    pub request_id: Option<String>,
}

impl Fetched {
    pub(crate) fn of_value(value: SecretBuf) -> Self {
        Self { fields: [(ONLY_FIELD.to_owned(), value)].into(), lease: None, request_id: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub id: String,
    pub duration: Duration,
    pub renewable: bool,
}

/// How it stands with a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Description {
    pub name: String,
    /// `vault`, `age`, `folder`, `environment`.
    pub kind: &'static str,
    /// Where it is.
    pub at: String,
    pub reachable: bool,
    /// A version, a number of secrets, or why it cannot be reached.
    pub detail: String,
}

/// A provider whose values stay: there is nothing to renew or to revoke.
pub(crate) fn no_leases<T: Send + 'static>() -> BoxFuture<'static, Result<T, Cause>> {
    let cause = Cause::NotThere("this provider has no leases".to_owned());
    Box::pin(std::future::ready(Err(cause)))
}
