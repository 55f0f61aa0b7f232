//! Reads on PostgreSQL.

use crate::error::ReadError;
use crate::sql::Stmt;
use crate::value::{Row, Value};

pub(crate) struct PgReads;

impl PgReads {
    pub async fn rows_many(&self, _queries: Vec<(&'static Stmt, Vec<Value>)>) -> Result<Vec<Vec<Row>>, ReadError> {
        Err(ReadError::Closed)
    }
}
