//! What can be claimed now, and when the next thing can.

use interlock_core::ids::TenantId;
use interlock_core::time::Timestamp;

use super::{ReadyGroup, ReadyRun, sql};
use crate::error::{CorruptRow, DbError, ReadError};
use crate::sqlite::SqliteDb;
use crate::store::{Reads, Store};
use crate::value::{Row, args};

/// The first entry of run_live_ready for a (queue, tenant, workspace, priority).
#[derive(Debug, Clone)]
struct Head {
    group: ReadyGroup,
    priority: i64,
    eligible_at: Timestamp,
}

impl Store {
    /// The groups that have a run to claim in one of the queues; in any queue where none is named.
    pub async fn ready_groups(&self, queues: &[String], now: Timestamp) -> Result<Vec<ReadyGroup>, ReadError> {
        let mut groups: Vec<ReadyGroup> = Vec::new();
        for head in self.heads().await? {
            // Heads of one group follow each other, one per priority.
            let wanted = queues.is_empty() || queues.contains(&head.group.queue);
            if wanted && head.eligible_at <= now && groups.last() != Some(&head.group) {
                groups.push(head.group);
            }
        }
        Ok(groups)
    }

    /// The group's runs in the order in which they should be claimed, but for those of the workflows `without`.
    pub async fn ready_runs(
        &self,
        group: &ReadyGroup,
        without: &[String],
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<ReadyRun>, ReadError> {
        let (queue, tenant, workspace) = (&group.queue, group.tenant, &group.workspace);
        let rows = if without.is_empty() {
            self.rows(&sql::READY_RUNS, args![queue, tenant, workspace, now, limit]).await?
        } else {
            let names = serde_json::json!(without).to_string();
            self.rows(&sql::READY_RUNS_OTHER, args![queue, tenant, workspace, now, names, limit]).await?
        };
        let read = |mut row: Row| {
            Ok(ReadyRun {
                tenant: group.tenant,
                run: row.id("run_id")?,
                workspace: group.workspace.clone(),
                queue: group.queue.clone(),
                priority: row.num("priority")?,
                eligible_at: row.time("eligible_at")?,
            })
        };
        Ok(self.readable_part(&sql::READY_RUNS, rows, read))
    }

    /// The earliest instant after this one at which a run becomes claimable.
    pub async fn next_eligible(&self, after: Timestamp) -> Result<Option<Timestamp>, ReadError> {
        let mut next: Option<Timestamp> = None;
        let mut sooner = |at: Timestamp| next = Some(next.map_or(at, |next| next.min(at)));
        let mut probes = Vec::new();
        for Head { group, priority, eligible_at } in self.heads().await? {
            if eligible_at > after {
                sooner(eligible_at);
            } else {
                let values = args![group.queue, group.tenant, group.workspace, priority, after];
                probes.push((&sql::ELIGIBLE_NEXT, values));
            }
        }
        for mut row in self.rows_many(probes).await?.into_iter().flatten() {
            sooner(row.time("eligible_at")?);
        }
        Ok(next)
    }

    async fn heads(&self) -> Result<Vec<Head>, ReadError> {
        match &self.inner.reads {
            Reads::Sqlite(reads) => reads.with(heads_sqlite).await,
            Reads::Postgres(..) => {
                let rows = self.rows(&sql::READY_HEADS, vec![]).await?;
                Ok(rows.into_iter().map(head).collect::<Result<_, _>>()?)
            }
        }
    }
}

fn head(mut row: Row) -> Result<Head, CorruptRow> {
    let queue = row.text("queue")?;
    let tenant: TenantId = row.id("tenant_id")?;
    let workspace = row.text("workspace")?;
    let (priority, eligible_at) = (row.int("priority")?, row.time("eligible_at")?);
    Ok(Head { group: ReadyGroup { tenant, workspace, queue }, priority, eligible_at })
}

/// The loose scan: from one head to the next lower priority of its group, or else to the next group.
fn heads_sqlite(db: &SqliteDb<'_>) -> Result<Vec<Head>, DbError> {
    let mut heads: Vec<Head> = Vec::new();
    let mut next = db.query_now(&sql::READY_FIRST, [])?.pop();
    while let Some(row) = next {
        let head = head(row)?;
        let mut key = args![&head.group.queue, head.group.tenant, &head.group.workspace, head.priority];
        next = db.query_now(&sql::READY_LOWER, &key)?.pop();
        if next.is_none() {
            key.pop();
            next = db.query_now(&sql::READY_NEXT, &key)?.pop();
        }
        heads.push(head);
    }
    Ok(heads)
}
