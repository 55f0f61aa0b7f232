use interlock_core::ids::{OutboundId, OutboxId, TenantId};
use interlock_core::time::Timestamp;

use super::{AttemptRow, NewMessage, OutboundRow, destination, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::secrets::secret_values;
use crate::sql::side;
use crate::value::{Value, args};
use crate::write::{Changed, Stored, Write, boxed, changed, json_list, stored};

#[derive(Debug, Clone)]
pub struct AddOutbound(pub OutboundRow);

impl Write for AddOutbound {
    type Answer = Stored;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Stored, DbError> {
        stored(db, &sql::OUTBOUND_ADD, new_outbound(&self.0)?).await
    }
}

/// Everything but identity, of an endpoint whose secret and state are still as they were read; the feed's position only
/// forward. [`Changed::Gone`] where another has changed them since, or it is not there.
#[derive(Debug, Clone)]
pub struct ChangeOutbound {
    pub read: OutboundRow,
    pub row: OutboundRow,
}

impl Write for ChangeOutbound {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let Self { read, row } = self;
        let mut values =
            args![&row.url, row.description.as_ref(), names(row.events.as_ref())?, names(row.workflows.as_ref())?];
        values.extend(secret_values(&row.secrets));
        values.extend(args![row.state.as_str(), row.note.as_ref(), row.failing_since, row.tenant, row.id]);
        values.extend(args![&read.secrets.current, read.state.as_str()]);
        let answer = changed(db, &sql::OUTBOUND_CHANGE, values).await?;
        if answer == Changed::Done {
            db.execute(&sql::OUTBOUND_SKIP, args![row.fed_to, row.tenant, row.id]).await?;
        }
        Ok(answer)
    }
}

/// Messages that are still on their way end with it.
#[derive(Debug, Clone, Copy)]
pub struct RemoveOutbound {
    pub tenant: TenantId,
    pub endpoint: OutboundId,
    pub at: Timestamp,
}

impl Write for RemoveOutbound {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let answer = changed(db, &sql::OUTBOUND_REMOVE, args![self.tenant, self.endpoint]).await?;
        let values = args![self.at, self.tenant, destination(self.endpoint)];
        db.execute(&sql::OUTBOUND_MESSAGES_END, values).await?;
        Ok(answer)
    }
}

/// Queues messages and moves the endpoint on in the feed, if it stands where it was read.
#[derive(Debug, Clone)]
pub struct PublishMessages {
    pub tenant: TenantId,
    pub endpoint: OutboundId,
    pub from: u64,
    pub to: u64,
    pub messages: Vec<NewMessage>,
    pub at: Timestamp,
}

impl Write for PublishMessages {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let values = args![self.to, self.at, self.tenant, self.endpoint, self.from];
        if db.execute(&sql::OUTBOUND_FEED, values).await? == 0 {
            return Ok(Changed::Gone);
        }
        queue(db, self.tenant, &destination(self.endpoint), &self.messages, self.at).await?;
        Ok(Changed::Done)
    }
}

/// Queues messages again, under new ids.
#[derive(Debug, Clone)]
pub struct ReplayMessages {
    pub tenant: TenantId,
    pub endpoint: OutboundId,
    pub messages: Vec<NewMessage>,
    pub at: Timestamp,
}

impl Write for ReplayMessages {
    type Answer = ();
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<(), DbError> {
        queue(db, self.tenant, &destination(self.endpoint), &self.messages, self.at).await
    }
}

/// The log of one try, and what it says about the endpoint: [`Changed::Gone`] where that was known.
#[derive(Debug, Clone)]
pub struct LogAttempt {
    pub tenant: TenantId,
    pub endpoint: OutboundId,
    pub message: OutboxId,
    pub attempt: AttemptRow,
}

impl Write for LogAttempt {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let Self { tenant, endpoint, message, attempt } = self;
        let values = args![
            *tenant,
            *message,
            attempt.attempt,
            attempt.at,
            attempt.duration,
            attempt.status.map(u32::from),
            attempt.error.as_ref(),
            attempt.excerpt.as_ref()
        ];
        db.execute(&sql::ATTEMPT_INSERT, values).await?;
        if attempt.error.is_some() {
            changed(db, &sql::OUTBOUND_FAILING, args![attempt.at, *tenant, *endpoint]).await
        } else {
            changed(db, &sql::OUTBOUND_WELL, args![*tenant, *endpoint]).await
        }
    }
}

/// An endpoint that has failed for too long.
#[derive(Debug, Clone)]
pub struct DisableOutbound {
    pub tenant: TenantId,
    pub endpoint: OutboundId,
    pub note: String,
}

impl Write for DisableOutbound {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::OUTBOUND_DISABLE, args![&self.note, self.tenant, self.endpoint]).await
    }
}

fn new_outbound(row: &OutboundRow) -> Result<Vec<Value>, DbError> {
    let mut values = args![row.tenant, row.id, &row.url, row.description.as_ref()];
    values.extend(args![names(row.events.as_ref())?, names(row.workflows.as_ref())?]);
    values.extend(secret_values(&row.secrets));
    values.extend(args![row.state.as_str(), row.note.as_ref(), row.fed_to, row.fed_at, row.failing_since]);
    values.extend(args![row.created_at, row.created_by.as_ref(), row.name.as_ref()]);
    Ok(values)
}

fn names(names: Option<&Vec<String>>) -> Result<Option<String>, DbError> {
    names.map(|names| json_list(names)).transpose()
}

async fn queue<D: Db>(
    db: &D,
    tenant: TenantId,
    destination: &str,
    messages: &[NewMessage],
    at: Timestamp,
) -> Result<(), DbError> {
    for message in messages {
        let values = args![tenant, message.id, message.run, destination, &message.payload, at, message.place];
        db.execute(&side::OUTBOX_INSERT, values).await?;
    }
    Ok(())
}
