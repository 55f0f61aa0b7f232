//! The committer on PostgreSQL.

use crate::error::DbError;
use crate::lane::{Committer, Group};
use crate::submit::Outcome;

pub(crate) struct PgCommitter;

impl Committer for PgCommitter {
    async fn commit(&mut self, _group: &Group, _again: bool) -> Result<Vec<Outcome>, DbError> {
        Err(DbError::Other("not yet".into()))
    }
}
