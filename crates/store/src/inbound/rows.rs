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
    /// Who gave it its present secret, where that is not the person who made it, and behind a blank who gave it the one before:
    /// [`InboundRow::secret_from`] writes it.
    pub secret_by: Option<String>,
}

impl InboundRow {
    /// All people who have held a secret of it that counts, and so could have sent what came, and the keys that gave it one. Its
    /// maker is always one of them.
    pub fn makers(&self, now: Timestamp) -> Vec<String> {
        let person = self.created_by.as_ref().filter(|name| name.parse::<KeyId>().is_err());
        let previous_counts = self.secrets.previous.as_ref().is_some_and(|(_, until)| now < *until);
        let mut makers: Vec<String> = person.into_iter().cloned().collect();
        for by in self.secret_by.iter().flat_map(|by| by.split(' ')).take(1 + usize::from(previous_counts)) {
            if !makers.iter().any(|maker| maker == by) {
                makers.push(by.to_owned());
            }
        }
        makers
    }

    /// Who has given it its secrets, now that this one gives it another. Neither names of people nor ids of keys have blanks.
    pub fn secret_from(&self, by: Option<&str>) -> Option<String> {
        let before = self.secret_by.as_deref().and_then(|by| by.split(' ').next());
        let named: Vec<&str> = by.into_iter().chain(before).collect();
        (!named.is_empty()).then(|| named.join(" "))
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

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn whoever_gave_a_secret_that_counts_could_have_sent_what_came() {
        let made = InboundRow {
            tenant: TenantId(Uuid::nil()),
            id: NO_ENDPOINT,
            name: "hook".into(),
            source: Source::Generic,
            header: None,
            secondary: false,
            paused: false,
            secrets: Secrets { current: "a".into(), previous: None },
            created_at: Timestamp(0),
            created_by: Some("ada".into()),
            secret_by: None,
        };
        assert_eq!(made.makers(Timestamp(5)), ["ada"]);
        let rotated = |row: &InboundRow, by: &str| InboundRow {
            secret_by: row.secret_from(Some(by)),
            secrets: Secrets { current: "b".into(), previous: Some(("a".into(), Timestamp(10))) },
            ..row.clone()
        };
        let by_dan = rotated(&made, "dan");
        assert_eq!(by_dan.makers(Timestamp(5)), ["ada", "dan"]);
        let by_eve = rotated(&by_dan, "eve");
        assert_eq!(by_eve.makers(Timestamp(9)), ["ada", "eve", "dan"], "dan's still counts");
        assert_eq!(by_eve.makers(Timestamp(10)), ["ada", "eve"]);
        assert_eq!(rotated(&by_eve, "ada").makers(Timestamp(5)), ["ada", "eve"]);
    }
}
