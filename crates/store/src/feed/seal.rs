use std::collections::BTreeMap;

use interlock_core::ids::TenantId;
use interlock_core::planted::{Bug, is_planted};
use interlock_core::time::Timestamp;

use super::entries::{self, Entry};
use super::sql;
use crate::db::Db;
use crate::error::DbError;
use crate::meta;
use crate::value::args;
use crate::write::{Write, WriteLane, boxed};

/// Groups without an event that every look at a lane goes over again. Some lanes have no others: those of sessions, of output, of
/// the sealer itself.
const EMPTY_GROUPS_MAX: i64 = 256;

/// Brings the groups that no sealer has read yet into the tenants' feeds. Answers how many events it sealed.
#[derive(Debug, Clone, Copy)]
pub struct Seal {
    pub now: Timestamp,
    pub limit: usize,
}

impl Write for Seal {
    type Answer = u64;
    const LANE: WriteLane = WriteLane::Upkeep;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<u64, DbError> {
        let Self { now, limit } = *self;
        db.query(&meta::sql::META_LOCK, args!["seal"]).await?;
        let limit = limit.max(1);
        // Before the groups are read: whatever a lane has up to its newest group of now is seen by then, because a lane commits one
        // group after the other.
        let heads = db.query(&sql::SEAL_HEADS, args![EMPTY_GROUPS_MAX]).await?;
        let rows = db.query(&sql::SEAL_READ, args![limit]).await?;
        let is_everything = rows.len() < limit;
        let mut positions = BTreeMap::new();
        let mut by_tenant: BTreeMap<TenantId, Vec<Entry>> = BTreeMap::new();
        for mut row in rows {
            let (lane, group, bytes) = (row.int("lane_id")?, row.int("group_no")?, row.blob("entries")?);
            positions.insert(lane, group);
            let Some(list) = entries::decode(&bytes) else {
                // All tenants' feeds would stand still behind it for ever. The events themselves are in the journal.
                tracing::error!(
                    lane,
                    group,
                    "a commit group cannot be read: its events are missing from the tenants' feeds; run `interlock db check`"
                );
                continue;
            };
            for entry in list {
                by_tenant.entry(entry.tenant).or_default().push(entry);
            }
        }
        let (lanes, mut sealed) = (positions.len(), 0);
        for (tenant, mut list) in by_tenant {
            if lanes > 1 {
                entries::order_runs(&mut list);
            }
            if is_planted(Bug::FeedSkips) && list.len() > 3 {
                list.pop();
            }
            let mut last = db.query(&sql::SEAL_CURSOR, args![tenant]).await?;
            let from = last.first_mut().map(|row| row.num::<u64>("cursor_to")).transpose()?.unwrap_or(0) + 1;
            let mut to = from - 1;
            let mut bytes = Vec::with_capacity(list.len() * 35);
            for entry in &list {
                to += entry.events();
                entry.encode(&mut bytes);
            }
            db.execute(&sql::FEED_INSERT, args![tenant, to, from, now, bytes]).await?;
            sealed += to + 1 - from;
        }
        if is_everything {
            for mut row in heads {
                let (lane, head) = (row.int("lane_id")?, row.int("head")?);
                positions.entry(lane).and_modify(|group| *group = head.max(*group)).or_insert(head);
            }
        }
        for (lane, mut group) in positions {
            group += i64::from(is_planted(Bug::FeedPastUncommitted));
            db.execute(&sql::SEAL_POSITION, args![lane, group]).await?;
        }
        Ok(sealed)
    }
}
