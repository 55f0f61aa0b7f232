//! Where secrets come from. They are asked for by name when a call is made, and forgotten with it.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;

use futures::future::BoxFuture;
use interlock_core::ids::TenantId;
use interlock_core::plan::retry::ErrorClass;
use tokio::io::AsyncReadExt as _;
use zeroize::Zeroizing;

use crate::failure::{CallFailure, Sent};
use crate::limits;
use crate::schema::is_secret_name;

/// The value of a secret. It is overwritten when it is dropped, and nothing shows it.
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(…)")
    }
}

/// Knows the values of secrets. A tenant's names are its own.
pub trait SecretSource: Send + Sync {
    fn secret<'a>(&'a self, tenant: TenantId, name: &'a str) -> BoxFuture<'a, Result<SecretText, CallFailure>>;
}

fn missing(name: &str, what: &str) -> CallFailure {
    let message = format!("the secret `{name}` {what}");
    CallFailure::new(Sent::CertainlyNot, ErrorClass::Invalid, "SECRET_UNUSABLE", message)
}

/// A worker that was given no secrets.
#[derive(Debug, Clone, Copy)]
pub struct NoSecrets;

impl SecretSource for NoSecrets {
    fn secret<'a>(&'a self, _: TenantId, name: &'a str) -> BoxFuture<'a, Result<SecretText, CallFailure>> {
        let refusal = missing(name, "is not known: this worker was given no folder of secrets (--secrets)");
        Box::pin(std::future::ready(Err(refusal)))
    }
}

/// Secrets in memory, for tests.
#[derive(Default)]
pub struct SecretsByName(pub BTreeMap<String, String>);

impl SecretSource for SecretsByName {
    fn secret<'a>(&'a self, _: TenantId, name: &'a str) -> BoxFuture<'a, Result<SecretText, CallFailure>> {
        let found = self.0.get(name).map(SecretText::new).ok_or_else(|| missing(name, "is not known"));
        Box::pin(std::future::ready(found))
    }
}

/// A folder with one file for each secret, as container platforms mount them. They are read anew each time, so that a
/// secret can be changed without a restart.
#[derive(Debug, Clone)]
pub struct SecretFolder {
    folder: PathBuf,
    /// A worker that serves several tenants has a folder inside for each, named by its id.
    by_tenant: bool,
}

impl SecretFolder {
    pub fn of_one_tenant(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), by_tenant: false }
    }

    pub fn by_tenant(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), by_tenant: true }
    }

    async fn read(&self, tenant: TenantId, name: &str) -> Result<SecretText, CallFailure> {
        // A name is also a part of a path: nothing in it may lead elsewhere.
        if !is_secret_name(name) {
            return Err(missing(name, "has no possible name"));
        }
        let mut path = self.folder.clone();
        if self.by_tenant {
            path.push(tenant.to_string());
        }
        path.push(name);
        let unusable = |error: &io::Error| match error.kind() {
            io::ErrorKind::NotFound if self.by_tenant => {
                missing(name, &format!("is not in the tenant's folder {tenant} of the worker's secrets"))
            }
            io::ErrorKind::NotFound => missing(name, "is not in the worker's folder of secrets"),
            kind => missing(name, &format!("cannot be read: {kind}")),
        };
        let file = tokio::fs::File::open(&path).await.map_err(|error| unusable(&error))?;
        let mut text = Zeroizing::new(String::new());
        let mut limited = file.take(limits::SECRET_BYTES as u64 + 1);
        limited.read_to_string(&mut text).await.map_err(|error| unusable(&error))?;
        if text.len() > limits::SECRET_BYTES {
            return Err(missing(name, &format!("is longer than {} bytes", limits::SECRET_BYTES)));
        }
        match text.trim_end_matches(['\r', '\n']) {
            "" => Err(missing(name, "is empty")),
            text => Ok(SecretText::new(text)),
        }
    }
}

impl SecretSource for SecretFolder {
    fn secret<'a>(&'a self, tenant: TenantId, name: &'a str) -> BoxFuture<'a, Result<SecretText, CallFailure>> {
        Box::pin(self.read(tenant, name))
    }
}
