//! Identities. Every id is a UUIDv7 made outside of core and shown with a prefix (`run_…`), so that a reader,
//! a log line or a URL says what kind of thing it names, and so that a wrong kind is refused when parsed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use crate::json::Hash;
use crate::text::article::with_article;
use crate::time::Timestamp;

/// Why a text is not an id of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not the id of {}: expected `{prefix}_` followed by 32 hexadecimal digits", with_article(kind))]
pub struct InvalidId {
    pub text: String,
    pub kind: &'static str,
    pub prefix: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub Uuid);

        impl $name {
            pub const PREFIX: &'static str = $prefix;

            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "_{}"), self.0.simple())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let invalid = || InvalidId { text: text.chars().take(80).collect(), kind: $kind, prefix: $prefix };
                let hex = text.strip_prefix(concat!($prefix, "_")).ok_or_else(invalid)?;
                if hex.len() != 32 {
                    return Err(invalid());
                }
                Uuid::try_parse(hex).map(Self).map_err(|_| invalid())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::Type::String)
                    .description(Some(format!("The id of {}.", with_article($kind))))
                    .pattern(Some(concat!("^", $prefix, "_[0-9a-fA-F]{32}$")))
                    .into()
            }
        }

        impl utoipa::ToSchema for $name {}

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id!(
    /// The isolation boundary that owns everything.
    TenantId, "ten", "tenant"
);
id!(
    /// One execution of a workflow version.
    RunId, "run", "run"
);
id!(
    /// One registration of a worker process, with one renewable lease.
    SessionId, "ses", "worker session"
);
id!(
    /// A durable request for human authorisation.
    ApprovalId, "apr", "approval"
);
id!(
    /// The durable record of one effect.
    ReceiptId, "rcp", "receipt"
);
id!(
    /// A decision on one action.
    DecisionId, "dec", "decision"
);
id!(
    /// A message from outside that wakes a waiting step.
    SignalId, "sig", "signal"
);
id!(
    /// A message to the outside, committed with the change that causes it.
    OutboxId, "out", "outbox message"
);
id!(
    /// One API key.
    KeyId, "key", "key"
);
id!(
    /// A worker that has enrolled: it has this name in its certificates, and keeps it through their renewals.
    WorkerIdentityId, "wid", "worker identity"
);
id!(
    /// One person's account in a tenant.
    UserId, "usr", "user"
);
id!(
    /// A person's right to decide, lent to another for a time.
    DelegationId, "dlg", "delegation"
);
id!(
    /// A change of the rules or of who has access that a second admin must agree to.
    ChangeId, "chg", "change"
);
id!(
    /// What starts a workflow at times.
    ScheduleId, "sch", "schedule"
);
id!(
    /// An address at which a tenant takes webhooks.
    InboundId, "whi", "inbound webhook endpoint"
);
id!(
    /// An address to which a tenant's events are sent.
    OutboundId, "who", "outbound webhook endpoint"
);
id!(
    /// One action on many runs.
    JobId, "job", "bulk job"
);
id!(
    /// A tenant's connection to Slack.
    SlackId, "slk", "Slack connection"
);
id!(
    /// One server process; its lanes and wake-ups carry this id.
    ServerId, "srv", "server"
);

/// An id for something that a change set makes. It is drawn from the run, the version and a number, so that core
/// needs no randomness and deciding again names the same thing; it sorts by time like every other id.
pub fn derived(run: RunId, version: u64, number: u32, now: Timestamp) -> Uuid {
    let mut seed = [0u8; 28];
    seed[..16].copy_from_slice(run.as_bytes());
    seed[16..24].copy_from_slice(&version.to_be_bytes());
    seed[24..].copy_from_slice(&number.to_be_bytes());
    let hash = Hash::of(&seed).0;
    let mut random = [0u8; 10];
    random.copy_from_slice(&hash[..10]);
    uuid::Builder::from_unix_timestamp_millis(now.0.max(0) as u64, &random).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_the_way_through_text() {
        let id = RunId(Uuid::from_u128(0x0192_f0c1_0000_7000_8000_0000_0000_002a));
        assert_eq!(id.to_string(), "run_0192f0c100007000800000000000002a");
        assert_eq!(id.to_string().parse::<RunId>(), Ok(id));
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(serde_json::from_str::<RunId>(&json).unwrap(), id);
    }

    #[test]
    fn a_wrong_kind_or_length_is_refused_by_name() {
        let error = "ten_0192f0c100007000800000000000002a".parse::<RunId>().unwrap_err();
        assert!(error.to_string().contains("is not the id of a run"), "{error}");
        assert!("run_0192".parse::<RunId>().is_err());
        assert!("run_0192f0c1-0000-7000-8000-00000000002a".parse::<RunId>().is_err());
    }
}
