//! Variables of the environment, for tests. The environment of a process can be read by others of the same user and is
//! inherited by programs, so nothing real belongs there.

use std::time::Duration;

use futures::future::BoxFuture;
use interlock_core::ids::TenantId;
use interlock_core::secret_name::is_secret_name;
use zeroize::Zeroizing;

use crate::error::Cause;
use crate::provider::{Description, Entry, Fetched, Lease, Location, SecretProvider, no_leases};
use crate::reading::value_of_file;

pub struct SecretVariables {
    name: String,
    /// What the names of the variables begin with.
    prefix: String,
}

impl SecretVariables {
    pub fn new(name: impl Into<String>, prefix: impl Into<String>) -> Self {
        Self { name: name.into(), prefix: prefix.into() }
    }

    fn read(&self, name: &str) -> Result<Fetched, Cause> {
        let variable = format!("{}{name}", self.prefix);
        let text = std::env::var(&variable).map(Zeroizing::new);
        let text = text.map_err(|_| Cause::NotThere(format!("the variable {variable} is not set, or is no text")))?;
        Ok(Fetched::of_value(value_of_file(text.as_bytes())?))
    }
}

impl SecretProvider for SecretVariables {
    fn locate(&self, _: TenantId, name: &str) -> Result<Location, Cause> {
        if !is_secret_name(name) {
            return Err(Cause::NotThere("that is not a possible name".to_owned()));
        }
        Ok(Location::of_name(name))
    }

    fn fetch<'a>(&'a self, entry: &'a Entry) -> BoxFuture<'a, Result<Fetched, Cause>> {
        Box::pin(std::future::ready(self.read(&entry.path)))
    }

    fn renew<'a>(&'a self, _: &'a str, _: Duration) -> BoxFuture<'a, Result<Lease, Cause>> {
        no_leases()
    }

    fn revoke<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), Cause>> {
        no_leases()
    }

    fn describe(&self) -> BoxFuture<'_, Description> {
        let description = Description {
            name: self.name.clone(),
            kind: "environment",
            at: format!("{}*", self.prefix),
            reachable: true,
            detail: "for tests".to_owned(),
        };
        Box::pin(std::future::ready(description))
    }
}
