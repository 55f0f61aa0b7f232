//! The journal's partitions: one a week, made ahead of time. A run's id begins with the instant of its start, so a
//! range of ids is a span of starts.

use interlock_core::time::{Millis, Timestamp};

use crate::db::Db;
use crate::error::DbError;
use crate::sql::ops;
use crate::value::args;

const WEEK: u64 = 7 * 24 * 60 * 60 * 1_000;
/// This week and the ones to come.
const WEEKS_AHEAD: u64 = 3;

pub(crate) async fn ensure<D: Db>(db: &D, now: Timestamp) -> Result<(), DbError> {
    // One server at a time; the others find the tables made.
    db.query(&ops::META_LOCK, args!["seal"]).await?;
    let this_week = u64::try_from(now.0).unwrap_or(0) / WEEK;
    for week in this_week..this_week + WEEKS_AHEAD {
        let from = Timestamp(0) + Millis(week * WEEK);
        let to = from + Millis(WEEK);
        let (first, end) = (prefix(from), prefix(to));
        // Rows that came before their week was made stay in the default partition, and keep the week out: PostgreSQL
        // does not accept a partition whose rows live elsewhere.
        db.batch(&format!(
            "DO $$ BEGIN
               IF to_regclass('journal_w{week}') IS NULL AND NOT EXISTS
                  (SELECT 1 FROM journal_default WHERE run_id >= '\\x{first}' AND run_id < '\\x{end}') THEN
                 CREATE TABLE journal_w{week} PARTITION OF journal FOR VALUES FROM ('\\x{first}') TO ('\\x{end}');
               END IF;
             END $$"
        ))
        .await?;
    }
    Ok(())
}

/// The first id of an instant, as hexadecimal digits.
fn prefix(at: Timestamp) -> String {
    format!("{:012x}{:020x}", at.0, 0)
}
