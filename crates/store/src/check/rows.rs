use interlock_core::ids::TenantId;

/// The check that finds a table without its primary key. All others find rows.
pub const TABLE_KEY: &str = "TABLE_KEY";

/// One thing that `check` found to be wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub check: &'static str,
    pub tenant: Option<TenantId>,
    pub row: String,
    pub what: String,
}

/// How far a check has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckProgress {
    /// Of those that look for rows that contradict each other.
    pub statements: u64,
    pub runs: u64,
}
