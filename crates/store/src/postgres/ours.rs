//! Whether the tables of a database are a store's.

use super::connect::PgDb;
use crate::db::Db as _;
use crate::error::OpenError;
use crate::meta;
use crate::meta::tables::TablesHere;
use crate::options::StoreUrl;

/// What to do about a database that is another program's.
const NEEDS_OWN: &str = "Interlock needs a database of its own: make one (`createdb`), and name that";

pub(super) async fn look(db: &PgDb) -> Result<TablesHere, OpenError> {
    let mut rows = db.query(&meta::sql::TABLES_HERE, vec![]).await?;
    let Some(row) = rows.first_mut() else { return Ok(TablesHere::default()) };
    Ok(TablesHere::read(row)?)
}

/// Refuses the database of another program, also to a server that would make its tables beside the others: their names may be
/// the same. One in which nothing is passes.
pub(super) async fn check(db: &PgDb, address: &str) -> Result<(), OpenError> {
    let found = look(db).await?;
    if found.in_the_way() {
        let what = format!("its table `schema_migrations` is another program's, and stays as it is; {NEEDS_OWN}");
        return Err(no_store(address, &what));
    }
    if found.of_others() {
        let what = format!("the tables in it are another program's, and stay as they are; {NEEDS_OWN}");
        return Err(no_store(address, &what));
    }
    Ok(())
}

pub(super) fn no_store(address: &str, what: &str) -> OpenError {
    OpenError::NotAStore { path: StoreUrl::Postgres(address.to_owned()).to_string(), what: what.to_owned() }
}
