//! Who refers to which payload beside the database. The objects themselves are the engine's affair; what stands here
//! says when one may go, so that nobody is left with a reference to nothing.

use interlock_core::ids::{RunId, ServerId, SignalId, TenantId};
use interlock_core::json::Hash;
use interlock_core::time::Timestamp;

use crate::db::Db;
use crate::error::{CorruptRow, DbError, ReadError};
use crate::op::OpAnswer;
use crate::sql::{ops, payloads};
use crate::store::Store;
use crate::value::{Value, args};

/// The row of `meta` that holds the mark of references, and that keepers and sweepers take turns on.
pub(crate) const MARK: &str = "payload_mark";

/// A mark for a new store, drawn from the random id of the server that makes it.
pub(crate) fn fresh_mark(server: ServerId) -> String {
    let mut mark = Hash::of(&[MARK.as_bytes(), server.as_bytes()].concat()).to_string();
    mark.truncate(32);
    mark
}

/// A run or a signal that refers to a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PayloadOwner([u8; 16]);

impl From<RunId> for PayloadOwner {
    fn from(run: RunId) -> Self {
        Self(*run.as_bytes())
    }
}

impl From<SignalId> for PayloadOwner {
    fn from(signal: SignalId) -> Self {
        Self(*signal.as_bytes())
    }
}

impl From<PayloadOwner> for Value {
    fn from(owner: PayloadOwner) -> Self {
        Self::Id(owner.0)
    }
}

/// One reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadRow {
    pub tenant: TenantId,
    pub owner: PayloadOwner,
    pub sha256: Hash,
}

/// Who is behind a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadHolder {
    Run(RunId),
    Signal(SignalId),
    /// The owner is gone, or is not committed yet.
    Nobody,
}

impl std::fmt::Display for PayloadHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Run(run) => run.fmt(f),
            Self::Signal(signal) => signal.fmt(f),
            Self::Nobody => f.write_str("nobody"),
        }
    }
}

/// A reference as it stands on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadRecord {
    pub row: PayloadRow,
    pub bytes: u64,
    pub holder: PayloadHolder,
    /// The object is being removed.
    pub sweeping: bool,
}

#[derive(Debug, Clone, Copy)]
pub enum PayloadOp {
    /// Before the object is written and the owner is committed. Answers [`OpAnswer::Stored`], or
    /// [`OpAnswer::InFlight`] while the object is being removed.
    Keep { row: PayloadRow, bytes: u64, at: Timestamp },
    /// The owner is gone, and has not come back since `before`. Answers [`OpAnswer::Done`] if others refer to the
    /// object, [`OpAnswer::Gone`] if nobody does: then it is removed, and forgotten; [`OpAnswer::Recent`] if it was
    /// kept again.
    Release { row: PayloadRow, before: Timestamp },
    /// The object is removed.
    Forget { tenant: TenantId, sha256: Hash },
}

pub(crate) async fn apply<D: Db>(db: &D, op: &PayloadOp) -> Result<OpAnswer, DbError> {
    // One at a time over all servers: a reference that is being added and an object that is going must see each other.
    db.query(&ops::META_LOCK, args![MARK]).await?;
    match *op {
        PayloadOp::Keep { row: PayloadRow { tenant, owner, sha256 }, bytes, at } => {
            if !db.query(&payloads::PAYLOAD_SWEEPING, args![tenant, sha256]).await?.is_empty() {
                return Ok(OpAnswer::InFlight);
            }
            db.execute(&payloads::PAYLOAD_KEEP, args![tenant, owner, sha256, bytes, at]).await?;
            Ok(OpAnswer::Stored)
        }
        PayloadOp::Release { row: PayloadRow { tenant, owner, sha256 }, before } => {
            let shared = !db.query(&payloads::PAYLOAD_SHARED, args![tenant, sha256, owner]).await?.is_empty();
            let stmt = if shared { &payloads::PAYLOAD_DROP } else { &payloads::PAYLOAD_MARK };
            let rows = db.execute(stmt, args![tenant, owner, sha256, before]).await?;
            Ok(match (rows, shared) {
                (0, _) => OpAnswer::Recent,
                (_, true) => OpAnswer::Done,
                (_, false) => OpAnswer::Gone,
            })
        }
        PayloadOp::Forget { tenant, sha256 } => {
            db.execute(&payloads::PAYLOAD_FORGET, args![tenant, sha256]).await?;
            Ok(OpAnswer::Done)
        }
    }
}

impl Store {
    /// What this store's references begin with, and nothing that came from outside does. It never leaves the server.
    pub async fn payload_mark(&self) -> Result<String, ReadError> {
        let mut rows = self.rows(&ops::META_GET, args![MARK]).await?;
        Ok(rows.first_mut().map(|row| row.text("value")).transpose()?.unwrap_or_default())
    }

    /// How long a payload is that the run refers to.
    pub async fn payload_bytes(&self, tenant: TenantId, run: RunId, sha256: Hash) -> Result<Option<u64>, ReadError> {
        let mut rows = self.rows(&payloads::PAYLOAD_BYTES, args![tenant, PayloadOwner::from(run), sha256]).await?;
        Ok(rows.first_mut().map(|row| row.num("bytes")).transpose()?)
    }

    /// Whether anybody refers to a payload that is not being removed.
    pub async fn payload_is_needed(&self, tenant: TenantId, sha256: Hash) -> Result<bool, ReadError> {
        Ok(!self.rows(&payloads::PAYLOAD_NEEDED, args![tenant, sha256]).await?.is_empty())
    }

    /// Whether the owner uses what is recorded for it. Reads all that the owner has: for the few whose object is missing.
    pub async fn payload_is_used(&self, row: PayloadRow) -> Result<bool, ReadError> {
        let PayloadRow { tenant, owner, sha256 } = row;
        let named = format!("%{sha256}%");
        Ok(!self.rows(&payloads::PAYLOAD_USED, args![tenant, owner, named]).await?.is_empty())
    }

    /// All references in the order of their objects, a page after the one that ended with `after`.
    pub async fn payloads_after(
        &self,
        after: Option<PayloadRow>,
        limit: usize,
    ) -> Result<Vec<PayloadRecord>, ReadError> {
        let from = match after {
            Some(PayloadRow { tenant, owner, sha256 }) => args![tenant, sha256, owner, limit],
            None => args![Value::Blob(vec![]), Value::Blob(vec![]), Value::Blob(vec![]), limit],
        };
        let rows = self.rows(&payloads::PAYLOADS_AFTER, from).await?;
        rows.into_iter()
            .map(|mut row| {
                let (tenant, sha256, owner) = (row.id("tenant_id")?, row.hash("sha256")?, row.id::<RunId>("owner")?);
                let (bytes, sweeping) = (row.num("bytes")?, row.int("sweeping")? == 1);
                let holder = match row.int("holder")? {
                    1 => PayloadHolder::Run(owner),
                    2 => PayloadHolder::Signal(SignalId(owner.0)),
                    _ => PayloadHolder::Nobody,
                };
                Ok(PayloadRecord { row: PayloadRow { tenant, owner: owner.into(), sha256 }, bytes, holder, sweeping })
            })
            .collect()
    }

    /// How many references there are, and how many bytes they are about.
    pub async fn payloads_total(&self) -> Result<(u64, u64), ReadError> {
        let mut rows = self.rows(&payloads::PAYLOADS_TOTAL, vec![]).await?;
        Ok(rows
            .first_mut()
            .map(|row| Ok::<_, CorruptRow>((row.num("count")?, row.num("bytes")?)))
            .transpose()?
            .unwrap_or_default())
    }

    /// References whose owner is gone, among those that were kept before an instant.
    pub async fn payloads_unowned(&self, before: Timestamp, limit: usize) -> Result<Vec<PayloadRow>, ReadError> {
        let rows = self.rows(&payloads::PAYLOADS_UNOWNED, args![before, limit]).await?;
        rows.into_iter()
            .map(|mut row| {
                let (tenant, owner) = (row.id("tenant_id")?, PayloadOwner::from(row.id::<RunId>("owner")?));
                Ok(PayloadRow { tenant, owner, sha256: row.hash("sha256")? })
            })
            .collect()
    }
}
