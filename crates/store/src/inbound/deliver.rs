//! Deliveries that came in: each is processed once, by one server at a time.

use interlock_core::json::{Hash, Json};
use interlock_core::limits;
use interlock_core::state::IdempotencyState;
use interlock_core::time::Timestamp;
use interlock_core::trigger::Source;

use super::{DeliveryRef, DeliveryRow, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::sql::Stmt;
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
    /// There is no such delivery.
    Gone,
}

/// What a request comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryTaken {
    /// The delivery that it is: an earlier one, where that says the same.
    pub key: String,
    pub begun: DeliveryBegun,
    /// It was stored just now. Else what it says is what the store has.
    pub is_new: bool,
    /// An earlier delivery under another key has said the same.
    pub is_repeat: bool,
}

/// What a delivery says, or is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    pub hash: Hash,
    /// Deliveries that agree in it since then are one.
    pub since: Timestamp,
}

/// Of a sender that signs the body of a delivery and not the headers beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedBody {
    pub body: Fingerprint,
    /// What it is about, where that makes it a repeat too.
    pub about: Option<Fingerprint>,
    /// The key by the body alone.
    pub key: String,
    /// Whether the id is in the body. An id that is not signed names no other body's delivery.
    pub has_id: bool,
    /// An earlier delivery of the same that has started nothing: this one takes its place.
    pub instead_of: Option<String>,
}

/// The first step of every delivery: stores it, or says what became of the one before it.
#[derive(Debug, Clone)]
pub struct BeginDelivery {
    pub delivery: DeliveryRow,
    pub source: Source,
    pub request_hash: Hash,
    /// Nothing where the sender's proof covers the delivery's id.
    pub signed_body: Option<SignedBody>,
    /// The instant now, and until when this server alone may process it.
    pub now: Timestamp,
    pub lock_until: Timestamp,
}

impl Write for BeginDelivery {
    type Answer = DeliveryTaken;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<DeliveryTaken, DbError> {
        let own = self.delivery.at.key.as_str();
        let Some(signed) = &self.signed_body else { return self.begin(db, own).await };
        let Some((key, is_known)) = self.key_of(db, signed).await? else {
            let begun = DeliveryBegun::Mismatch;
            return Ok(DeliveryTaken { key: own.to_owned(), begun, is_new: false, is_repeat: false });
        };
        if let Some(holder) = self.hold(db, signed.body, key).await? {
            return self.repeat(db, &holder).await;
        }
        if let Some(about) = signed.about.filter(|_| !is_known)
            && let Some(holder) = self.hold(db, about, key).await?
        {
            // Should this body come once more, it is that delivery's as well.
            self.give(db, signed.body, &holder).await?;
            return self.repeat(db, &holder).await;
        }
        let taken = self.begin(db, key).await?;
        if taken.begun != DeliveryBegun::Mismatch {
            return Ok(taken);
        }
        // Another server has taken the id for another body since it was looked at.
        if signed.has_id {
            // The body has no delivery, and nothing may say that one holds it.
            return Err(DbError::Conflict("a delivery's id was taken just now".to_owned()));
        }
        for print in std::iter::once(signed.body).chain(signed.about) {
            self.give(db, print, &signed.key).await?;
        }
        self.begin(db, &signed.key).await
    }
}

impl BeginDelivery {
    fn at(&self, key: &str) -> DeliveryRef {
        DeliveryRef { key: key.to_owned(), ..self.delivery.at.clone() }
    }

    /// The key of the delivery, and whether there is one of this body under it. None where the id is another body's and has to
    /// be its own.
    async fn key_of<'a, D: Db>(&'a self, db: &D, signed: &'a SignedBody) -> Result<Option<(&'a str, bool)>, DbError> {
        let by_body = Some(signed.key.as_str()).filter(|_| !signed.has_id);
        for key in std::iter::once(self.delivery.at.key.as_str()).chain(by_body) {
            match standing(db, &self.at(key)).await? {
                None => return Ok(Some((key, false))),
                Some(standing) if standing.request_hash == self.request_hash => return Ok(Some((key, true))),
                Some(_) => {}
            }
        }
        Ok(None)
    }

    /// The delivery that has said the same; none where it is this one, which then has said it.
    async fn hold<D: Db>(&self, db: &D, print: Fingerprint, key: &str) -> Result<Option<String>, DbError> {
        let at = &self.delivery.at;
        let instead_of = self.signed_body.as_ref().and_then(|signed| signed.instead_of.as_ref());
        let values = args![at.tenant, at.endpoint, print.hash, key, self.delivery.received_at, print.since, instead_of];
        if db.execute(&sql::FINGERPRINT_PUT, values).await? == 1 {
            return Ok(None);
        }
        let mut rows = db.query(&sql::FINGERPRINT_GET, args![at.tenant, at.endpoint, print.hash]).await?;
        let holder = rows.first_mut().map(|row| row.text("key")).transpose()?;
        Ok(holder.filter(|holder| holder != key))
    }

    async fn give<D: Db>(&self, db: &D, print: Fingerprint, key: &str) -> Result<(), DbError> {
        let at = &self.delivery.at;
        db.execute(&sql::FINGERPRINT_GIVE, args![key, at.tenant, at.endpoint, print.hash]).await?;
        Ok(())
    }

    /// Stores the delivery under this key, or looks at the one that is there.
    async fn begin<D: Db>(&self, db: &D, key: &str) -> Result<DeliveryTaken, DbError> {
        let (delivery, now, lock_until) = (&self.delivery, self.now, self.lock_until);
        let at = self.at(key);
        // A lost server's record must outlive every attempt to take it over.
        let expires_at = now + limits::IDEMPOTENCY_COMPLETED_TTL;
        let source = self.source.as_str();
        let values = args![at.tenant, at.client(), key, source, self.request_hash, now, expires_at, lock_until];
        if db.execute(&sql::DELIVERY_RECORD, values).await? == 0 {
            return self.again(db, &at, RetakenBy::Request(self.request_hash)).await;
        }
        insert(db, &sql::DELIVERY_INSERT, (&at, delivery), lock_until).await?;
        Ok(DeliveryTaken { key: at.key, begun: DeliveryBegun::Begun(1), is_new: true, is_repeat: false })
    }

    /// An earlier delivery has said the same under another id.
    async fn repeat<D: Db>(&self, db: &D, holder: &str) -> Result<DeliveryTaken, DbError> {
        self.again(db, &self.at(holder), RetakenBy::Repeat).await
    }

    async fn again<D: Db>(&self, db: &D, at: &DeliveryRef, by: RetakenBy) -> Result<DeliveryTaken, DbError> {
        let span = Span { now: self.now, lock_until: self.lock_until };
        let begun = retake(db, at, by, span).await?;
        if matches!(begun, DeliveryBegun::Begun(_)) {
            insert(db, &sql::DELIVERY_AGAIN, (at, &self.delivery), self.lock_until).await?;
        }
        let is_repeat = matches!(by, RetakenBy::Repeat);
        Ok(DeliveryTaken { key: at.key.clone(), begun, is_new: false, is_repeat })
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
        let answer = retake(db, at, RetakenBy::Loop, Span { now: *now, lock_until: *lock_until }).await?;
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
    insert(db, &sql::DELIVERY_INSERT, (at, delivery), lock_until).await
}

/// Stores under a key what a delivery says.
async fn insert<D: Db>(
    db: &D,
    stmt: &'static Stmt,
    (at, delivery): (&DeliveryRef, &DeliveryRow),
    lock_until: Timestamp,
) -> Result<(), DbError> {
    let DeliveryRow { event, payload, received_at, .. } = delivery;
    db.execute(stmt, args![at.tenant, at.endpoint, &at.key, event, payload, *received_at, lock_until]).await?;
    Ok(())
}

#[derive(Clone, Copy)]
struct Span {
    now: Timestamp,
    lock_until: Timestamp,
}

/// Who comes for a delivery that stands under its key already.
#[derive(Clone, Copy)]
enum RetakenBy {
    /// A request under its own id, with this body.
    Request(Hash),
    /// A request that says the same under another id: its sender tries anew, and the tries are counted anew.
    Repeat,
    /// The loop that looks for what was left.
    Loop,
}

/// The record of a delivery's key.
struct DeliveryStanding {
    state: IdempotencyState,
    attempts: u32,
    request_hash: Hash,
    expires_at: Timestamp,
    lock_expires_at: Option<Timestamp>,
}

async fn standing<D: Db>(db: &D, at: &DeliveryRef) -> Result<Option<DeliveryStanding>, DbError> {
    let mut rows = db.query(&sql::DELIVERY_STANDING, args![at.tenant, at.client(), &at.key]).await?;
    let Some(row) = rows.first_mut() else { return Ok(None) };
    Ok(Some(DeliveryStanding {
        state: row.name("state")?,
        attempts: row.num("attempts")?,
        request_hash: row.hash("request_hash")?,
        expires_at: row.time("expires_at")?,
        lock_expires_at: row.opt_time("lock_expires_at")?,
    }))
}

/// What stands under the key already, and whether it may be taken over.
async fn retake<D: Db>(db: &D, at: &DeliveryRef, by: RetakenBy, span: Span) -> Result<DeliveryBegun, DbError> {
    let Some(standing) = standing(db, at).await? else { return Ok(DeliveryBegun::Gone) };
    let DeliveryStanding { state, attempts, request_hash, expires_at, lock_expires_at } = standing;
    let locked = lock_expires_at.is_some_and(|until| until > span.now);
    if matches!(by, RetakenBy::Request(asked) if asked != request_hash) {
        return Ok(DeliveryBegun::Mismatch);
    }
    let next = match state {
        IdempotencyState::Completed => return Ok(DeliveryBegun::Finished),
        IdempotencyState::Processing if locked => return Ok(DeliveryBegun::InFlight),
        // An old failure is forgotten: the delivery may be tried afresh.
        IdempotencyState::Failed if expires_at <= span.now => 1,
        _ if attempts < limits::IDEMPOTENCY_ATTEMPTS_MAX => attempts + 1,
        _ if matches!(by, RetakenBy::Repeat) => 1,
        _ => return Ok(DeliveryBegun::Spent),
    };
    let values = args![next, span.now, span.lock_until, at.tenant, at.client(), &at.key, attempts];
    let taken = db.execute(&sql::DELIVERY_RETAKE, values).await?;
    Ok(if taken == 1 { DeliveryBegun::Begun(next) } else { DeliveryBegun::InFlight })
}
