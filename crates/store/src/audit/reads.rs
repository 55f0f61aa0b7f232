use interlock_core::ids::{RunId, TenantId};
use interlock_core::time::Timestamp;
use uuid::Uuid;

use super::rows::{AuditBlockRow, AuditDetailsRow, AuditLogRow, AuditNote, FeedSpan, JournalRow};
use super::sql;
use crate::error::{CorruptRow, ReadError};
use crate::feed::{entries, sql as feed_sql};
use crate::store::Store;
use crate::value::{Row, args};

/// Rows of the feed read at a time.
const FEED_ROWS: usize = 16;

impl Store {
    /// Tenants with something that is not in their log yet, after the last one of the page before.
    pub async fn audit_behind(&self, after: Option<TenantId>, limit: usize) -> Result<Vec<TenantId>, ReadError> {
        let after = after.unwrap_or_else(|| TenantId(Uuid::nil()));
        self.every(&sql::AUDIT_BEHIND, args![after, limit], |mut row| row.id("tenant_id")).await
    }

    /// The tenant's present log.
    pub async fn audit_log(&self, tenant: TenantId) -> Result<Option<AuditLogRow>, ReadError> {
        self.found(&sql::AUDIT_LOG_LAST, args![tenant], log).await
    }

    /// One of the tenant's logs.
    pub async fn audit_log_numbered(&self, tenant: TenantId, number: u64) -> Result<Option<AuditLogRow>, ReadError> {
        self.found(&sql::AUDIT_LOG_GET, args![tenant, number], log).await
    }

    /// Blocks with the entries from `entry` on.
    pub async fn audit_blocks(
        &self,
        tenant: TenantId,
        number: u64,
        entry: u64,
        limit: usize,
    ) -> Result<Vec<AuditBlockRow>, ReadError> {
        self.every(&sql::AUDIT_BLOCKS_FROM, args![tenant, number, entry, limit], block).await
    }

    /// Blocks with the entries up to `entry`, newest first.
    pub async fn audit_blocks_back(
        &self,
        tenant: TenantId,
        number: u64,
        entry: u64,
        limit: usize,
    ) -> Result<Vec<AuditBlockRow>, ReadError> {
        self.every(&sql::AUDIT_BLOCKS_BACK, args![tenant, number, entry, limit], block).await
    }

    /// Blocks that may hold an entry of this instant.
    pub async fn audit_blocks_at(
        &self,
        tenant: TenantId,
        at: Timestamp,
        limit: usize,
    ) -> Result<Vec<AuditBlockRow>, ReadError> {
        self.every(&sql::AUDIT_BLOCKS_AT, args![tenant, at, limit], block).await
    }

    /// The nodes of a tile above the leaves; none where there is no such tile yet.
    pub async fn audit_tile(&self, tenant: TenantId, number: u64, level: u32, tile: u64) -> Result<Vec<u8>, ReadError> {
        let found = self.found(&sql::AUDIT_TILE_GET, args![tenant, number, level, tile], |mut row| row.blob("hashes"));
        Ok(found.await?.unwrap_or_default())
    }

    /// Kept details of the entries `first` to `last`.
    pub async fn audit_details(
        &self,
        tenant: TenantId,
        number: u64,
        first: u64,
        last: u64,
    ) -> Result<Vec<AuditDetailsRow>, ReadError> {
        self.every(&sql::AUDIT_DETAILS_SPAN, args![tenant, number, first, last], |mut row| {
            Ok(AuditDetailsRow {
                entry: row.num("entry")?,
                actor: row.opt_text("actor")?,
                details: row.opt_text("details")?,
            })
        })
        .await
    }

    /// What waits to be logged, oldest first.
    pub async fn audit_notes(&self, tenant: TenantId, limit: usize) -> Result<Vec<AuditNote>, ReadError> {
        self.every(&sql::AUDIT_NOTES, args![tenant, limit], note).await
    }

    /// The tenant's feed after a cursor, at most `limit` events of it but at least one span, as far as it is sealed.
    pub async fn feed_spans(&self, tenant: TenantId, after: u64, limit: u64) -> Result<Vec<FeedSpan>, ReadError> {
        let (mut spans, mut covered) = (Vec::new(), 0);
        for mut row in self.rows(&feed_sql::FEED_READ, args![tenant, after, FEED_ROWS]).await? {
            let (mut cursor, _) = (row.num::<u64>("cursor_from")?, row.num::<u64>("cursor_to")?);
            let bytes = row.blob("entries")?;
            let list = entries::decode(&bytes).ok_or_else(|| row.corrupt("entries", "is not a list of entries"))?;
            for entry in list {
                let last = cursor + entry.events() - 1;
                if last > after && covered < limit {
                    covered += entry.events();
                    spans.push(FeedSpan { run: entry.run, first_seq: entry.first_seq, seq: entry.seq, cursor: last });
                }
                cursor = last + 1;
            }
        }
        Ok(spans)
    }

    /// Rows of runs' journals, each span's by itself. A span whose run was swept has none.
    pub async fn journal_rows(
        &self,
        tenant: TenantId,
        spans: &[(RunId, u64, u64)],
    ) -> Result<Vec<Vec<JournalRow>>, ReadError> {
        let query = |(run, first, last): &(RunId, u64, u64)| (&sql::AUDIT_JOURNAL, args![tenant, *run, *first, *last]);
        let answers = self.rows_many(spans.iter().map(query).collect()).await?;
        // A row that cannot be read is one that is missing: the log of the tenant does not stop before it.
        let read = |rows: Vec<Row>| self.readable_part(&sql::AUDIT_JOURNAL, rows, journal_row);
        Ok(answers.into_iter().map(read).collect())
    }
}

fn log(mut row: Row) -> Result<AuditLogRow, CorruptRow> {
    Ok(AuditLogRow {
        tenant: row.id("tenant_id")?,
        number: row.num("number")?,
        origin: row.text("origin")?,
        epoch: row.num("epoch")?,
        key_id: row.hash("key_id")?,
        opened_at: row.time("opened_at")?,
        size: row.num("size")?,
        last_hash: row.hash("last_hash")?,
        peaks: row.blob("peaks")?,
        checkpoint: row.text("checkpoint")?,
        feed_cursor: row.num("feed_cursor")?,
        sealed_at: row.time("sealed_at")?,
    })
}

fn block(mut row: Row) -> Result<AuditBlockRow, CorruptRow> {
    Ok(AuditBlockRow {
        number: row.num("number")?,
        first_entry: row.num("first_entry")?,
        last_entry: row.num("last_entry")?,
        prev_hash: row.hash("prev_hash")?,
        bodies: row.text("bodies")?,
        salts: row.blob("salts")?,
        leaves: row.blob("leaves")?,
        at_from: row.time("at_from")?,
        at_to: row.time("at_to")?,
        checkpoint: row.text("checkpoint")?,
    })
}

fn note(mut row: Row) -> Result<AuditNote, CorruptRow> {
    let tenant = row.id("tenant_id")?;
    let id: RunId = row.id("note_id")?;
    Ok(AuditNote {
        tenant,
        id: Uuid::from_bytes(*id.as_bytes()),
        at: row.time("at")?,
        initiator: row.text("initiator")?,
        actor: row.opt_text("actor")?,
        kind: row.text("kind")?,
        subject: row.opt_text("subject")?,
        details: row.json("details")?,
    })
}

fn journal_row(mut row: Row) -> Result<JournalRow, CorruptRow> {
    Ok(JournalRow {
        run: row.id("run_id")?,
        first_seq: row.num("first_seq")?,
        seq: row.num("seq")?,
        at: row.time("at")?,
        events: row.json("events")?,
        initiator: row.text("initiator")?,
        person: row.opt_text("person")?,
        context_meta: row.opt_json("context_meta")?,
        done_position: row.opt_num("done_position")?,
        done_state: row.opt_text("done_state")?,
        done_attempt: row.opt_num("done_attempt")?,
        done_failures: row.opt_num("done_failures")?,
        done_iteration: row.opt_num("done_iteration")?,
        input: row.opt_json("input")?,
        output: row.opt_json("output")?,
        error: row.opt_json("error")?,
        why: row.opt_text("why")?,
    })
}
