//! Reading lists that hold the rows of many runs: what cannot be read is left out ([`crate::unreadable`]).

use std::collections::BTreeSet;

use interlock_core::ids::{RunId, TenantId};
use uuid::Uuid;

use crate::check;
use crate::error::{CorruptRow, ReadError};
use crate::sql::Stmt;
use crate::store::Store;
use crate::unreadable::REMEMBERED_MAX;
use crate::value::{Row, Value, args};

/// Live runs that are loaded at a time.
const RUNS_PAGE: usize = 256;

impl Store {
    /// The rows of a list that can be read. `bounds` are the statement's arguments for a number of rows.
    pub(crate) async fn readable<T>(
        &self,
        stmt: &'static Stmt,
        limit: usize,
        bounds: impl FnOnce(usize) -> Vec<Value>,
        read: impl Fn(Row) -> Result<T, CorruptRow>,
    ) -> Result<Vec<T>, ReadError> {
        let unreadable = &self.inner.unreadable;
        // Rows that were left out last time must not take the places of those behind them.
        let rows = self.rows(stmt, bounds(limit.saturating_add(unreadable.count(stmt.name)))).await?;
        let (mut good, mut bad) = (Vec::with_capacity(rows.len()), BTreeSet::new());
        for row in rows {
            match read(row) {
                Ok(row) => good.push(row),
                Err(row) if bad.len() < REMEMBERED_MAX => drop(bad.insert(row)),
                Err(_) => {}
            }
        }
        unreadable.note(stmt.name, bad);
        Ok(good)
    }

    /// Notes a row that is left out of a part of a list.
    pub(crate) fn leave_out(&self, stmt: &'static Stmt, row: CorruptRow) {
        self.inner.unreadable.add(stmt.name, row);
    }

    /// Of a part of a list, such as the rows of one session or one page: those that can be read.
    pub(crate) fn readable_part<T>(
        &self,
        stmt: &'static Stmt,
        rows: impl IntoIterator<Item = Row>,
        read: impl Fn(Row) -> Result<T, CorruptRow>,
    ) -> Vec<T> {
        let leave_out = |row| self.inner.unreadable.add(stmt.name, row);
        rows.into_iter().filter_map(|row| read(row).map_err(leave_out).ok()).collect()
    }

    /// Live runs of all tenants behind one of them, by their ids: also those that cannot be loaded, which no list shows.
    pub async fn live_runs_after(
        &self,
        after: Option<(TenantId, RunId)>,
        limit: usize,
    ) -> Result<Vec<(TenantId, RunId)>, ReadError> {
        let (tenant, run) = after.unwrap_or((TenantId(Uuid::nil()), RunId(Uuid::nil())));
        let rows = self.rows(&check::sql::CHECK_LIVE_RUNS, args![tenant, run, limit]).await?;
        let read = |mut row: Row| Ok((row.id("tenant_id")?, row.id("run_id")?));
        Ok(self.readable_part(&check::sql::CHECK_LIVE_RUNS, rows, read))
    }

    /// Live runs that cannot be loaded, and how many were looked at: `most` of them, for a quick look.
    pub async fn unreadable_runs(&self, most: usize) -> Result<(usize, Vec<(TenantId, RunId, CorruptRow)>), ReadError> {
        let (mut looked_at, mut unreadable) = (0, Vec::new());
        let mut after = None;
        while looked_at < most {
            let page = self.live_runs_after(after, RUNS_PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(*last);
            looked_at += page.len();
            match self.load_runs(&page).await {
                Ok(_) => continue,
                Err(ReadError::Corrupt(_)) => {}
                Err(error) => return Err(error),
            }
            // One of them cannot be read; the others can.
            for (tenant, run) in page {
                match self.load_runs(&[(tenant, run)]).await {
                    Ok(_) => {}
                    Err(ReadError::Corrupt(row)) => unreadable.push((tenant, run, row)),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok((looked_at, unreadable))
    }

    /// The rows that were left out of the lists that this store has read, with the list's name.
    pub fn unreadable_rows(&self) -> Vec<(&'static str, CorruptRow)> {
        let lists = self.inner.unreadable.lists();
        lists.iter().flat_map(|(list, rows)| rows.iter().map(|row| (*list, row.clone()))).collect()
    }
}
