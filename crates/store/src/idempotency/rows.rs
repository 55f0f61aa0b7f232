use interlock_core::ids::RunId;
use interlock_core::json::{Hash, Json};
use interlock_core::state::{Admission, IdempotencyState};
use interlock_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// What makes a repeated request one request.
#[derive(Debug, Clone, PartialEq)]
pub struct IdempotencyRecord {
    pub source: String,
    pub request_hash: Hash,
    pub state: IdempotencyState,
    pub run: Option<RunId>,
    pub response: Option<Json>,
    pub error: Option<String>,
    pub attempts: u32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub expires_at: Timestamp,
    pub lock_expires_at: Option<Timestamp>,
}

/// What a request to start a run was answered, kept as the `response` under its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartAnswer {
    pub admission: Admission,
}
