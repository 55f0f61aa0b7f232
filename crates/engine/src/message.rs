//! What a webhook endpoint is sent, be it an event of the tenant or a task's own message.

use interlock_core::json::Json;
use serde::{Deserialize, Serialize};

/// A message as it is stored in the outbox: the id that receivers know it by, and the body that is signed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub id: String,
    #[serde(rename = "type")]
    pub event: String,
    pub body: Json,
}
