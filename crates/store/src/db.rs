//! What both databases can do inside a transaction: execute a named statement. Logic that is not hot is written once
//! against [`Db`]; on SQLite its futures never wait.

use crate::error::DbError;
use crate::sql::Stmt;
use crate::value::{Row, Value};

pub trait Db {
    /// The number of rows changed.
    fn execute(&self, stmt: &'static Stmt, args: Vec<Value>) -> impl Future<Output = Result<u64, DbError>>;

    fn query(&self, stmt: &'static Stmt, args: Vec<Value>) -> impl Future<Output = Result<Vec<Row>, DbError>>;

    /// Statements without arguments that are not declared with `statements!`: transaction control and partitions.
    fn batch(&self, sql: &str) -> impl Future<Output = Result<(), DbError>>;

    /// Whether this is PostgreSQL, for the few operations that only one of them has.
    fn is_postgres(&self) -> bool;
}
