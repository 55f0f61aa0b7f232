//! Whether the tables of a database are a store's.

use super::connect::PgDb;
use crate::db::Db as _;
use crate::error::OpenError;
use crate::meta;
use crate::options::StoreUrl;

/// How many columns the store's own `schema_migrations` has. Other programs keep a table of this name too.
const RECORD_COLUMNS: i64 = 4;

/// What stands in a database, counted.
#[derive(Default)]
pub(super) struct TablesHere {
    tables: i64,
    /// Columns of a table that is called as the store's record of migrations is.
    record: i64,
    /// Those of them that the store's own has.
    own: i64,
    unkeyed: i64,
}

impl TablesHere {
    pub async fn look(db: &PgDb) -> Result<Self, OpenError> {
        let mut rows = db.query(&meta::sql::TABLES_HERE, vec![]).await?;
        let Some(row) = rows.first_mut() else { return Ok(Self::default()) };
        Ok(Self {
            tables: row.int("tables")?,
            record: row.int("record")?,
            own: row.int("own")?,
            unkeyed: row.int("unkeyed")?,
        })
    }

    /// Whether nothing here is a store's, although something is there.
    const fn of_others(&self) -> bool {
        self.tables > 0 && self.record == 0
    }

    /// Whether another program has a table that the store needs for itself.
    const fn in_the_way(&self) -> bool {
        self.record > 0 && self.own != RECORD_COLUMNS
    }

    /// Whether tables of tenants have no primary keys, which a dump brings after all rows.
    pub const fn loaded_in_part(&self) -> bool {
        self.unkeyed > 0
    }
}

/// Refuses the database of another program. One in which nothing is gets its tables from a server; one that is only looked at
/// gets none.
pub(super) async fn check(db: &PgDb, address: &str, makes_tables: bool) -> Result<(), OpenError> {
    let found = TablesHere::look(db).await?;
    if found.in_the_way() {
        return Err(no_store(address, "its table `schema_migrations` is another program's, and stays as it is"));
    }
    if found.of_others() && !makes_tables {
        return Err(no_store(address, "the tables in it are another program's"));
    }
    Ok(())
}

pub(super) fn no_store(address: &str, what: &str) -> OpenError {
    OpenError::NotAStore { path: StoreUrl::Postgres(address.to_owned()).to_string(), what: what.to_owned() }
}
