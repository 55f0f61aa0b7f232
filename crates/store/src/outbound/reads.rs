use std::ops::RangeInclusive;

use interlock_core::ids::{OutboundId, OutboxId, TenantId};
use interlock_core::time::{Millis, Timestamp};

use super::{AttemptRow, MessageRow, OutboundRow, destination, sql};
use crate::error::{CorruptRow, ReadError};
use crate::secrets::secrets;
use crate::store::Store;
use crate::value::{Row, Value, args, first_id_at};

impl Store {
    pub async fn outbound_endpoint(&self, tenant: TenantId, id: OutboundId) -> Result<Option<OutboundRow>, ReadError> {
        self.found(&sql::OUTBOUND_GET, args![tenant, id], outbound).await
    }

    pub async fn outbound_endpoint_named(
        &self,
        tenant: TenantId,
        name: &str,
    ) -> Result<Option<OutboundRow>, ReadError> {
        self.found(&sql::OUTBOUND_NAMED, args![tenant, name], outbound).await
    }

    pub async fn outbound_endpoints(&self, tenant: TenantId, limit: usize) -> Result<Vec<OutboundRow>, ReadError> {
        self.every(&sql::OUTBOUNDS, args![tenant, limit], outbound).await
    }

    /// Every tenant's endpoints that get messages.
    pub async fn fed_endpoints(&self) -> Result<Vec<OutboundRow>, ReadError> {
        self.readable(&sql::OUTBOUNDS_FED, 0, |_| vec![], outbound).await
    }

    /// An endpoint's messages, newest first, before one of them.
    pub async fn messages(
        &self,
        tenant: TenantId,
        endpoint: OutboundId,
        before: Option<OutboxId>,
        limit: usize,
    ) -> Result<Vec<MessageRow>, ReadError> {
        let before = before.map_or(Value::Id([0xff; 16]), Value::from);
        let mut values = args![tenant, destination(endpoint)];
        values.push(before);
        values.push(limit.into());
        self.every(&sql::MESSAGES, values, message).await
    }

    pub async fn message(
        &self,
        tenant: TenantId,
        endpoint: OutboundId,
        id: OutboxId,
    ) -> Result<Option<MessageRow>, ReadError> {
        self.found(&sql::MESSAGE_GET, args![tenant, id, destination(endpoint)], message).await
    }

    /// An endpoint's messages that were made in a span of time, oldest first.
    pub async fn messages_between(
        &self,
        tenant: TenantId,
        endpoint: OutboundId,
        span: std::ops::Range<Timestamp>,
        limit: usize,
    ) -> Result<Vec<MessageRow>, ReadError> {
        let mut values = args![tenant, destination(endpoint)];
        values.extend([first_id_at(span.start), first_id_at(span.end), limit.into()]);
        self.every(&sql::MESSAGES_BETWEEN, values, message).await
    }

    /// What was tried for each of an endpoint's messages from one to another, by message.
    pub async fn attempts(
        &self,
        tenant: TenantId,
        endpoint: OutboundId,
        messages: RangeInclusive<OutboxId>,
    ) -> Result<Vec<(OutboxId, AttemptRow)>, ReadError> {
        let values = args![tenant, destination(endpoint), *messages.start(), *messages.end()];
        self.every(&sql::ATTEMPTS, values, |mut row| {
            let message = row.id("outbox_id")?;
            let attempt = AttemptRow {
                attempt: row.num("attempt")?,
                at: row.time("at")?,
                duration: Millis(row.num("duration_ms")?),
                status: row.opt_num("status")?,
                error: row.opt_text("error")?,
                excerpt: row.opt_text("excerpt")?,
            };
            Ok((message, attempt))
        })
        .await
    }
}

fn outbound(mut row: Row) -> Result<OutboundRow, CorruptRow> {
    Ok(OutboundRow {
        tenant: row.id("tenant_id")?,
        id: row.id("endpoint_id")?,
        url: row.text("url")?,
        description: row.opt_text("description")?,
        events: row.opt_decoded("events")?,
        workflows: row.opt_decoded("workflows")?,
        secrets: secrets(&mut row)?,
        state: row.name("state")?,
        note: row.opt_text("note")?,
        fed_to: row.num("fed_to")?,
        fed_at: row.time("fed_at")?,
        failing_since: row.opt_time("failing_since")?,
        created_at: row.time("created_at")?,
        created_by: row.opt_text("created_by")?,
        name: row.opt_text("name")?,
    })
}

fn message(mut row: Row) -> Result<MessageRow, CorruptRow> {
    Ok(MessageRow {
        id: row.id("outbox_id")?,
        run: row.id("run_id")?,
        payload: row.json("payload")?,
        created_at: row.time("created_at")?,
        attempts: row.num("attempts")?,
        next_at: row.time("next_at")?,
        delivered_at: row.opt_time("delivered_at")?,
        dead_at: row.opt_time("dead_at")?,
        last_error: row.opt_text("last_error")?,
    })
}
