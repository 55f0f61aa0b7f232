//! A folder with one file for each secret, as container platforms mount them. They are read anew each time, so that a
//! secret can be changed without a restart.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use futures::future::BoxFuture;
use interlock_core::ids::TenantId;

use crate::error::Cause;
use crate::limits;
use crate::provider::{Description, Entry, Fetched, Lease, Location, SecretProvider, Tenancy, no_leases};
use crate::reading::{off_thread, read_private, value_of_file};

pub struct SecretFolder {
    name: String,
    folder: PathBuf,
    /// Where several tenants are served, each has a folder inside, named by its id.
    tenancy: Tenancy,
}

impl SecretFolder {
    pub fn new(name: impl Into<String>, folder: impl Into<PathBuf>, tenancy: Tenancy) -> Self {
        Self { name: name.into(), folder: folder.into(), tenancy }
    }

    async fn read(&self, path: &str) -> Result<Fetched, Cause> {
        let unusable = |error: &io::Error| {
            Cause::NotThere(match (error.kind(), path.split_once('/')) {
                (io::ErrorKind::NotFound, Some((tenant, _))) => {
                    format!("it is not in the tenant's folder {tenant} of the worker's secrets")
                }
                (io::ErrorKind::NotFound, None) => "it is not in the worker's folder of secrets".to_owned(),
                (kind, _) => format!("it cannot be read: {kind}"),
            })
        };
        let file = self.folder.join(path);
        let bytes = off_thread(move || read_private(&file, limits::SECRET_BYTES_MAX)).await;
        let bytes = bytes.map_err(|error| unusable(&error))?;
        Ok(Fetched::of_value(value_of_file(&bytes)?))
    }
}

impl SecretProvider for SecretFolder {
    fn locate(&self, tenant: TenantId, name: &str) -> Result<Location, Cause> {
        self.tenancy.locate(tenant, name)
    }

    fn fetch<'a>(&'a self, entry: &'a Entry) -> BoxFuture<'a, Result<Fetched, Cause>> {
        Box::pin(self.read(&entry.path))
    }

    fn renew<'a>(&'a self, _: &'a str, _: Duration) -> BoxFuture<'a, Result<Lease, Cause>> {
        no_leases()
    }

    fn revoke<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), Cause>> {
        no_leases()
    }

    fn describe(&self) -> BoxFuture<'_, Description> {
        Box::pin(async {
            let reachable = tokio::fs::read_dir(&self.folder).await;
            Description {
                name: self.name.clone(),
                kind: "folder",
                at: self.folder.display().to_string(),
                reachable: reachable.is_ok(),
                detail: match reachable {
                    Ok(_) => "can be read".to_owned(),
                    Err(error) => format!("cannot be read: {error}"),
                },
            }
        })
    }
}
