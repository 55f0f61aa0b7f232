//! Deliveries that came in: each is processed once, by one server at a time.

use interlock_core::json::{Hash, Json};
use interlock_core::limits;
use interlock_core::state::IdempotencyState;
use interlock_core::time::Timestamp;
use interlock_core::trigger::Source;

use super::{DeliveryRef, DeliveryRow, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::value::args;
use crate::write::{Changed, Write, boxed};

/// Whether a delivery is the caller's to process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryBegun {
    /// It is: its attempt.
    Begun(u32),
    /// It was processed before.
    Finished,
    /// Another request, or another server, is processing it.
    InFlight,
    /// It has failed as often as it may.
    Spent,
    /// The key belongs to another request.
    Mismatch,
    /// Another delivery was about the same a moment ago.
    Recent,
    /// There is no such delivery.
    Gone,
}

/// The first step of every delivery: stores it, or says what became of the one before it.
#[derive(Debug, Clone)]
pub struct BeginDelivery {
    pub delivery: DeliveryRow,
    pub source: Source,
    pub request_hash: Hash,
    /// Deliveries that agree in it since then are one.
    pub fingerprint: Option<(Hash, Timestamp)>,
    /// The instant now, and until when this server alone may process it.
    pub now: Timestamp,
    pub lock_until: Timestamp,
}

impl Write for BeginDelivery {
    type Answer = DeliveryBegun;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<DeliveryBegun, DbError> {
        let Self { delivery, source, request_hash, fingerprint, now, lock_until } = self;
        let at = &delivery.at;
        // A lost server's record must outlive every attempt to take it over.
        let expires_at = *now + limits::IDEMPOTENCY_COMPLETED_TTL;
        let values =
            args![at.tenant, at.client(), &at.key, source.as_str(), *request_hash, *now, expires_at, *lock_until];
        if db.execute(&sql::DELIVERY_RECORD, values).await? == 1 {
            return begin(db, delivery, *fingerprint, *lock_until).await;
        }
        let answer = retake(db, at, Some(*request_hash), Span { now: *now, lock_until: *lock_until }).await?;
        if matches!(answer, DeliveryBegun::Begun(_)) {
            insert(db, delivery, *lock_until).await?;
        }
        Ok(answer)
    }
}

/// Takes over a delivery that was begun and not finished.
#[derive(Debug, Clone)]
pub struct RetakeDelivery {
    pub at: DeliveryRef,
    pub now: Timestamp,
    pub lock_until: Timestamp,
}

impl Write for RetakeDelivery {
    type Answer = DeliveryBegun;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<DeliveryBegun, DbError> {
        let Self { at, now, lock_until } = self;
        let answer = retake(db, at, None, Span { now: *now, lock_until: *lock_until }).await?;
        let retry_at = match answer {
            DeliveryBegun::Begun(_) => Some(*lock_until),
            DeliveryBegun::InFlight => return Ok(answer),
            _ => None,
        };
        db.execute(&sql::DELIVERY_RETRY_AT, args![retry_at, at.tenant, at.endpoint, &at.key]).await?;
        Ok(answer)
    }
}

/// [`Changed::Gone`] where another attempt has taken it over.
#[derive(Debug, Clone)]
pub struct FinishDelivery {
    pub at: DeliveryRef,
    pub attempt: u32,
    pub state: IdempotencyState,
    pub response: Option<Json>,
    pub error: Option<String>,
    pub now: Timestamp,
    pub expires_at: Timestamp,
    pub retry_at: Option<Timestamp>,
}

impl Write for FinishDelivery {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let at = &self.at;
        let values = args![
            self.state.as_str(),
            self.response.as_ref(),
            self.error.as_ref(),
            self.now,
            self.expires_at,
            at.tenant,
            at.client(),
            &at.key,
            self.attempt
        ];
        if db.execute(&sql::DELIVERY_FINISH, values).await? == 0 {
            return Ok(Changed::Gone);
        }
        db.execute(&sql::DELIVERY_RETRY_AT, args![self.retry_at, at.tenant, at.endpoint, &at.key]).await?;
        Ok(Changed::Done)
    }
}

/// The delivery of a signal that was stored just now.
pub(crate) async fn begin_signal<D: Db>(db: &D, delivery: &DeliveryRow, lock_until: Timestamp) -> Result<(), DbError> {
    let (at, now) = (&delivery.at, delivery.received_at);
    let hash = Hash::of(delivery.payload.as_str().as_bytes());
    let expires_at = now + limits::IDEMPOTENCY_COMPLETED_TTL;
    let values = args![at.tenant, at.client(), &at.key, "signal", hash, now, expires_at, lock_until];
    db.execute(&sql::DELIVERY_RECORD, values).await?;
    insert(db, delivery, lock_until).await
}

/// The key is new; what it is about may still have come a moment ago.
async fn begin<D: Db>(
    db: &D,
    delivery: &DeliveryRow,
    fingerprint: Option<(Hash, Timestamp)>,
    lock_until: Timestamp,
) -> Result<DeliveryBegun, DbError> {
    let at = &delivery.at;
    insert(db, delivery, lock_until).await?;
    if let Some((fingerprint, since)) = fingerprint {
        let values = args![at.tenant, at.endpoint, fingerprint, &at.key, delivery.received_at, since];
        if db.execute(&sql::FINGERPRINT_PUT, values).await? == 0 {
            return Ok(DeliveryBegun::Recent);
        }
    }
    Ok(DeliveryBegun::Begun(1))
}

async fn insert<D: Db>(db: &D, delivery: &DeliveryRow, lock_until: Timestamp) -> Result<(), DbError> {
    let at = &delivery.at;
    let values =
        args![at.tenant, at.endpoint, &at.key, &delivery.event, &delivery.payload, delivery.received_at, lock_until];
    db.execute(&sql::DELIVERY_INSERT, values).await?;
    Ok(())
}

#[derive(Clone, Copy)]
struct Span {
    now: Timestamp,
    lock_until: Timestamp,
}

/// What stands under the key already, and whether it may be taken over.
async fn retake<D: Db>(db: &D, at: &DeliveryRef, asked: Option<Hash>, span: Span) -> Result<DeliveryBegun, DbError> {
    let mut rows = db.query(&sql::DELIVERY_STANDING, args![at.tenant, at.client(), &at.key]).await?;
    let Some(row) = rows.first_mut() else { return Ok(DeliveryBegun::Gone) };
    let state: IdempotencyState = row.name("state")?;
    let attempts: u32 = row.num("attempts")?;
    let request_hash = row.hash("request_hash")?;
    let expires_at = row.time("expires_at")?;
    let locked = row.opt_time("lock_expires_at")?.is_some_and(|until| until > span.now);
    if asked.is_some_and(|asked| asked != request_hash) {
        return Ok(DeliveryBegun::Mismatch);
    }
    let next = match state {
        IdempotencyState::Completed => return Ok(DeliveryBegun::Finished),
        IdempotencyState::Processing if locked => return Ok(DeliveryBegun::InFlight),
        // An old failure is forgotten: the delivery may be tried afresh.
        IdempotencyState::Failed if expires_at <= span.now => 1,
        _ if attempts >= limits::IDEMPOTENCY_ATTEMPTS_MAX => return Ok(DeliveryBegun::Spent),
        _ => attempts + 1,
    };
    let values = args![next, span.now, span.lock_until, at.tenant, at.client(), &at.key, attempts];
    let taken = db.execute(&sql::DELIVERY_RETAKE, values).await?;
    Ok(if taken == 1 { DeliveryBegun::Begun(next) } else { DeliveryBegun::InFlight })
}
