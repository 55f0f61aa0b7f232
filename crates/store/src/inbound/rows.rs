use interlock_core::ids::{InboundId, KeyId, SignalId, TenantId};
use interlock_core::json::Json;
use interlock_core::state::IdempotencyState;
use interlock_core::time::Timestamp;
use interlock_core::trigger::Source;

use crate::secrets::Secrets;

/// An address at which a tenant takes webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboundRow {
    pub tenant: TenantId,
    pub id: InboundId,
    pub name: String,
    pub source: Source,
    pub header: Option<String>,
    pub secondary: bool,
    pub paused: bool,
    pub secrets: Secrets,
    pub created_at: Timestamp,
    /// A person, or the id of a key that no person owns.
    pub created_by: Option<String>,
    /// The person who gave it its present secret, where that is not the person who made it.
    pub secret_by: Option<String>,
}

impl InboundRow {
    /// All people who have held a secret of it, and so could have sent what came, and the key that gave it its present one.
    pub fn makers(&self) -> Vec<String> {
        let person = self.created_by.as_ref().filter(|name| name.parse::<KeyId>().is_err());
        person.into_iter().chain(self.secret_by.as_ref().filter(|by| Some(*by) != person)).cloned().collect()
    }
}

/// No endpoint has this id.
const NO_ENDPOINT: InboundId = InboundId(uuid::Uuid::nil());

/// Names one delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRef {
    pub tenant: TenantId,
    pub endpoint: InboundId,
    pub key: String,
}

impl DeliveryRef {
    /// A signal that starts workflows is a delivery too, at no endpoint's address.
    pub fn of_signal(tenant: TenantId, signal: SignalId) -> Self {
        Self { tenant, endpoint: NO_ENDPOINT, key: signal.to_string() }
    }

    pub fn is_signal(&self) -> bool {
        self.endpoint == NO_ENDPOINT
    }

    /// The client that the idempotency key belongs to.
    pub fn client(&self) -> String {
        self.endpoint.to_string()
    }
}

/// What came in.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryRow {
    pub at: DeliveryRef,
    pub event: String,
    pub payload: Json,
    pub received_at: Timestamp,
    pub retry_at: Option<Timestamp>,
}

/// What came in, with the record of its key.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryRecord {
    pub delivery: DeliveryRow,
    pub state: IdempotencyState,
    pub attempts: u32,
    pub response: Option<Json>,
    pub error: Option<String>,
}
