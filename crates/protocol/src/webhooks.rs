//! What is asked and answered about webhooks, both ways.

use interlock_core::ids::{InboundId, OutboundId, OutboxId, RunId};
use interlock_core::json::Json;
use interlock_core::state::IdempotencyState;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::trigger::{EndpointState, Source};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where the calls live.
pub mod path {
    /// The addresses at which webhooks are taken. The second is also where senders send to.
    pub const INBOUND: &str = "/api/v1/webhooks";
    pub const INBOUND_ONE: &str = "/api/v1/webhooks/{endpoint}";
    pub const INBOUND_ROTATE: &str = "/api/v1/webhooks/{endpoint}/rotate";
    pub const INBOUND_DELIVERIES: &str = "/api/v1/webhooks/{endpoint}/deliveries";
    /// The addresses that are told of events.
    pub const OUTBOUND: &str = "/api/v1/webhook-endpoints";
    pub const OUTBOUND_ONE: &str = "/api/v1/webhook-endpoints/{endpoint}";
    pub const OUTBOUND_ROTATE: &str = "/api/v1/webhook-endpoints/{endpoint}/rotate";
    pub const OUTBOUND_ENABLE: &str = "/api/v1/webhook-endpoints/{endpoint}/enable";
    pub const OUTBOUND_DISABLE: &str = "/api/v1/webhook-endpoints/{endpoint}/disable";
    pub const OUTBOUND_DELIVERIES: &str = "/api/v1/webhook-endpoints/{endpoint}/deliveries";
    /// Messages of every kind that were given up.
    pub const DEAD_LETTERS: &str = "/api/v1/dead-letters";
    pub const DEAD_LETTERS_REPLAY: &str = "/api/v1/dead-letters/replay";
    pub const OUTBOUND_REPLAY: &str = "/api/v1/webhook-endpoints/{endpoint}/replay";
}

/// An address to be made, at which webhooks are taken.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewInbound {
    /// Unique in the tenant; `on.webhook.endpoint` of a workflow names it.
    pub name: String,
    pub source: Source,
    /// Where a generic sender puts its signature; `x-signature-256` where omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// GitHub: the same pull request, event, action and head within 5 s are one delivery. On where omitted.
    #[serde(default = "on")]
    pub secondary: bool,
    /// The sender's secret, where the sender has made one (Slack does); else one is made and told once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

const fn on() -> bool {
    true
}

/// What may change about an address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeInbound {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secondary: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// Another secret; one is made where omitted.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rotate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// An address at which webhooks are taken. Its secret is not shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InboundView {
    pub endpoint_id: InboundId,
    pub name: String,
    pub source: Source,
    /// Where the sender sends to.
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    pub secondary: bool,
    pub paused: bool,
    /// Until when the secret before the current one counts too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_secret_until: Option<Timestamp>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
}

/// An address with the secret that was made for it, which is told this once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InboundMade {
    #[serde(flatten)]
    pub endpoint: InboundView,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Of an answer to a repeated request: the fields that only the first answer had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown_once: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InboundList {
    pub endpoints: Vec<InboundView>,
}

/// What becomes of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Delivered {
    /// The delivery's key: repeats of it get this answer again.
    pub delivery: String,
    pub status: IdempotencyState,
    /// The earlier delivery that said the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate_of: Option<String>,
    #[serde(default)]
    pub runs: Vec<DeliveredRun>,
    #[serde(default)]
    pub skipped: Vec<SkippedRun>,
    /// Where it started nothing: the triggers of workflows that it missed, at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<MissedTrigger>,
}

/// A trigger that did not take a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MissedTrigger {
    pub workflow: String,
    /// The part of `on:`, such as `github`.
    pub on: String,
    /// What did not fit: `endpoint`, `event`, `action`, `repository`, `source` or `filter`.
    pub failed: String,
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveredRun {
    pub workflow: String,
    pub run_id: RunId,
}

/// A workflow that takes the delivery, and no run of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SkippedRun {
    pub workflow: String,
    pub code: String,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
}

/// A delivery that came in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct InboundDelivery {
    pub delivery: String,
    pub event: String,
    pub received_at: Timestamp,
    pub status: IdempotencyState,
    pub attempts: u32,
    /// The answer that was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct InboundDeliveryList {
    pub deliveries: Vec<InboundDelivery>,
    /// Pass it as `before` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<Timestamp>,
}

/// An address to be told of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewOutbound {
    /// A name for it, which takes the place of the id everywhere: `webhook:NAME` is where a task's message goes. Unique in
    /// the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Names of events; `session.*` takes all of a kind. All where omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
    /// Only events of runs of these workflows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflows: Option<Vec<String>>,
}

/// An address that is told of events. Its secret is not shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutboundView {
    pub endpoint_id: OutboundId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflows: Option<Vec<String>>,
    pub state: EndpointState,
    /// Why it is disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_secret_until: Option<Timestamp>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
}

/// An endpoint with the secret that was made for it, which is told this once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutboundMade {
    #[serde(flatten)]
    pub endpoint: OutboundView,
    /// `whsec_…`; absent in the answer to a repeated request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub secret: String,
    /// Of an answer to a repeated request: the fields that only the first answer had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown_once: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutboundList {
    pub endpoints: Vec<OutboundView>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Enable {
    /// Leave out what happened while it was disabled.
    #[serde(default)]
    pub skip_missed: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Disable {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How far a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    Pending,
    Delivered,
    /// Given up; a replay queues it again.
    Dead,
}

/// A message to an endpoint, with every try to bring it there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutboundDelivery {
    pub delivery_id: OutboxId,
    /// The `webhook-id` that the receiver sees; a replay keeps it.
    pub message_id: String,
    pub event: String,
    pub run_id: RunId,
    pub state: MessageState,
    pub created_at: Timestamp,
    /// When it is tried next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Timestamp>,
    pub attempts: Vec<OutboundAttempt>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutboundAttempt {
    pub attempt: u32,
    pub at: Timestamp,
    pub duration_ms: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The beginning of the answer; what a terminal would obey is spelled out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutboundDeliveryList {
    pub deliveries: Vec<OutboundDelivery>,
    /// Pass it as `before` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<OutboxId>,
}

/// What is sent again: one delivery, or what was queued in a span of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<OutboxId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// Now where omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    /// Of a span, only what was given up.
    #[serde(default)]
    pub dead_only: bool,
}

/// A message that was given up: to a webhook endpoint or to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterView {
    pub message_id: OutboxId,
    /// `webhook:ENDPOINT_ID` or `signal:RUN_ID/TYPE`.
    pub destination: String,
    /// The run that sent it, or that it tells of.
    pub run_id: RunId,
    pub created_at: Timestamp,
    pub dead_at: Timestamp,
    /// How often it was tried.
    pub attempts: u32,
    /// Why it was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterList {
    pub dead_letters: Vec<DeadLetterView>,
    /// Pass it as `before` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<OutboxId>,
}

/// Which messages are sent again: one, or all that were given up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayDead {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<OutboxId>,
    /// The newest thousand of them; ask again for the rest.
    #[serde(default)]
    pub all: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Replayed {
    pub queued: usize,
}
