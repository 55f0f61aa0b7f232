//! Carries out a [`TriggerOp`] inside a lane's transaction.

use interlock_core::ids::TenantId;
use interlock_core::json::Hash;
use interlock_core::limits;
use interlock_core::state::IdempotencyState;
use interlock_core::time::Timestamp;

use crate::db::Db;
use crate::error::DbError;
use crate::inbound::{self, DeliveryRef, DeliveryRow, InboundRow};
use crate::op::OpAnswer;
use crate::outbound::{self, NewMessage, OutboundRow, destination};
use crate::outbox;
use crate::schedules::{self, ScheduleRow, SlotRow};
use crate::secrets::Secrets;
use crate::sql::{Stmt, side};
use crate::triggers::TriggerOp;
use crate::value::{Value, args};

pub(crate) async fn apply<D: Db>(db: &D, op: &TriggerOp) -> Result<OpAnswer, DbError> {
    match op {
        TriggerOp::AddSchedule(row) => stored(db, &schedules::sql::SCHEDULE_ADD, new_schedule(row)).await,
        TriggerOp::ChangeSchedule { row, slots } => change_schedule(db, row, slots).await,
        TriggerOp::RemoveSchedule { tenant, schedule } => {
            db.execute(&schedules::sql::SCHEDULE_SLOTS_REMOVE, args![*tenant, *schedule]).await?;
            changed(db, &schedules::sql::SCHEDULE_REMOVE, args![*tenant, *schedule]).await
        }
        TriggerOp::AddInbound(row) => stored(db, &inbound::sql::INBOUND_ADD, new_inbound(row)).await,
        TriggerOp::ChangeInbound(row) => {
            let mut values = args![row.header.as_ref(), row.secondary, row.paused];
            values.extend(secret_values(&row.secrets));
            values.extend(args![row.tenant, row.id]);
            changed(db, &inbound::sql::INBOUND_CHANGE, values).await
        }
        TriggerOp::RemoveInbound { tenant, endpoint } => {
            db.execute(&inbound::sql::INBOUND_DELIVERIES_REMOVE, args![*tenant, *endpoint]).await?;
            db.execute(&inbound::sql::INBOUND_FINGERPRINTS_REMOVE, args![*tenant, *endpoint]).await?;
            changed(db, &inbound::sql::INBOUND_REMOVE, args![*tenant, *endpoint]).await
        }
        TriggerOp::BeginDelivery { delivery, source, request_hash, fingerprint, now, lock_until } => {
            let at = &delivery.at;
            // A lost server's record must outlive every attempt to take it over.
            let expires_at = *now + limits::IDEMPOTENCY_COMPLETED_TTL;
            let values =
                args![at.tenant, at.client(), &at.key, source.as_str(), *request_hash, *now, expires_at, *lock_until];
            if db.execute(&inbound::sql::DELIVERY_RECORD, values).await? == 1 {
                return begin(db, delivery, *fingerprint, *lock_until).await;
            }
            let answer = retake(db, at, Some(*request_hash), Span { now: *now, lock_until: *lock_until }).await?;
            if matches!(answer, OpAnswer::Begun(_)) {
                insert(db, delivery, *lock_until).await?;
            }
            Ok(answer)
        }
        TriggerOp::RetakeDelivery { at, now, lock_until } => {
            let answer = retake(db, at, None, Span { now: *now, lock_until: *lock_until }).await?;
            let retry_at = match answer {
                OpAnswer::Begun(_) => Some(*lock_until),
                OpAnswer::InFlight => return Ok(answer),
                _ => None,
            };
            db.execute(&inbound::sql::DELIVERY_RETRY_AT, args![retry_at, at.tenant, at.endpoint, &at.key]).await?;
            Ok(answer)
        }
        TriggerOp::FinishDelivery { at, attempt, state, response, error, now, expires_at, retry_at } => {
            let values = args![
                state.as_str(),
                response.as_ref(),
                error.as_ref(),
                *now,
                *expires_at,
                at.tenant,
                at.client(),
                &at.key,
                *attempt
            ];
            if db.execute(&inbound::sql::DELIVERY_FINISH, values).await? == 0 {
                return Ok(OpAnswer::Gone);
            }
            db.execute(&inbound::sql::DELIVERY_RETRY_AT, args![*retry_at, at.tenant, at.endpoint, &at.key]).await?;
            Ok(OpAnswer::Done)
        }
        TriggerOp::AddOutbound(row) => stored(db, &outbound::sql::OUTBOUND_ADD, new_outbound(row)?).await,
        TriggerOp::ChangeOutbound(row) => {
            let mut values =
                args![&row.url, row.description.as_ref(), list(row.events.as_ref())?, list(row.workflows.as_ref())?];
            values.extend(secret_values(&row.secrets));
            values.extend(args![row.state.as_str(), row.note.as_ref(), row.failing_since, row.tenant, row.id]);
            let answer = changed(db, &outbound::sql::OUTBOUND_CHANGE, values).await?;
            db.execute(&outbound::sql::OUTBOUND_SKIP, args![row.fed_to, row.tenant, row.id]).await?;
            Ok(answer)
        }
        TriggerOp::RemoveOutbound { tenant, endpoint, at } => {
            let answer = changed(db, &outbound::sql::OUTBOUND_REMOVE, args![*tenant, *endpoint]).await?;
            let values = args![*at, *tenant, destination(*endpoint)];
            db.execute(&outbound::sql::OUTBOUND_MESSAGES_END, values).await?;
            Ok(answer)
        }
        TriggerOp::Publish { tenant, endpoint, from, to, messages, at } => {
            let moved = db.execute(&outbound::sql::OUTBOUND_FEED, args![*to, *at, *tenant, *endpoint, *from]).await?;
            if moved == 0 {
                return Ok(OpAnswer::Gone);
            }
            queue(db, *tenant, &destination(*endpoint), messages, *at).await
        }
        TriggerOp::Replay { tenant, endpoint, messages, at } => {
            queue(db, *tenant, &destination(*endpoint), messages, *at).await
        }
        TriggerOp::ReplayDead { tenant, ids, at } => {
            let mut queued = 0;
            for id in ids {
                queued += db.execute(&outbox::sql::OUTBOX_REPLAY, args![*at, *tenant, *id]).await?;
            }
            Ok(OpAnswer::Count(queued))
        }
        TriggerOp::TakeMessage { tenant, id, attempts, now, until } => {
            changed(db, &outbox::sql::OUTBOX_TAKE, args![*until, *tenant, *id, *attempts, *now]).await
        }
        TriggerOp::LogAttempt { tenant, endpoint, message, attempt } => {
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
            db.execute(&outbound::sql::ATTEMPT_INSERT, values).await?;
            if attempt.error.is_some() {
                changed(db, &outbound::sql::OUTBOUND_FAILING, args![attempt.at, *tenant, *endpoint]).await
            } else {
                changed(db, &outbound::sql::OUTBOUND_WELL, args![*tenant, *endpoint]).await
            }
        }
        TriggerOp::DisableOutbound { tenant, endpoint, note } => {
            changed(db, &outbound::sql::OUTBOUND_DISABLE, args![note, *tenant, *endpoint]).await
        }
    }
}

/// The delivery of a signal that was stored just now.
pub(crate) async fn begin_signal<D: Db>(db: &D, delivery: &DeliveryRow, lock_until: Timestamp) -> Result<(), DbError> {
    let (at, now) = (&delivery.at, delivery.received_at);
    let hash = Hash::of(delivery.payload.as_str().as_bytes());
    let expires_at = now + limits::IDEMPOTENCY_COMPLETED_TTL;
    let values = args![at.tenant, at.client(), &at.key, "signal", hash, now, expires_at, lock_until];
    db.execute(&inbound::sql::DELIVERY_RECORD, values).await?;
    insert(db, delivery, lock_until).await
}

async fn stored<D: Db>(db: &D, stmt: &'static Stmt, values: Vec<Value>) -> Result<OpAnswer, DbError> {
    let rows = db.execute(stmt, values).await?;
    Ok(if rows == 1 { OpAnswer::Stored } else { OpAnswer::Duplicate })
}

async fn changed<D: Db>(db: &D, stmt: &'static Stmt, values: Vec<Value>) -> Result<OpAnswer, DbError> {
    let rows = db.execute(stmt, values).await?;
    Ok(if rows == 1 { OpAnswer::Done } else { OpAnswer::Gone })
}

async fn change_schedule<D: Db>(db: &D, row: &ScheduleRow, slots: &[SlotRow]) -> Result<OpAnswer, DbError> {
    let values = args![
        &row.spec.workflow,
        &row.spec.cron,
        &row.spec.timezone,
        row.spec.dst.as_str(),
        row.spec.overlap.as_str(),
        row.spec.catch_up,
        row.spec.jitter,
        &row.spec.inputs,
        &row.spec.workspace,
        row.spec.paused,
        row.note.as_ref(),
        row.done_at,
        row.next_at,
        row.last_run,
        row.updated_at,
        row.tenant,
        row.id,
        row.revision
    ];
    if db.execute(&schedules::sql::SCHEDULE_CHANGE, values).await? == 0 {
        return Ok(OpAnswer::Gone);
    }
    for slot in slots {
        let values =
            args![row.tenant, row.id, slot.slot_at, slot.state.as_str(), slot.run, slot.note.as_ref(), slot.at];
        db.execute(&schedules::sql::SLOT_PUT, values).await?;
    }
    Ok(OpAnswer::Done)
}

fn new_schedule(row: &ScheduleRow) -> Vec<Value> {
    args![
        row.tenant,
        row.id,
        &row.spec.name,
        &row.spec.workflow,
        row.spec.origin.as_str(),
        &row.spec.cron,
        &row.spec.timezone,
        row.spec.dst.as_str(),
        row.spec.overlap.as_str(),
        row.spec.catch_up,
        row.spec.jitter,
        &row.spec.inputs,
        &row.spec.workspace,
        row.spec.paused,
        row.note.as_ref(),
        row.done_at,
        row.next_at,
        row.last_run,
        row.revision,
        row.created_at,
        row.created_by.as_ref(),
        row.updated_at
    ]
}

fn secret_values(secrets: &Secrets) -> Vec<Value> {
    let (previous, until) = secrets.previous.as_ref().map(|(secret, until)| (secret, *until)).unzip();
    args![&secrets.current, previous, until]
}

fn new_inbound(row: &InboundRow) -> Vec<Value> {
    let mut values =
        args![row.tenant, row.id, &row.name, row.source.as_str(), row.header.as_ref(), row.secondary, row.paused];
    values.extend(secret_values(&row.secrets));
    values.extend(args![row.created_at, row.created_by.as_ref()]);
    values
}

fn list(names: Option<&Vec<String>>) -> Result<Option<String>, DbError> {
    names.map(serde_json::to_string).transpose().map_err(|error| DbError::Other(error.to_string()))
}

fn new_outbound(row: &OutboundRow) -> Result<Vec<Value>, DbError> {
    let mut values = args![row.tenant, row.id, &row.url, row.description.as_ref()];
    values.extend(args![list(row.events.as_ref())?, list(row.workflows.as_ref())?]);
    values.extend(secret_values(&row.secrets));
    values.extend(args![row.state.as_str(), row.note.as_ref(), row.fed_to, row.fed_at, row.failing_since]);
    values.extend(args![row.created_at, row.created_by.as_ref()]);
    Ok(values)
}

/// The key is new; what it is about may still have come a moment ago.
async fn begin<D: Db>(
    db: &D,
    delivery: &DeliveryRow,
    fingerprint: Option<(Hash, Timestamp)>,
    lock_until: Timestamp,
) -> Result<OpAnswer, DbError> {
    let at = &delivery.at;
    insert(db, delivery, lock_until).await?;
    if let Some((fingerprint, since)) = fingerprint {
        let values = args![at.tenant, at.endpoint, fingerprint, &at.key, delivery.received_at, since];
        if db.execute(&inbound::sql::FINGERPRINT_PUT, values).await? == 0 {
            return Ok(OpAnswer::Recent);
        }
    }
    Ok(OpAnswer::Begun(1))
}

async fn insert<D: Db>(db: &D, delivery: &DeliveryRow, lock_until: Timestamp) -> Result<(), DbError> {
    let at = &delivery.at;
    let values =
        args![at.tenant, at.endpoint, &at.key, &delivery.event, &delivery.payload, delivery.received_at, lock_until];
    db.execute(&inbound::sql::DELIVERY_INSERT, values).await?;
    Ok(())
}

#[derive(Clone, Copy)]
struct Span {
    now: Timestamp,
    lock_until: Timestamp,
}

/// What stands under the key already, and whether it may be taken over.
async fn retake<D: Db>(db: &D, at: &DeliveryRef, asked: Option<Hash>, span: Span) -> Result<OpAnswer, DbError> {
    let mut rows = db.query(&inbound::sql::DELIVERY_STANDING, args![at.tenant, at.client(), &at.key]).await?;
    let Some(row) = rows.first_mut() else { return Ok(OpAnswer::Gone) };
    let state: IdempotencyState = row.name("state")?;
    let attempts: u32 = row.num("attempts")?;
    let request_hash = row.hash("request_hash")?;
    let expires_at = row.time("expires_at")?;
    let locked = row.opt_time("lock_expires_at")?.is_some_and(|until| until > span.now);
    if asked.is_some_and(|asked| asked != request_hash) {
        return Ok(OpAnswer::Mismatch);
    }
    let next = match state {
        IdempotencyState::Completed => return Ok(OpAnswer::Finished),
        IdempotencyState::Processing if locked => return Ok(OpAnswer::InFlight),
        // An old failure is forgotten: the delivery may be tried afresh.
        IdempotencyState::Failed if expires_at <= span.now => 1,
        _ if attempts >= limits::IDEMPOTENCY_ATTEMPTS_MAX => return Ok(OpAnswer::Spent),
        _ => attempts + 1,
    };
    let values = args![next, span.now, span.lock_until, at.tenant, at.client(), &at.key, attempts];
    let taken = db.execute(&inbound::sql::DELIVERY_RETAKE, values).await?;
    Ok(if taken == 1 { OpAnswer::Begun(next) } else { OpAnswer::InFlight })
}

async fn queue<D: Db>(
    db: &D,
    tenant: TenantId,
    destination: &str,
    messages: &[NewMessage],
    at: Timestamp,
) -> Result<OpAnswer, DbError> {
    for message in messages {
        let values = args![tenant, message.id, message.run, destination, &message.payload, at, message.place];
        db.execute(&side::OUTBOX_INSERT, values).await?;
    }
    Ok(OpAnswer::Done)
}
