//! Secrets in a list: those that a server keeps for a connection of a tenant's own.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::BoxFuture;
use interlock_core::ids::TenantId;

use crate::error::Cause;
use crate::memory::SecretBuf;
use crate::provider::{Description, Entry, Fetched, Lease, Location, SecretProvider, no_leases};

/// Every tenant's secrets are these.
#[derive(Default)]
pub struct FixedSecrets(pub BTreeMap<String, String>);

impl SecretProvider for FixedSecrets {
    fn locate(&self, _: TenantId, name: &str) -> Result<Location, Cause> {
        if self.0.contains_key(name) {
            Ok(Location::of_name(name))
        } else {
            Err(Cause::NotThere("it is not known".to_owned()))
        }
    }

    fn fetch<'a>(&'a self, entry: &'a Entry) -> BoxFuture<'a, Result<Fetched, Cause>> {
        let value = SecretBuf::new(self.0.get(&entry.path).map_or("", String::as_str));
        Box::pin(std::future::ready(value.map(Fetched::of_value).map_err(Cause::from)))
    }

    fn renew<'a>(&'a self, _: &'a str, _: Duration) -> BoxFuture<'a, Result<Lease, Cause>> {
        no_leases()
    }

    fn revoke<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), Cause>> {
        no_leases()
    }

    fn describe(&self) -> BoxFuture<'_, Description> {
        let description = Description {
            name: "fixed".to_owned(),
            kind: "fixed",
            at: "in memory".to_owned(),
            reachable: true,
            detail: format!("{} secrets", self.0.len()),
        };
        Box::pin(std::future::ready(description))
    }
}
