//! One suite over every database: what a store promises, whatever is behind it.

mod access;
mod approvals;
mod check;
mod disabled;
mod feed;
mod filled;
#[path = "../harness/fresh_postgres.rs"]
mod fresh_postgres;
mod guards;
mod harness;
mod lanes;
mod limits;
mod live_row;
mod locks;
mod lost_answers;
mod opening;
mod output;
mod payloads;
mod people;
mod plans;
mod planted;
mod policies;
mod races;
mod receipts;
mod restores;
mod row_security;
mod runs;
mod servers;
mod signal_names;
mod slack;
mod statements;
mod successors;
mod swept_plans;
mod swept_runs;
mod triggers;
mod walk;
mod workflows;

/// Declares each test once and runs it on a SQLite file, on SQLite in memory and on PostgreSQL.
macro_rules! on_every_store {
    ($($name:ident),+ $(,)?) => {
        mod sqlite_file {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let database = crate::harness::TestDatabase::file();
                super::$name(&database).await;
            })+
        }
        mod sqlite_memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let database = crate::harness::TestDatabase::memory();
                super::$name(&database).await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let database = crate::harness::TestDatabase::postgres().await;
                super::$name(&database).await;
            })+
        }
    };
}
pub(crate) use on_every_store;
