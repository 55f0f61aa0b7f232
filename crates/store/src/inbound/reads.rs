use interlock_core::ids::{InboundId, TenantId};
use interlock_core::time::Timestamp;

use super::{DeliveryRecord, DeliveryRef, DeliveryRow, InboundRow, sql};
use crate::error::{CorruptRow, ReadError};
use crate::secrets::secrets;
use crate::store::Store;
use crate::value::{Row, args};

impl Store {
    pub async fn inbound_endpoints(
        &self,
        tenant: TenantId,
        after: &str,
        limit: usize,
    ) -> Result<Vec<InboundRow>, ReadError> {
        self.every(&sql::INBOUNDS, args![tenant, after, limit], inbound).await
    }

    /// The endpoint at this address, whosever it is: a sender names no tenant.
    pub async fn inbound_endpoint(&self, id: InboundId) -> Result<Option<InboundRow>, ReadError> {
        self.found(&sql::INBOUND_GET, args![id], inbound).await
    }

    pub async fn inbound_named(&self, tenant: TenantId, name: &str) -> Result<Option<InboundRow>, ReadError> {
        self.found(&sql::INBOUND_NAMED, args![tenant, name], inbound).await
    }

    pub async fn delivery(&self, at: &DeliveryRef) -> Result<Option<DeliveryRow>, ReadError> {
        self.found(&sql::DELIVERY_GET, args![at.tenant, at.endpoint, &at.key], |mut row| delivery(&mut row)).await
    }

    /// Deliveries that are due and not finished.
    pub async fn due_deliveries(&self, now: Timestamp, limit: usize) -> Result<Vec<DeliveryRow>, ReadError> {
        self.readable(&sql::DELIVERIES_DUE, limit, |limit| args![now, limit], |mut row| delivery(&mut row)).await
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
        self.every(&sql::DELIVERIES, values, |mut row| {
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
        secret_by: row.opt_text("secret_by")?,
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
