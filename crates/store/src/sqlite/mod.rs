//! SQLite: one writer, WAL, every commit on disk before its callers are answered.

pub(crate) mod commit;
pub(crate) mod file;
pub(crate) mod memory;
pub(crate) mod reads;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql};

use crate::db::Db;
use crate::error::DbError;
use crate::sql::Stmt;
use crate::value::{Row, Value};

/// Statements kept prepared on a connection.
const STATEMENTS_MAX: usize = 160;

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(value) => ValueRef::Integer(*value),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
            Self::Id(id) => ValueRef::Blob(id),
        }))
    }
}

/// A connection as a [`Db`]. Its futures are ready when they are made.
pub(crate) struct SqliteDb<'a>(pub &'a Connection);

impl SqliteDb<'_> {
    pub fn execute_now(&self, stmt: &'static Stmt, args: impl AsRef<[Value]>) -> Result<u64, DbError> {
        let changed = self.0.prepare_cached(stmt.sqlite)?.execute(rusqlite::params_from_iter(args.as_ref()))?;
        Ok(changed as u64)
    }

    pub fn query_now(&self, stmt: &'static Stmt, args: impl AsRef<[Value]>) -> Result<Vec<Row>, DbError> {
        let mut statement = self.0.prepare_cached(stmt.sqlite)?;
        let columns = statement.column_count();
        #[cfg(feature = "checked")]
        let names = statement.column_names().map(str::to_owned).collect();
        let mut rows = statement.query(rusqlite::params_from_iter(args.as_ref()))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let mut values = Vec::with_capacity(columns);
            for column in 0..columns {
                values.push(value_of(row.get_ref(column)?)?);
            }
            let row = Row::new(stmt.table, values);
            #[cfg(feature = "checked")]
            let row = row.named(&names);
            found.push(row);
        }
        Ok(found)
    }
}

fn value_of(value: ValueRef<'_>) -> Result<Value, DbError> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Int(value),
        ValueRef::Real(value) => return Err(DbError::Other(format!("unexpected real number {value}"))),
        ValueRef::Text(text) => Value::Text(
            std::str::from_utf8(text)
                .map_err(|error| DbError::Other(format!("text is not UTF-8: {error}")))?
                .to_owned(),
        ),
        ValueRef::Blob(bytes) => match bytes.try_into() {
            Ok(id) => Value::Id(id),
            Err(_) => Value::Blob(bytes.to_vec()),
        },
    })
}

impl Db for SqliteDb<'_> {
    async fn execute(&self, stmt: &'static Stmt, args: Vec<Value>) -> Result<u64, DbError> {
        self.execute_now(stmt, args)
    }

    async fn query(&self, stmt: &'static Stmt, args: Vec<Value>) -> Result<Vec<Row>, DbError> {
        self.query_now(stmt, args)
    }

    async fn batch(&self, sql: &str) -> Result<(), DbError> {
        Ok(self.0.execute_batch(sql)?)
    }

    fn is_postgres(&self) -> bool {
        false
    }
}

/// The result of a future over a [`SqliteDb`], which never waits.
pub(crate) fn ready<T>(future: impl Future<Output = T>) -> T {
    futures::FutureExt::now_or_never(future).expect("SQLite answers in place")
}
