//! The tenants' audit logs, as rows: blocks of entries, the nodes of their trees, what waits to be logged. What they mean,
//! and every hash in them, is the engine's business.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::{AuditBlockRow, AuditDetailsRow, AuditLogRow, AuditNote, AuditTileRow, FeedSpan, JournalRow};
pub(crate) use writes::add_note;
pub use writes::{AddAuditNote, AppendAudit, AuditAppended, EraseAuditDetails};
