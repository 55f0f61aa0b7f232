//! What stands in a database of PostgreSQL: a store's tables, or another program's.

use crate::error::CorruptRow;
use crate::value::Row;

/// How many columns the store's own `schema_migrations` has. Other programs keep a table of this name too.
const RECORD_COLUMNS: i64 = 4;

/// What stands in a database, counted.
#[derive(Default)]
pub(crate) struct TablesHere {
    /// Without those of extensions.
    tables: i64,
    /// Columns of a table that is called as the store's record of migrations is.
    record: i64,
    /// Those of them that the store's own has.
    own: i64,
    /// The names of the tables that lack their primary key, with spaces between them.
    unkeyed: String,
}

impl TablesHere {
    /// A row of the statement `TABLES_HERE`.
    pub fn read(row: &mut Row) -> Result<Self, CorruptRow> {
        Ok(Self {
            tables: row.int("tables")?,
            record: row.int("record")?,
            own: row.int("own")?,
            unkeyed: row.text("unkeyed")?,
        })
    }

    /// Whether nothing here is a store's, although something is there.
    pub const fn of_others(&self) -> bool {
        self.tables > 0 && self.record == 0
    }

    /// Whether another program has a table that the store needs for itself.
    pub const fn in_the_way(&self) -> bool {
        self.record > 0 && self.own != RECORD_COLUMNS
    }

    /// The tables of tenants that have no primary keys, which a dump brings after all rows: it was loaded in part.
    pub fn unkeyed(&self) -> impl Iterator<Item = &str> {
        self.unkeyed.split_whitespace()
    }
}
