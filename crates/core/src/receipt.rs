//! Receipts: the durable record of one effect. The intent is committed before the first byte is sent, the outcome
//! after the answer; what a crash leaves between the two is in doubt, and is never tried again blindly.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::ReceiptId;
use crate::json::Json;
use crate::state::{EffectClass, ReceiptState};
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Receipt {
    pub id: ReceiptId,
    pub position: u32,
    pub iteration: u32,
    pub attempt: u32,
    /// Unique in the tenant; the same for every automatic retry of the same effect.
    pub key: String,
    pub effect: EffectClass,
    pub state: ReceiptState,
    pub request: Json,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Json>,
    pub intent_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome_at: Option<Timestamp>,
    /// The outcome came after the attempt had been given up.
    #[serde(default)]
    pub late: bool,
}
