//! The addresses at which a tenant takes webhooks.

use interlock_boxed::boxed;
use interlock_core::ids::{InboundId, TenantId};
use interlock_core::limits;
use interlock_core::rejection::Rejection;
use interlock_core::trigger::Source;
use interlock_core::trigger::webhook::standard;
use interlock_store::{
    AddInbound, ChangeInbound, Changed, FinishIdempotency, InboundRow, RemoveInbound, Secrets, Stored,
};
use serde_json::json;

use super::{ENDPOINTS_MAX, SECRET_BYTES_MAX, SECRET_BYTES_MIN};
use crate::audit::Actor;
use crate::error::EngineError;
use crate::parts::Webhooks;

/// How often a change is made, each time to the address as it is then, while others change it as well.
const CHANGE_TRIES: usize = 8;

/// The longest name of the header in which a sender signs.
pub const HEADER_BYTES_MAX: usize = 64;

/// An address to be made.
#[derive(Clone)]
pub struct NewInbound {
    pub name: String,
    pub source: Source,
    pub header: Option<String>,
    pub secondary: bool,
    /// The sender's secret; one is made where omitted.
    pub secret: Option<String>,
}

/// What may change about an address.
#[derive(Debug, Clone, Copy, Default)]
pub struct InboundChange {
    pub secondary: Option<bool>,
    pub paused: Option<bool>,
}

impl Webhooks {
    /// An address as it would be made now: checked, and not stored. Its secret is told once, here, where the server has
    /// made it.
    #[boxed]
    pub async fn draft_inbound(
        &self,
        tenant: TenantId,
        new: NewInbound,
        created_by: Option<String>,
    ) -> Result<(InboundRow, Option<String>), EngineError> {
        check_name(&new.name)?;
        if new.header.as_ref().is_some_and(|header| !is_header(header)) {
            let what = "`header` is not the name of an HTTP header".to_owned();
            return Err(Rejection::InvalidInput { what }.into());
        }
        if self.0.0.store.inbound_endpoints(tenant, "", ENDPOINTS_MAX).await?.len() == ENDPOINTS_MAX {
            let what = format!("a tenant has at most {ENDPOINTS_MAX} endpoints; remove one first");
            return Err(Rejection::InvalidInput { what }.into());
        }
        let id = InboundId(self.0.fresh_id());
        let (secret, told) = Self::secret_of(new.source, new.secret)?;
        let row = InboundRow {
            tenant,
            id,
            name: new.name,
            source: new.source,
            header: new.header.map(|header| header.to_ascii_lowercase()),
            secondary: new.secondary,
            paused: false,
            secrets: Secrets { current: self.seal(tenant, id.0, &secret)?, previous: None },
            created_at: self.0.now(),
            created_by,
            secret_by: None,
        };
        Ok((row, told))
    }

    /// Stores an address, with the answer to the request that asks for it.
    #[boxed]
    pub async fn add_inbound(
        &self,
        row: InboundRow,
        by: &Actor,
        answer: Option<FinishIdempotency>,
    ) -> Result<(), EngineError> {
        let (name, what) = (row.name.clone(), by.did("webhook.created", row.id, &details(&row)));
        match self.0.write_answering(row.tenant, AddInbound(row), what, answer).await? {
            Stored::Stored => Ok(()),
            Stored::Duplicate => Err(EngineError::NameTaken { what: "webhook endpoint", name }),
        }
    }

    /// A tenant's address by its id or its name.
    #[boxed]
    pub async fn inbound(&self, tenant: TenantId, named: &str) -> Result<InboundRow, EngineError> {
        let reads = self.0.0.store.on_behalf_of(tenant);
        let found = match named.parse::<InboundId>() {
            Ok(id) => reads.inbound_endpoint(id).await?.filter(|row| row.tenant == tenant),
            Err(_) => reads.inbound_named(tenant, named).await?,
        };
        found.ok_or_else(|| EngineError::UnknownEndpoint { name: named.chars().take(80).collect() })
    }

    #[boxed]
    pub async fn change_inbound(
        &self,
        tenant: TenantId,
        named: &str,
        change: InboundChange,
        by: &Actor,
    ) -> Result<InboundRow, EngineError> {
        let with_change = |row: &InboundRow| -> Result<InboundRow, EngineError> {
            let (secondary, paused) = (change.secondary.unwrap_or(row.secondary), change.paused.unwrap_or(row.paused));
            Ok(InboundRow { secondary, paused, ..row.clone() })
        };
        self.put_inbound(tenant, named, with_change, "webhook.changed", by).await
    }

    /// Gives an address another secret. The one before counts for another day.
    #[boxed]
    pub async fn rotate_inbound(
        &self,
        tenant: TenantId,
        named: &str,
        secret: Option<String>,
        by: &Actor,
    ) -> Result<(InboundRow, Option<String>), EngineError> {
        let source = self.inbound(tenant, named).await?.source;
        let (secret, told) = Self::secret_of(source, secret)?;
        let with_secret = |row: &InboundRow| -> Result<InboundRow, EngineError> {
            let secrets = self.rotated(tenant, row.id.0, &row.secrets, &secret)?;
            Ok(InboundRow { secrets, secret_by: row.secret_from(by.name()), ..row.clone() })
        };
        Ok((self.put_inbound(tenant, named, with_secret, "webhook.rotated", by).await?, told))
    }

    #[boxed]
    pub async fn remove_inbound(&self, tenant: TenantId, named: &str, by: &Actor) -> Result<(), EngineError> {
        let row = self.inbound(tenant, named).await?;
        let what = by.did("webhook.removed", row.id, &details(&row));
        self.0.write_noted(tenant, RemoveInbound { tenant, endpoint: row.id }, what).await?;
        Ok(())
    }

    /// Changes an address as it is then, while others may change it as well.
    async fn put_inbound(
        &self,
        tenant: TenantId,
        named: &str,
        change: impl Fn(&InboundRow) -> Result<InboundRow, EngineError>,
        kind: &'static str,
        by: &Actor,
    ) -> Result<InboundRow, EngineError> {
        for _ in 0..CHANGE_TRIES {
            let read = self.inbound(tenant, named).await?;
            let row = change(&read)?;
            let what = by.did(kind, row.id, &details(&row));
            let write = ChangeInbound { read, row: row.clone() };
            if self.0.write_noted(tenant, write, what).await? == Changed::Done {
                return Ok(row);
            }
        }
        Err(EngineError::Overloaded)
    }

    /// The secret to keep, and what of it the caller has to be told.
    fn secret_of(source: Source, given: Option<String>) -> Result<(String, Option<String>), EngineError> {
        let Some(secret) = given else {
            let made = standard::secret_of_key(&Self::secret_bytes());
            return Ok((made.clone(), Some(made)));
        };
        let length = secret.len();
        let invalid = |what: String| Err(Rejection::InvalidInput { what }.into());
        if !(SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&length) {
            return invalid(format!(
                "a secret has {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes; omit it to have one made"
            ));
        }
        if source == Source::Standard && standard::key_of_secret(&secret).is_none() {
            return invalid("a secret of Standard Webhooks is `whsec_` and base64".into());
        }
        Ok((secret, None))
    }
}

/// What the audit log tells of an address.
fn details(row: &InboundRow) -> serde_json::Value {
    json!({
        "name": row.name, "source": row.source.as_str(), "header": row.header, "secondary": row.secondary,
        "paused": row.paused,
    })
}

pub(super) fn check_name(name: &str) -> Result<(), EngineError> {
    let plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter));
    if name.is_empty() || name.len() > limits::NAME_BYTES_MAX || !plain {
        let max = limits::NAME_BYTES_MAX;
        let what = format!("an endpoint's name has 1 to {max} letters, digits, `-`, `_` or `.`");
        return Err(Rejection::InvalidInput { what }.into());
    }
    // It could be taken for an id.
    if name.starts_with("whi_") || name.starts_with("who_") {
        return Err(Rejection::InvalidInput { what: "an endpoint's name must not look like an id".into() }.into());
    }
    Ok(())
}

fn is_header(name: &str) -> bool {
    let token = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    !name.is_empty() && name.len() <= HEADER_BYTES_MAX && name.chars().all(token)
}
