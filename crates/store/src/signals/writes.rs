use interlock_core::time::Timestamp;

use super::{SignalRow, sql};
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
    Ok(match store_signal(db, signal).await? {
        Stored::Stored => SignalStored::Stored,
        Stored::Duplicate => SignalStored::Duplicate,
    })
}

pub(crate) async fn store_signal<D: Db>(db: &D, signal: &SignalRow) -> Result<Stored, DbError> {
    let values = args![
        signal.tenant,
        signal.id,
        &signal.signal_type,
        &signal.key,
        signal.received_at,
        signal.expires_at,
        &signal.payload,
        signal.source_id.as_ref(),
        signal.broadcast,
        signal.run
    ];
    stored(db, &sql::SIGNAL_INSERT, values).await
}
