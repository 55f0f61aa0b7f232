//! Schedules and webhooks as they stand, and what of them is due.

use interlock_core::ids::{InboundId, OutboundId, OutboxId, ScheduleId, TenantId};
use interlock_core::json::Hash;
use interlock_core::time::{Millis, Timestamp};

use crate::apply_op::first_id_at;
use crate::error::{CorruptRow, ReadError};
use crate::sql::{Stmt, triggers};
use crate::store::Store;
use crate::triggers::{
    AttemptRow, DeliveryRecord, DeliveryRef, DeliveryRow, InboundRow, MessageRow, OutboundRow, ScheduleRow,
    ScheduleSpec, Secrets, SlotRow, destination,
};
use crate::value::{Row, Value, args};

impl Store {
    pub async fn schedule(&self, tenant: TenantId, id: ScheduleId) -> Result<Option<ScheduleRow>, ReadError> {
        self.found(&triggers::SCHEDULE_GET, args![tenant, id], schedule).await
    }

    pub async fn schedule_named(&self, tenant: TenantId, name: &str) -> Result<Option<ScheduleRow>, ReadError> {
        self.found(&triggers::SCHEDULE_NAMED, args![tenant, name], schedule).await
    }

    /// By name, after a name.
    pub async fn schedules(&self, tenant: TenantId, after: &str, limit: usize) -> Result<Vec<ScheduleRow>, ReadError> {
        self.every(&triggers::SCHEDULES, args![tenant, after, limit], schedule).await
    }

    pub async fn due_schedules(&self, now: Timestamp, limit: usize) -> Result<Vec<ScheduleRow>, ReadError> {
        self.readable(&triggers::SCHEDULES_DUE, limit, |limit| args![now, limit], schedule).await
    }

    /// The first slot after an instant.
    pub async fn next_schedule(&self, after: Timestamp) -> Result<Option<Timestamp>, ReadError> {
        self.found(&triggers::SCHEDULES_NEXT, args![after], |mut row| row.time("next_at")).await
    }

    /// Newest first.
    pub async fn slots(&self, tenant: TenantId, id: ScheduleId, limit: usize) -> Result<Vec<SlotRow>, ReadError> {
        self.every(&triggers::SLOTS, args![tenant, id, limit], slot).await
    }

    /// Those that wait, oldest first.
    pub async fn queued_slots(
        &self,
        tenant: TenantId,
        id: ScheduleId,
        limit: usize,
    ) -> Result<Vec<SlotRow>, ReadError> {
        self.every(&triggers::SLOTS_QUEUED, args![tenant, id, limit], slot).await
    }

    pub async fn inbound_endpoints(
        &self,
        tenant: TenantId,
        after: &str,
        limit: usize,
    ) -> Result<Vec<InboundRow>, ReadError> {
        self.every(&triggers::INBOUNDS, args![tenant, after, limit], inbound).await
    }

    /// The endpoint at this address, whosever it is: a sender names no tenant.
    pub async fn inbound_endpoint(&self, id: InboundId) -> Result<Option<InboundRow>, ReadError> {
        self.found(&triggers::INBOUND_GET, args![id], inbound).await
    }

    pub async fn inbound_named(&self, tenant: TenantId, name: &str) -> Result<Option<InboundRow>, ReadError> {
        self.found(&triggers::INBOUND_NAMED, args![tenant, name], inbound).await
    }

    pub async fn delivery(&self, at: &DeliveryRef) -> Result<Option<DeliveryRow>, ReadError> {
        self.found(&triggers::DELIVERY_GET, args![at.tenant, at.endpoint, &at.key], |mut row| delivery(&mut row)).await
    }

    /// Deliveries that nobody has finished.
    pub async fn due_deliveries(&self, now: Timestamp, limit: usize) -> Result<Vec<DeliveryRow>, ReadError> {
        self.readable(&triggers::DELIVERIES_DUE, limit, |limit| args![now, limit], |mut row| delivery(&mut row)).await
    }

    /// Newest first, before an instant.
    pub async fn deliveries(
        &self,
        tenant: TenantId,
        endpoint: InboundId,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<DeliveryRecord>, ReadError> {
        let values = args![endpoint.to_string(), tenant, endpoint, before, limit];
        self.every(&triggers::DELIVERIES, values, |mut row| {
            Ok(DeliveryRecord {
                delivery: delivery(&mut row)?,
                state: row.name("state")?,
                attempts: row.num("attempts")?,
                response: row.opt_json("response")?,
                error: row.opt_text("error")?,
            })
        })
        .await
    }

    /// The key of the delivery that was about the same.
    pub async fn fingerprint_holder(
        &self,
        tenant: TenantId,
        endpoint: InboundId,
        fingerprint: Hash,
    ) -> Result<Option<String>, ReadError> {
        let values = args![tenant, endpoint, fingerprint];
        self.found(&triggers::FINGERPRINT_GET, values, |mut row| row.text("key")).await
    }

    pub async fn outbound_endpoint(&self, tenant: TenantId, id: OutboundId) -> Result<Option<OutboundRow>, ReadError> {
        self.found(&triggers::OUTBOUND_GET, args![tenant, id], outbound).await
    }

    pub async fn outbound_endpoints(&self, tenant: TenantId, limit: usize) -> Result<Vec<OutboundRow>, ReadError> {
        self.every(&triggers::OUTBOUNDS, args![tenant, limit], outbound).await
    }

    /// Every tenant's endpoints that get messages.
    pub async fn fed_endpoints(&self) -> Result<Vec<OutboundRow>, ReadError> {
        self.readable(&triggers::OUTBOUNDS_FED, 0, |_| vec![], outbound).await
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
        self.every(&triggers::MESSAGES, values, message).await
    }

    pub async fn message(
        &self,
        tenant: TenantId,
        endpoint: OutboundId,
        id: OutboxId,
    ) -> Result<Option<MessageRow>, ReadError> {
        self.found(&triggers::MESSAGE_GET, args![tenant, id, destination(endpoint)], message).await
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
        self.every(&triggers::MESSAGES_BETWEEN, values, message).await
    }

    pub async fn attempts(&self, tenant: TenantId, message: OutboxId) -> Result<Vec<AttemptRow>, ReadError> {
        self.every(&triggers::ATTEMPTS, args![tenant, message], |mut row| {
            Ok(AttemptRow {
                attempt: row.num("attempt")?,
                at: row.time("at")?,
                duration: Millis(row.num("duration_ms")?),
                status: row.opt_num("status")?,
                error: row.opt_text("error")?,
                excerpt: row.opt_text("excerpt")?,
            })
        })
        .await
    }

    async fn found<T>(
        &self,
        stmt: &'static Stmt,
        values: Vec<Value>,
        read: impl FnOnce(Row) -> Result<T, CorruptRow>,
    ) -> Result<Option<T>, ReadError> {
        Ok(self.rows(stmt, values).await?.into_iter().next().map(read).transpose()?)
    }

    async fn every<T>(
        &self,
        stmt: &'static Stmt,
        values: Vec<Value>,
        read: impl FnMut(Row) -> Result<T, CorruptRow>,
    ) -> Result<Vec<T>, ReadError> {
        Ok(self.rows(stmt, values).await?.into_iter().map(read).collect::<Result<_, _>>()?)
    }
}

fn schedule(mut row: Row) -> Result<ScheduleRow, CorruptRow> {
    Ok(ScheduleRow {
        tenant: row.id("tenant_id")?,
        id: row.id("schedule_id")?,
        spec: ScheduleSpec {
            name: row.text("name")?,
            workflow: row.text("workflow")?,
            origin: row.name("origin")?,
            cron: row.text("cron")?,
            timezone: row.text("timezone")?,
            dst: row.name("dst")?,
            overlap: row.name("overlap")?,
            catch_up: Millis(row.num("catch_up_ms")?),
            jitter: Millis(row.num("jitter_ms")?),
            inputs: row.json("inputs")?,
            workspace: row.text("workspace")?,
            paused: row.flag("paused")?,
        },
        note: row.opt_text("note")?,
        done_at: row.time("done_at")?,
        next_at: row.opt_time("next_at")?,
        last_run: row.opt_id("last_run_id")?,
        revision: row.num("revision")?,
        created_at: row.time("created_at")?,
        created_by: row.opt_text("created_by")?,
        updated_at: row.time("updated_at")?,
    })
}

fn slot(mut row: Row) -> Result<SlotRow, CorruptRow> {
    Ok(SlotRow {
        slot_at: row.time("slot_at")?,
        state: row.name("state")?,
        run: row.opt_id("run_id")?,
        note: row.opt_text("note")?,
        at: row.time("at")?,
    })
}

fn secrets(row: &mut Row) -> Result<Secrets, CorruptRow> {
    let current = row.text("secret")?;
    let (previous, until) = (row.opt_text("previous_secret")?, row.opt_time("previous_until")?);
    Ok(Secrets { current, previous: previous.zip(until) })
}

fn inbound(mut row: Row) -> Result<InboundRow, CorruptRow> {
    Ok(InboundRow {
        tenant: row.id("tenant_id")?,
        id: row.id("endpoint_id")?,
        name: row.text("name")?,
        source: row.name("source")?,
        header: row.opt_text("header")?,
        secondary: row.flag("secondary")?,
        paused: row.flag("paused")?,
        secrets: secrets(&mut row)?,
        created_at: row.time("created_at")?,
        created_by: row.opt_text("created_by")?,
    })
}

fn delivery(row: &mut Row) -> Result<DeliveryRow, CorruptRow> {
    Ok(DeliveryRow {
        at: DeliveryRef { tenant: row.id("tenant_id")?, endpoint: row.id("endpoint_id")?, key: row.text("key")? },
        event: row.text("event")?,
        payload: row.json("payload")?,
        received_at: row.time("received_at")?,
        retry_at: row.opt_time("retry_at")?,
    })
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
