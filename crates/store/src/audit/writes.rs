use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Hash;
use uuid::Uuid;

use super::rows::{AuditBlockRow, AuditDetailsRow, AuditLogRow, AuditNote, AuditTileRow};
use super::sql;
use crate::db::Db;
use crate::error::DbError;
use crate::evidence;
use crate::value::{Value, args};
use crate::write::{Changed, Write, WriteLane, boxed, of_tenant};

/// Bytes of salts that an entry has: those of its leaf, then those that go when its details are erased.
const SALTS: usize = 32;
const LEAF_SALT: usize = 16;

/// What became of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditAppended {
    Appended,
    /// The log has moved on: another server was faster, or this is a repeat.
    Stale,
}

/// Appends a block to a log, or begins a log with it. Nothing of it happens unless the log stands where the block was
/// computed from, so a repetition, or the same append by another server, changes nothing.
#[derive(Debug, Clone)]
pub struct AppendAudit {
    /// Where the log stands with the block in it.
    pub log: AuditLogRow,
    /// Where it stood: its size and last hash. None where it begins.
    pub from: Option<(u64, Hash)>,
    pub block: AuditBlockRow,
    /// New nodes of the tree, behind those that their tile has.
    pub tiles: Vec<AuditTileRow>,
    pub details: Vec<AuditDetailsRow>,
    /// Notes that are in the log now.
    pub notes: Vec<Uuid>,
    /// Runs whose evidence is to be bundled.
    pub due: Vec<RunId>,
}

impl Write for AppendAudit {
    type Answer = AuditAppended;
    const LANE: WriteLane = WriteLane::Upkeep;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<AuditAppended, DbError> {
        let Self { log, block, .. } = self;
        let (tenant, number) = (log.tenant, log.number);
        let moved = match self.from {
            None => {
                let values = args![
                    tenant,
                    number,
                    &log.origin,
                    log.epoch,
                    log.key_id,
                    log.opened_at,
                    log.size,
                    log.last_hash,
                    log.peaks.clone(),
                    &log.checkpoint,
                    log.feed_cursor,
                    log.sealed_at
                ];
                db.execute(&sql::AUDIT_LOG_INSERT, values).await?
            }
            Some((size, last)) => {
                let values = args![
                    log.size,
                    log.last_hash,
                    log.peaks.clone(),
                    &log.checkpoint,
                    log.feed_cursor,
                    log.sealed_at,
                    tenant,
                    number,
                    size,
                    last
                ];
                db.execute(&sql::AUDIT_LOG_ADVANCE, values).await?
            }
        };
        if moved == 0 {
            return Ok(AuditAppended::Stale);
        }
        let values = args![
            tenant,
            number,
            block.last_entry,
            block.first_entry,
            block.prev_hash,
            &block.bodies,
            block.salts.clone(),
            block.leaves.clone(),
            block.at_from,
            block.at_to,
            &block.checkpoint
        ];
        db.execute(&sql::AUDIT_BLOCK_INSERT, values).await?;
        for tile in &self.tiles {
            let key = args![tenant, number, tile.level, tile.tile];
            let mut hashes = match db.query(&sql::AUDIT_TILE_GET, key).await?.first_mut() {
                Some(row) => row.blob("hashes")?,
                None => Vec::new(),
            };
            hashes.extend_from_slice(&tile.hashes);
            db.execute(&sql::AUDIT_TILE_PUT, args![tenant, number, tile.level, tile.tile, hashes]).await?;
        }
        for row in &self.details {
            let values = args![tenant, number, row.entry, row.actor.as_ref(), row.details.as_ref()];
            db.execute(&sql::AUDIT_DETAILS_INSERT, values).await?;
        }
        for note in &self.notes {
            db.execute(&sql::AUDIT_NOTE_DELETE, args![tenant, Value::Id(*note.as_bytes())]).await?;
        }
        for run in &self.due {
            db.execute(&evidence::sql::EVIDENCE_DUE_PUT, args![tenant, *run, log.sealed_at]).await?;
        }
        Ok(AuditAppended::Appended)
    }
}

/// Erases what the salted hashes of entries stand for, and the salts by which it could be guessed. The entries themselves
/// stay, and their log verifies as before. What the journal still says of them is the run's, and goes with the run.
#[derive(Debug, Clone)]
pub struct EraseAuditDetails {
    pub tenant: TenantId,
    pub number: u64,
    pub entries: Vec<u64>,
}

impl Write for EraseAuditDetails {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let mut changed = Changed::Gone;
        for entry in &self.entries {
            if self.erase(db, *entry).await? {
                changed = Changed::Done;
            }
        }
        Ok(changed)
    }
}

impl EraseAuditDetails {
    /// Whether there is such an entry.
    async fn erase<D: Db>(&self, db: &D, entry: u64) -> Result<bool, DbError> {
        let (tenant, number) = (self.tenant, self.number);
        let mut rows = db.query(&sql::AUDIT_SALTS_GET, args![tenant, number, entry]).await?;
        let Some(row) = rows.first_mut() else { return Ok(false) };
        let (first, last): (u64, u64) = (row.num("first_entry")?, row.num("last_entry")?);
        let mut salts = row.blob("salts")?;
        let Some(at) = entry.checked_sub(first).map(|at| at as usize * SALTS) else { return Ok(false) };
        let Some(erased) = salts.get_mut(at + LEAF_SALT..at + SALTS) else { return Ok(false) };
        erased.fill(0);
        db.execute(&sql::AUDIT_SALTS_PUT, args![salts, tenant, number, last]).await?;
        db.execute(&sql::AUDIT_DETAILS_ERASE, args![tenant, number, entry]).await?;
        Ok(true)
    }
}

/// A note of something that changes no row.
#[derive(Debug, Clone)]
pub struct AddAuditNote(pub AuditNote);

impl Write for AddAuditNote {
    type Answer = ();
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<(), DbError> {
        add_note(db, &self.0).await
    }
}

of_tenant! {
    AddAuditNote.0.tenant;
    EraseAuditDetails.tenant;
}

/// Puts a note down inside the transaction of what it tells of.
pub(crate) async fn add_note<D: Db>(db: &D, note: &AuditNote) -> Result<(), DbError> {
    let values = args![
        note.tenant,
        Value::Id(*note.id.as_bytes()),
        note.at,
        &note.initiator,
        note.actor.as_ref(),
        &note.kind,
        note.subject.as_ref(),
        &note.details
    ];
    db.execute(&sql::AUDIT_NOTE_INSERT, values).await?;
    Ok(())
}
