//! A Vault or OpenBao server, over our own client for the dozen calls that a worker makes.
//!
//! [`Vault`] is the provider. [`login`] has the ways in and keeps the worker's token; [`api`] makes the calls and says what
//! a status means; [`answer`] reads what comes back into secret memory; [`aws`] signs with AWS keys.

mod answer;
mod api;
mod aws;
mod login;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;
use interlock_core::ids::TenantId;
use interlock_outbound::Outbound;
use serde_json::json;
use tracing::Instrument as _;

use crate::clock::Clock;
use crate::error::Cause;
use crate::provider::{Description, Entry, EntryKind, Fetched, Lease, Location, SecretProvider};
use api::{Api, Sent, VaultCall};
pub use aws::{AwsIdentity, AwsKeySource};
pub use login::Login;
use login::Session;

/// Stands for the tenant's id in a path.
pub const TENANT_PLACE: &str = "{tenant}";

/// How a Vault is reached, and what is where in it.
pub struct VaultOptions {
    /// What the configuration calls it.
    pub name: String,
    pub url: String,
    pub namespace: Option<String>,
    pub login: Login,
    pub secrets: BTreeMap<String, VaultSecret>,
    pub timeout: Duration,
    /// A client of its own: what it may reach is not what steps may reach.
    pub outbound: Outbound,
    /// What a signed login is dated by.
    pub clock: Clock,
}

/// Where a secret is in a Vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultSecret {
    /// As the API has it, without `v1/`: `secret/data/servicenow`, `database/creds/readonly`.
    pub path: String,
    pub kind: EntryKind,
    pub field: String,
}

pub struct Vault {
    name: String,
    api: Api,
    session: Session,
    secrets: BTreeMap<String, VaultSecret>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("name", &self.name).field("url", &self.api.url).finish_non_exhaustive()
    }
}

impl Vault {
    pub fn new(options: VaultOptions) -> Self {
        let VaultOptions { name, url, namespace, login, secrets, timeout, outbound, clock } = options;
        let url = url.trim_end_matches('/').to_owned();
        Self { name, api: Api { outbound, url, namespace, timeout }, session: Session::new(login, clock), secrets }
    }

    /// A call with the worker's token. A token that turns out to be dead is replaced once.
    async fn with_token(&self, call: VaultCall<'_>) -> Result<Sent, Cause> {
        let token = self.session.token(&self.api).await?;
        let denied = match self.api.send(&call, Some(&token)).await {
            Err(denied @ Cause::Denied(_)) => denied,
            answered => return answered,
        };
        // A refusal by policy would be the same with any token, and logins may be counted.
        if self.api.send(&VaultCall::get("auth/token/lookup-self"), Some(&token)).await.is_ok() {
            return Err(denied);
        }
        self.session.forget(&token).await;
        let token = self.session.token(&self.api).await?;
        self.api.send(&call, Some(&token)).await
    }

    async fn read(&self, entry: &Entry) -> Result<Fetched, Cause> {
        let answer = self.with_token(VaultCall::get(&entry.path)).await?;
        let read = answer::read(&answer.body, entry.kind)?;
        if entry.kind == EntryKind::Leased && read.lease.is_none() {
            let what = format!("`{}` answers without a lease; say that its engine is kv1 or kv2", entry.path);
            return Err(Cause::Unreadable(what));
        }
        Ok(read)
    }

    /// Asks what the worker's token may do with the path. No secret is read for that, and no lease taken.
    async fn may_read(&self, entry: &Entry) -> Result<(), Cause> {
        let body = json!({ "paths": [entry.path] });
        match self.with_token(VaultCall::post("sys/capabilities-self", &body)).await {
            Ok(answer) if answer::may_read(&answer.body)? => Ok(()),
            Ok(_) => Err(Cause::Denied(format!(" for `{}`", entry.path))),
            // The role lacks the policy `default`, which lets every token ask. The worker is let in; the step finds out the rest.
            Err(Cause::Denied(_) | Cause::NotThere(_)) => Ok(()),
            Err(cause) => Err(cause),
        }
    }

    async fn health(&self) -> Result<String, Cause> {
        let answer = self.api.send(&VaultCall::get("sys/health?standbyok=true&perfstandbyok=true"), None).await?;
        answer::health(&answer.body)
    }
}

impl SecretProvider for Vault {
    fn locate(&self, tenant: TenantId, name: &str) -> Result<Location, Cause> {
        let Some(secret) = self.secrets.get(name) else {
            return Err(Cause::NotThere(format!(
                "the file of credentials does not say where it is: write [provider.{}.secret.{name}]",
                self.name
            )));
        };
        let path = secret.path.replace(TENANT_PLACE, &tenant.to_string());
        Ok(Location { entry: Entry { path, kind: secret.kind }, field: secret.field.clone() })
    }

    fn fetch<'a>(&'a self, entry: &'a Entry) -> BoxFuture<'a, Result<Fetched, Cause>> {
        let span = tracing::info_span!("vault.fetch", vault = %self.name, path = %entry.path);
        Box::pin(self.read(entry).instrument(span))
    }

    fn check<'a>(&'a self, entry: &'a Entry) -> BoxFuture<'a, Result<(), Cause>> {
        Box::pin(self.may_read(entry))
    }

    fn renew<'a>(&'a self, lease_id: &'a str, span: Duration) -> BoxFuture<'a, Result<Lease, Cause>> {
        Box::pin(async move {
            let body = json!({ "lease_id": lease_id, "increment": span.as_secs() });
            let answer = self.with_token(VaultCall::post("sys/leases/renew", &body)).await?;
            let lease = answer::lease(&answer.body)?;
            lease.ok_or_else(|| Cause::Unreadable("a renewal that names no lease".to_owned()))
        })
    }

    fn revoke<'a>(&'a self, lease_id: &'a str) -> BoxFuture<'a, Result<(), Cause>> {
        Box::pin(async move {
            let body = json!({ "lease_id": lease_id, "sync": true });
            match self.with_token(VaultCall::post("sys/leases/revoke", &body)).await {
                Ok(_) => Ok(()),
                // It has ended already.
                Err(Cause::NotThere(what)) if what.contains("lease not found") || what.contains("invalid lease") => {
                    Ok(())
                }
                Err(cause) => Err(cause),
            }
        })
    }

    fn describe(&self) -> BoxFuture<'_, Description> {
        Box::pin(async {
            let health = match self.health().await {
                Ok(health) => self.session.look().await.map(|()| health),
                gone => gone,
            };
            Description {
                name: self.name.clone(),
                kind: "vault",
                at: self.api.url.clone(),
                reachable: health.is_ok(),
                detail: health.unwrap_or_else(|cause| cause.to_string()),
            }
        })
    }

    fn prepare(&self) -> BoxFuture<'_, Result<(), Cause>> {
        Box::pin(async { self.session.token(&self.api).await.map(|_| ()) })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.session.close(&self.api))
    }
}
