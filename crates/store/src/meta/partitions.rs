//! The journal's partitions: one a week, made ahead of time, and dropped once retention has emptied them. A run's id
//! begins with the instant of its start, so a range of ids is a span of starts.

use interlock_core::time::{Millis, Timestamp};

use crate::db::Db;
use crate::error::DbError;
use crate::meta;
use crate::value::args;

const WEEK: u64 = 7 * 24 * 60 * 60 * 1_000;
/// This week and the ones to come.
const WEEKS_AHEAD: u64 = 3;
/// Weeks that have just ended stay, empty or not: a run of theirs may still be on its way in.
const WEEKS_BEHIND: u64 = 2;

pub(crate) async fn ensure<D: Db>(db: &D, now: Timestamp) -> Result<(), DbError> {
    // One server at a time; the others find the tables made.
    db.query(&meta::sql::META_LOCK, args!["seal"]).await?;
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
             -- Such a row came between the question and the answer.
             EXCEPTION WHEN check_violation THEN NULL;
             END $$"
        ))
        .await?;
    }
    // The lock that dropping needs would hold up every commit; where it is not to be had at once, next time will do.
    let oldest_kept = this_week.saturating_sub(WEEKS_BEHIND);
    db.batch(&format!(
        "DO $$ DECLARE part text; filled boolean; waits text := current_setting('lock_timeout'); BEGIN
           FOR part IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                       WHERE i.inhparent = 'journal'::regclass AND c.relname ~ '^journal_w[0-9]+$'
                       AND substring(c.relname FROM 10)::bigint < {oldest_kept} ORDER BY 1 LOOP
             EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I)', part) INTO filled;
             IF NOT filled THEN
               BEGIN
                 SET LOCAL lock_timeout = '50ms';
                 EXECUTE format('DROP TABLE %I', part);
               EXCEPTION WHEN lock_not_available THEN NULL;
               END;
             END IF;
           END LOOP;
           PERFORM set_config('lock_timeout', waits, true);
         END $$"
    ))
    .await
}

/// The first id of an instant, as hexadecimal digits.
fn prefix(at: Timestamp) -> String {
    format!("{:012x}{:020x}", at.0, 0)
}
