use interlock_core::ids::{RunId, TenantId};
use interlock_core::time::Timestamp;

use super::{SignalIdentity, SignalRow, SourceId, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::inbound::{DeliveryRow, begin_signal};
use crate::sql::hot;
use crate::value::args;
use crate::write::{Done, Stored, Write, boxed, stored};

/// What became of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalStored {
    Stored,
    /// Its sender has sent it before.
    Duplicate,
    /// Another signal has come under its name.
    NameTaken,
    UnknownTenant,
}

impl Done for SignalStored {
    fn is_done(&self) -> bool {
        *self == Self::Stored
    }
}

#[derive(Debug, Clone)]
pub struct StoreSignal(pub SignalRow);

impl Write for StoreSignal {
    type Answer = SignalStored;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<SignalStored, DbError> {
        store_for_tenant(db, &self.0).await
    }
}

/// A signal that workflows take: stored with the delivery under which their runs are started, so that a server that
/// finds it unfinished starts them.
#[derive(Debug, Clone)]
pub struct AnnounceSignal {
    pub signal: SignalRow,
    pub delivery: DeliveryRow,
    /// Until then the one who stored it is believed to start its runs.
    pub lock_until: Timestamp,
}

impl Write for AnnounceSignal {
    type Answer = SignalStored;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<SignalStored, DbError> {
        let answer = store_for_tenant(db, &self.signal).await?;
        if answer == SignalStored::Stored {
            begin_signal(db, &self.delivery, self.lock_until).await?;
        }
        Ok(answer)
    }
}

async fn store_for_tenant<D: Db>(db: &D, signal: &SignalRow) -> Result<SignalStored, DbError> {
    if db.query(&hot::TENANT_EXISTS, args![signal.tenant]).await?.is_empty() {
        return Ok(SignalStored::UnknownTenant);
    }
    let identity = signal.source_id.as_ref();
    if let Some(SignalIdentity { source, .. }) = identity
        && came_to_earlier_release(db, signal, source).await?
    {
        return Ok(SignalStored::Duplicate);
    }
    match (store_signal(db, signal).await?, identity) {
        (Stored::Stored, _) => Ok(SignalStored::Stored),
        (Stored::Duplicate, Some(identity)) => match standing_under_name(db, signal.tenant, identity).await? {
            Some(answer) => Ok(answer),
            // It was swept away between the two looks, and the name is free now.
            None if store_signal(db, signal).await? == Stored::Stored => Ok(SignalStored::Stored),
            None => Err(DbError::Other(format!("the id of signal {} was given out twice", signal.id))),
        },
        (Stored::Duplicate, None) => Ok(SignalStored::Duplicate),
    }
}

/// Whether the same signal was stored by a server that kept names for the whole tenant, and no fingerprints: what it has no
/// column for is taken to be the same. Another signal under the name may be another workspace's, and is in nobody's way.
async fn came_to_earlier_release<D: Db>(db: &D, signal: &SignalRow, source: &SourceId) -> Result<bool, DbError> {
    let mut rows = db.query(&sql::SIGNAL_NAMED_BEFORE, args![signal.tenant, &source.name]).await?;
    let Some(row) = rows.first_mut() else { return Ok(false) };
    let (signal_type, key) = (row.text("type")?, row.text("key")?);
    let (broadcast, run): (bool, Option<RunId>) = (row.flag("broadcast")?, row.opt_id("run_id")?);
    let is_same_target = signal_type == signal.signal_type && key == signal.key;
    Ok(is_same_target && broadcast == signal.broadcast && run == signal.run)
}

/// What it means that the name of a signal is taken. Nothing where it is not.
async fn standing_under_name<D: Db>(
    db: &D,
    tenant: TenantId,
    SignalIdentity { source, fingerprint }: &SignalIdentity,
) -> Result<Option<SignalStored>, DbError> {
    let mut rows = db.query(&sql::SIGNAL_NAMED, args![tenant, source.scope.text(), &source.name]).await?;
    let Some(row) = rows.first_mut() else { return Ok(None) };
    let is_same = row.opt_hash("fingerprint")? == Some(*fingerprint);
    Ok(Some(if is_same { SignalStored::Duplicate } else { SignalStored::NameTaken }))
}

pub(crate) async fn store_signal<D: Db>(db: &D, signal: &SignalRow) -> Result<Stored, DbError> {
    let source = signal.source_id.as_ref();
    let values = args![
        signal.tenant,
        signal.id,
        &signal.signal_type,
        &signal.key,
        signal.received_at,
        signal.expires_at,
        &signal.payload,
        source.map(|known| known.source.scope.text()),
        source.map(|known| &known.source.name),
        source.map(|known| known.fingerprint),
        signal.broadcast,
        signal.run
    ];
    stored(db, &sql::SIGNAL_INSERT, values).await
}
