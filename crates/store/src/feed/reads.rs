use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::planted::{Bug, is_planted};
use interlock_core::run::change::Context;
use interlock_core::time::Timestamp;
use serde_json::value::RawValue;

use super::entries::Entry;
use super::{EventRecord, FeedPage, TenantEvent, entries, sql};
use crate::error::{CorruptRow, ReadError};
use crate::store::Store;
use crate::value::{Row, args};

/// Rows of the feed read at a time; each holds what one sealing found.
const FEED_ROWS: usize = 64;

impl Store {
    /// A run's events after `after_seq`, one record each.
    pub async fn events(
        &self,
        tenant: TenantId,
        run: RunId,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<EventRecord>, ReadError> {
        let mut records = Vec::new();
        for mut row in self.rows(&sql::EVENTS, args![tenant, run, after_seq, limit]).await? {
            row.id::<RunId>("run_id")?;
            let (first_seq, at) = (row.num::<u64>("first_seq")?, row.time("at")?);
            let events = split(&mut row)?;
            let context = context(&mut row)?;
            for (seq, event) in (first_seq..).zip(events) {
                if seq > after_seq && records.len() < limit {
                    records.push(EventRecord { seq, at, event, context: context.clone() });
                }
            }
        }
        Ok(records)
    }

    /// The cursor of the newest sealed event: a reader that starts here sees only what is new.
    pub async fn last_cursor(&self, tenant: TenantId) -> Result<u64, ReadError> {
        let mut rows = self.rows(&sql::FEED_LAST, args![tenant]).await?;
        Ok(rows.first_mut().map(|row| row.num("cursor_to")).transpose()?.unwrap_or(0))
    }

    /// The cursor behind which everything was sealed since an instant: an event is sealed after it has happened.
    pub async fn cursor_at(&self, tenant: TenantId, at: Timestamp) -> Result<u64, ReadError> {
        let mut rows = self.rows(&sql::FEED_BEFORE, args![tenant, at]).await?;
        Ok(rows.first_mut().map(|row| row.num("cursor_to")).transpose()?.unwrap_or(0))
    }

    /// Since when committed events wait to be sealed; nothing where none does.
    pub async fn unsealed_since(&self) -> Result<Option<Timestamp>, ReadError> {
        let mut oldest: Option<Timestamp> = None;
        for mut row in self.rows(&sql::UNSEALED, args![]).await? {
            let at = row.opt_time("at")?;
            oldest = oldest.into_iter().chain(at).min();
        }
        Ok(oldest)
    }

    /// A tenant's events after a cursor, as far as they have been sealed. Cursors are dense, but for the events of runs
    /// that were swept and of rows that cannot be read: the page goes past them, also where it holds nothing else.
    pub async fn tenant_events(
        &self,
        tenant: TenantId,
        after_cursor: u64,
        limit: usize,
    ) -> Result<FeedPage, ReadError> {
        let limit = limit.max(1);
        let next_cursor = after_cursor.saturating_add(1);
        let mut page = FeedPage { events: Vec::new(), cursor: after_cursor };
        let (mut wanted, mut covered) = (Vec::new(), 0);
        let rows = self.rows(&sql::FEED_READ, args![tenant, after_cursor, FEED_ROWS]).await?;
        for mut row in rows {
            let (mut cursor, cursor_to) = (row.num::<u64>("cursor_from")?, row.num::<u64>("cursor_to")?);
            // A list of entries that cannot be read is as good as none.
            for entry in self.readable_part(&sql::FEED_READ, [row], feed_entries).into_iter().flatten() {
                let end = cursor + entry.events();
                if end > next_cursor && covered < limit {
                    covered += (end - cursor.max(next_cursor)) as usize;
                    wanted.push((cursor, entry));
                    page.cursor = end - 1;
                }
                cursor = end;
            }
            if covered < limit {
                page.cursor = cursor_to;
            }
        }
        let queries = wanted
            .iter()
            .map(|(_, entry)| (&sql::FEED_EVENTS, args![tenant, entry.run, entry.first_seq, entry.seq]))
            .collect();
        for ((cursor, entry), rows) in wanted.iter().zip(self.rows_many(queries).await?) {
            for (first_seq, at, events, context) in self.readable_part(&sql::FEED_EVENTS, rows, journal_row) {
                for (seq, event) in (first_seq..).zip(events) {
                    let cursor = cursor + seq.saturating_sub(entry.first_seq);
                    if cursor > after_cursor && page.events.len() < limit {
                        let context = context.clone();
                        page.events.push(TenantEvent { cursor, run: entry.run, seq, at, event, context });
                    }
                }
            }
        }
        if page.events.is_empty() && is_planted(Bug::FeedStopsBehindSwept) {
            page.cursor = after_cursor;
        }
        // The last entry may go on beyond the limit.
        if page.events.len() == limit {
            page.cursor = page.events[limit - 1].cursor;
        }
        Ok(page)
    }
}

fn feed_entries(mut row: Row) -> Result<Vec<Entry>, CorruptRow> {
    let bytes = row.blob("entries")?;
    entries::decode(&bytes).ok_or_else(|| row.corrupt("entries", "is not a list of entries"))
}

fn journal_row(mut row: Row) -> Result<(u64, Timestamp, Vec<Json>, Context), CorruptRow> {
    row.id::<RunId>("run_id")?;
    Ok((row.num("first_seq")?, row.time("at")?, split(&mut row)?, context(&mut row)?))
}

fn context(row: &mut Row) -> Result<Context, CorruptRow> {
    let by = Context::by(row.name("initiator")?);
    Ok(Context { person: row.opt_text("person")?, metadata: row.opt_json("context_meta")?, ..by })
}

/// The events of a journal row, each as its own text.
fn split(row: &mut Row) -> Result<Vec<Json>, CorruptRow> {
    let events: Vec<Box<RawValue>> = row.decoded("events")?;
    Ok(events.into_iter().map(|event| Json::trusted(event.get())).collect())
}
