use interlock_core::ids::RunId;
use interlock_core::run::decision::DecisionRecord;
use interlock_core::time::Timestamp;

/// A decision, and whose run it was about.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionRow {
    pub run: RunId,
    pub at: Timestamp,
    pub record: DecisionRecord,
}
