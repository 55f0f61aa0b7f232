//! The addresses that are told of a tenant's events.

use interlock_boxed::boxed;
use interlock_core::ids::{OutboundId, OutboxId, TenantId};
use interlock_core::limits;
use interlock_core::planted::{Bug, is_planted};
use interlock_core::rejection::Rejection;
use interlock_core::run::event::Event;
use interlock_core::time::Timestamp;
use interlock_core::trigger::EndpointState;
use interlock_core::trigger::webhook::standard;
use interlock_outbound::Url;
use interlock_store::{
    AddOutbound, ChangeOutbound, Changed, FinishIdempotency, MessageRow, NewMessage, OutboundRow, RemoveOutbound,
    ReplayDeadLetters, ReplayMessages, Secrets, Stored,
};
use serde_json::json;

use super::inbound::check_name;
use super::{ENDPOINTS_MAX, publish};
use crate::audit::Actor;
use crate::error::EngineError;
use crate::parts::Webhooks;

/// Messages that one replay queues again.
pub const REPLAY_MAX: usize = 1_000;
pub const FILTERS_MAX: usize = 64;
/// What the audit log calls it when an endpoint is disabled, by whomever.
pub(super) const DISABLED: &str = "webhook_endpoint.disabled";
pub const DESCRIPTION_BYTES_MAX: usize = 1 << 10;

/// An address to be told of events.
#[derive(Debug, Clone)]
pub struct NewOutbound {
    pub name: Option<String>,
    pub url: String,
    pub description: Option<String>,
    pub events: Option<Vec<String>>,
    pub workflows: Option<Vec<String>>,
}

/// What is queued again.
#[derive(Debug, Clone, Copy)]
pub enum Replay {
    One(OutboxId),
    /// What was queued in this span; only what was given up, where asked so.
    Between {
        from: Timestamp,
        to: Timestamp,
        dead_only: bool,
    },
}

impl Webhooks {
    /// An endpoint as it would be made now: checked, and not stored. Its secret is told here and never again. Events count
    /// from now on.
    #[boxed]
    pub async fn draft_outbound(
        &self,
        tenant: TenantId,
        new: NewOutbound,
        created_by: Option<String>,
    ) -> Result<(OutboundRow, String), EngineError> {
        self.check_outbound(&new)?;
        if let Some(name) = &new.name
            && self.0.0.store.outbound_endpoint_named(tenant, name).await?.is_some()
        {
            return Err(name_taken(name));
        }
        if self.0.0.store.outbound_endpoints(tenant, ENDPOINTS_MAX).await?.len() == ENDPOINTS_MAX {
            let what = format!("a tenant has at most {ENDPOINTS_MAX} endpoints; remove one first");
            return Err(Rejection::InvalidInput { what }.into());
        }
        let id = OutboundId(self.0.fresh_id());
        let secret = standard::secret_of_key(&Self::secret_bytes());
        let now = self.0.now();
        let row = OutboundRow {
            tenant,
            id,
            name: new.name,
            url: new.url,
            description: new.description,
            events: new.events,
            workflows: new.workflows,
            secrets: Secrets { current: self.seal(tenant, id.0, &secret)?, previous: None },
            state: EndpointState::Enabled,
            note: None,
            fed_to: self.0.0.store.last_cursor(tenant).await?,
            fed_at: now,
            failing_since: None,
            created_at: now,
            created_by,
        };
        Ok((row, secret))
    }

    /// Stores an endpoint, with the answer to the request that asks for it.
    #[boxed]
    pub async fn add_outbound(
        &self,
        row: OutboundRow,
        by: &Actor,
        answer: Option<FinishIdempotency>,
    ) -> Result<(), EngineError> {
        let what = by.did("webhook_endpoint.created", row.id, &details(&row));
        let name = row.name.clone();
        match (self.0.write_answering(row.tenant, AddOutbound(row), what, answer).await?, name) {
            (Stored::Stored, _) => Ok(()),
            (Stored::Duplicate, Some(name)) => Err(name_taken(&name)),
            (Stored::Duplicate, None) => Err(EngineError::Overloaded),
        }
    }

    /// An endpoint by its id or its name.
    #[boxed]
    pub async fn outbound_endpoint(&self, tenant: TenantId, named: &str) -> Result<OutboundRow, EngineError> {
        let store = self.0.0.store.on_behalf_of(tenant);
        let found = match named.parse::<OutboundId>() {
            Ok(id) => store.outbound_endpoint(tenant, id).await?,
            Err(_) => store.outbound_endpoint_named(tenant, named).await?,
        };
        found.ok_or_else(|| EngineError::UnknownEndpoint { name: named.chars().take(80).collect() })
    }

    /// Gives an endpoint another secret. For a day messages are signed with both.
    #[boxed]
    pub async fn rotate_outbound(
        &self,
        tenant: TenantId,
        named: &str,
        by: &Actor,
    ) -> Result<(OutboundRow, String), EngineError> {
        let read = self.outbound_endpoint(tenant, named).await?;
        let secret = standard::secret_of_key(&Self::secret_bytes());
        let secrets = self.rotated(tenant, read.id.0, &read.secrets, &secret)?;
        let row = OutboundRow { secrets, ..read.clone() };
        Ok((self.put_outbound(read, row, "webhook_endpoint.rotated", by).await?, secret))
    }

    /// Messages wait until it is enabled again.
    #[boxed]
    pub async fn disable_outbound(
        &self,
        tenant: TenantId,
        named: &str,
        why: Option<String>,
        by: &Actor,
    ) -> Result<OutboundRow, EngineError> {
        let read = self.outbound_endpoint(tenant, named).await?;
        let row = OutboundRow { state: EndpointState::Disabled, note: why, ..read.clone() };
        self.put_outbound(read, row, DISABLED, by).await
    }

    /// Goes on where it stopped, or with what is new only.
    #[boxed]
    pub async fn enable_outbound(
        &self,
        tenant: TenantId,
        named: &str,
        skip_missed: bool,
        by: &Actor,
    ) -> Result<OutboundRow, EngineError> {
        let read = self.outbound_endpoint(tenant, named).await?;
        let mut row = read.clone();
        (row.state, row.note, row.failing_since) = (EndpointState::Enabled, None, None);
        if skip_missed {
            row.fed_to = self.0.0.store.last_cursor(tenant).await?;
        }
        self.put_outbound(read, row, "webhook_endpoint.enabled", by).await
    }

    /// Its messages that are still on their way end with it.
    #[boxed]
    pub async fn remove_outbound(&self, tenant: TenantId, named: &str, by: &Actor) -> Result<(), EngineError> {
        let row = self.outbound_endpoint(tenant, named).await?;
        let what = by.did("webhook_endpoint.removed", row.id, &details(&row));
        let remove = RemoveOutbound { tenant, endpoint: row.id, at: self.0.now() };
        self.0.write_noted(tenant, remove, what).await?;
        Ok(())
    }

    /// Queues messages again, with the ids that receivers know them by. Answers how many.
    #[boxed]
    pub async fn replay_messages(
        &self,
        tenant: TenantId,
        named: &str,
        what: Replay,
        by: &Actor,
    ) -> Result<usize, EngineError> {
        let row = self.outbound_endpoint(tenant, named).await?;
        let found = match what {
            Replay::One(id) => {
                let message = self.0.0.store.message(tenant, row.id, id).await?;
                vec![message.ok_or_else(|| EngineError::UnknownEndpoint { name: id.to_string() })?]
            }
            Replay::Between { from, to, dead_only } => {
                let found = self.0.0.store.messages_between(tenant, row.id, from..to, REPLAY_MAX + 1).await?;
                if found.len() > REPLAY_MAX {
                    let what = format!("more than {REPLAY_MAX} messages lie in this span; take a shorter one");
                    return Err(Rejection::InvalidInput { what }.into());
                }
                found.into_iter().filter(|message| !dead_only || message.dead_at.is_some()).collect()
            }
        };
        let now = self.0.now();
        // Fresh ids: the same messages may be asked for twice within one instant.
        let again = |message: MessageRow| NewMessage {
            id: OutboxId(self.0.fresh_id()),
            run: message.run,
            payload: message.payload,
            // Behind all that is still to be sent for the first time.
            place: i64::MAX,
        };
        let messages: Vec<NewMessage> = found.into_iter().map(again).collect();
        let count = messages.len();
        let what = by.did("webhook_endpoint.replayed", row.id, &json!({ "server": server(&row), "messages": count }));
        self.0.write_noted(tenant, ReplayMessages { tenant, endpoint: row.id, messages, at: now }, what).await?;
        self.0.0.relay.notify_one();
        Ok(count)
    }

    /// Sends messages again that were given up, of every kind. Answers how many.
    #[boxed]
    pub async fn replay_dead(&self, tenant: TenantId, mut ids: Vec<OutboxId>, by: &Actor) -> Result<u64, EngineError> {
        if is_planted(Bug::OneDeadLetterReplayed) {
            ids.truncate(1);
        }
        let subject = match ids.as_slice() {
            [id] => id.to_string(),
            _ => "all".to_owned(),
        };
        let what = by.did("dead_letter.replayed", subject, &json!({ "messages": ids.len() }));
        let queued = self.0.write_noted(tenant, ReplayDeadLetters { tenant, ids, at: self.0.now() }, what).await?;
        self.0.0.relay.notify_one();
        Ok(queued)
    }

    /// Another change that was faster is not undone: the sender tries again.
    async fn put_outbound(
        &self,
        read: OutboundRow,
        row: OutboundRow,
        kind: &'static str,
        by: &Actor,
    ) -> Result<OutboundRow, EngineError> {
        let what = by.did(kind, row.id, &details(&row));
        let write = ChangeOutbound { read, row: row.clone() };
        if self.0.write_noted(row.tenant, write, what).await? == Changed::Gone {
            return Err(EngineError::Overloaded);
        }
        self.0.0.publish.notify_one();
        Ok(row)
    }

    fn check_outbound(&self, new: &NewOutbound) -> Result<(), EngineError> {
        let invalid = |what: String| Err(Rejection::InvalidInput { what }.into());
        let outbound = self.0.outbound().ok_or(EngineError::OutboundClosed)?;
        if let Some(name) = &new.name {
            check_name(name)?;
        }
        if let Err(error) = outbound.check_url(&new.url) {
            return invalid(format!("`url`: {error}"));
        }
        if new.description.as_ref().is_some_and(|text| text.len() > DESCRIPTION_BYTES_MAX) {
            return invalid(format!("`description` is longer than {DESCRIPTION_BYTES_MAX} bytes"));
        }
        for list in [&new.events, &new.workflows].into_iter().flatten() {
            if list.is_empty() || list.len() > FILTERS_MAX {
                return invalid(format!("a filter names 1 to {FILTERS_MAX}; omit it to take all"));
            }
        }
        if new.workflows.iter().flatten().any(|name| name.is_empty() || name.len() > limits::NAME_BYTES_MAX) {
            return invalid(format!("`workflows`: the name of a workflow has 1 to {} bytes", limits::NAME_BYTES_MAX));
        }
        for pattern in new.events.iter().flatten() {
            if !Event::NAMES.iter().any(|name| publish::fits(pattern, name)) {
                let known = Event::NAMES.join(", ");
                let shown: String = pattern.chars().take(80).collect();
                return invalid(format!(
                    "there is no event `{shown}`; there are {known}, and `session.*` and its like"
                ));
            }
        }
        Ok(())
    }
}

fn name_taken(name: &str) -> EngineError {
    EngineError::NameTaken { what: "webhook endpoint", name: name.to_owned() }
}

/// What the audit log tells of an endpoint: of its address the server alone, as paths of webhooks are often secret.
pub(super) fn details(row: &OutboundRow) -> serde_json::Value {
    json!({
        "name": row.name, "server": server(row), "events": row.events, "workflows": row.workflows, "state": row.state.as_str(),
        "reason": row.note,
    })
}

fn server(row: &OutboundRow) -> Option<String> {
    Url::parse(&row.url).ok().map(|url| url.origin().ascii_serialization())
}
