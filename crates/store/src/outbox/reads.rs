use interlock_core::ids::{OutboxId, TenantId};
use interlock_core::time::Timestamp;
use uuid::Uuid;

use super::{DeadLetter, OutboxDestination, OutboxMessage, sql};
use crate::error::{CorruptRow, DbError, ReadError};
use crate::sqlite::SqliteDb;
use crate::store::{Reads, Store};
use crate::value::{Row, Value, args};

impl Store {
    /// Where messages wait to be sent, in the order of their keys, behind one of them.
    pub async fn outbox_destinations(
        &self,
        after: Option<&(TenantId, String)>,
        limit: usize,
    ) -> Result<Vec<OutboxDestination>, ReadError> {
        let (tenant, destination) = after.cloned().unwrap_or((TenantId(Uuid::nil()), String::new()));
        match &self.inner.reads {
            Reads::Sqlite(reads) => reads.with(move |db| destinations(db, tenant, destination, limit)).await,
            Reads::Postgres(..) => {
                let rows = self.rows(&sql::OUTBOX_DESTINATIONS, args![tenant, destination, limit]).await?;
                Ok(self.readable_part(&sql::OUTBOX_DESTINATIONS, rows, outbox_destination))
            }
        }
    }

    /// A tenant's messages that were given up, newest first, before one of them.
    pub async fn dead_letters(
        &self,
        tenant: TenantId,
        before: Option<OutboxId>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, ReadError> {
        let mut values = args![tenant];
        values.push(before.map_or(Value::Id([0xff; 16]), Value::from));
        values.extend(args![limit]);
        let rows = self.rows(&sql::OUTBOX_DEAD, values).await?;
        Ok(rows.into_iter().map(dead_letter).collect::<Result<_, _>>()?)
    }

    /// Messages of these destinations that are due, so many of each at most; of each run the first only.
    pub async fn due_messages(
        &self,
        wanted: &[(TenantId, String)],
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<OutboxMessage>, ReadError> {
        let query =
            |(tenant, destination): &(TenantId, String)| (&sql::OUTBOX_DUE_AT, args![*tenant, destination, now, limit]);
        let rows = self.rows_many(wanted.iter().map(query).collect()).await?;
        Ok(self.readable_part(&sql::OUTBOX_DUE_AT, rows.into_iter().flatten(), outbox_message))
    }

    /// Messages that are due, the first of each run and destination only: later ones wait for it.
    pub async fn due_outbox(&self, now: Timestamp, limit: usize) -> Result<Vec<OutboxMessage>, ReadError> {
        self.readable(&sql::OUTBOX_DUE, limit, |limit| args![now, limit], outbox_message).await
    }

    /// When the next message is due.
    pub async fn next_outbox(&self) -> Result<Option<Timestamp>, ReadError> {
        let mut rows = self.rows(&sql::NEXT_OUTBOX, vec![]).await?;
        Ok(rows.first_mut().map(|row| row.time("next_at")).transpose()?)
    }
}

pub(super) fn outbox_message(mut row: Row) -> Result<OutboxMessage, CorruptRow> {
    Ok(OutboxMessage {
        tenant: row.id("tenant_id")?,
        id: row.id("outbox_id")?,
        run: row.id("run_id")?,
        destination: row.text("destination")?,
        payload: row.json("payload")?,
        created_at: row.time("created_at")?,
        attempts: row.num("attempts")?,
    })
}

fn dead_letter(mut row: Row) -> Result<DeadLetter, CorruptRow> {
    Ok(DeadLetter {
        id: row.id("outbox_id")?,
        run: row.id("run_id")?,
        destination: row.text("destination")?,
        created_at: row.time("created_at")?,
        attempts: row.num("attempts")?,
        dead_at: row.time("dead_at")?,
        error: row.opt_text("last_error")?,
    })
}

fn outbox_destination(mut row: Row) -> Result<OutboxDestination, CorruptRow> {
    Ok(OutboxDestination {
        tenant: row.id("tenant_id")?,
        destination: row.text("destination")?,
        next_at: row.time("next_at")?,
    })
}

/// The loose scan: from one destination to the next.
fn destinations(
    db: &SqliteDb<'_>,
    mut tenant: TenantId,
    mut destination: String,
    limit: usize,
) -> Result<Vec<OutboxDestination>, DbError> {
    let mut found = Vec::new();
    while found.len() < limit {
        let values = args![tenant, &destination];
        let Some(row) = db.query_now(&sql::OUTBOX_DESTINATION_NEXT, &values)?.pop() else { break };
        let next = outbox_destination(row)?;
        (tenant, destination) = (next.tenant, next.destination.clone());
        found.push(next);
    }
    Ok(found)
}
