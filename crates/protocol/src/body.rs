//! Reading messages that carry payloads. serde buffers tagged enums and flattened fields before it looks at them,
//! which would lose a payload's own text; so these messages are read as flat records first, and the record is
//! checked. That also lets them refuse unknown fields.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::cost::Cost;
use interlock_core::ids::{ReceiptId, RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::plan::retry::StepError;
use interlock_core::state::EffectClass;
use interlock_core::time::Millis;
use interlock_core::work::credential::CredentialUsed;
use interlock_core::work::output::{OutputBatch, OutputChunk};
use interlock_core::work::{
    AttemptRef, EffectAnswer, EffectIntent, EffectOutcome, OutboundMessage, Report, ReportedOutcome, WorkerHello,
};
use serde::{Deserialize, Deserializer, Serialize};

/// A [`Report`] as the body of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "Report", try_from = "ReportRecord")]
pub struct ReportBody(pub Report);

/// An [`EffectIntent`] as the body of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "EffectIntent", from = "IntentRecord")]
pub struct IntentBody(pub EffectIntent);

/// An [`EffectOutcome`] as the body of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "EffectOutcome", from = "OutcomeRecord")]
pub struct OutcomeBody(pub EffectOutcome);

/// An [`EffectAnswer`] as the body of a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "EffectAnswer", try_from = "AnswerRecord")]
pub struct AnswerBody(pub EffectAnswer);

/// A [`WorkerHello`] as the body of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "WorkerHello", from = "HelloRecord")]
pub struct HelloBody(pub WorkerHello);

/// An [`OutputBatch`] as the body of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "OutputBatch", from = "OutputRecord")]
pub struct OutputBody(pub OutputBatch);

impl From<OutputBody> for OutputBatch {
    fn from(body: OutputBody) -> Self {
        body.0
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutputRecord {
    tenant: TenantId,
    run: RunId,
    position: u32,
    attempt: u32,
    epoch: u64,
    chunks: Vec<OutputChunk>,
}

impl From<OutputRecord> for OutputBody {
    fn from(record: OutputRecord) -> Self {
        let OutputRecord { tenant, run, position, attempt, epoch, chunks } = record;
        Self(OutputBatch { at: AttemptRef { tenant, run, position, attempt }, epoch, chunks })
    }
}

impl From<HelloBody> for WorkerHello {
    fn from(body: HelloBody) -> Self {
        body.0
    }
}

impl From<ReportBody> for Report {
    fn from(body: ReportBody) -> Self {
        body.0
    }
}

impl From<IntentBody> for EffectIntent {
    fn from(body: IntentBody) -> Self {
        body.0
    }
}

impl From<OutcomeBody> for EffectOutcome {
    fn from(body: OutcomeBody) -> Self {
        body.0
    }
}

impl From<AnswerBody> for EffectAnswer {
    fn from(body: AnswerBody) -> Self {
        body.0
    }
}

/// A payload that is there, even if it is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

fn missing(status: &str, field: &str) -> String {
    format!("`{status}` needs the field `{field}`")
}

fn superfluous(status: &str, field: &str) -> String {
    format!("`{status}` does not take the field `{field}`")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HelloRecord {
    worker: String,
    tenant: Option<TenantId>,
    queues: Vec<String>,
    slots: u32,
    build_id: Option<String>,
    tasks: Option<Vec<String>>,
    capabilities: Option<Vec<String>>,
    environments: Option<BTreeSet<String>>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

impl From<HelloRecord> for HelloBody {
    fn from(record: HelloRecord) -> Self {
        let HelloRecord { worker, tenant, queues, slots, build_id, tasks, capabilities, environments, labels } = record;
        Self(WorkerHello { worker, tenant, queues, slots, build_id, tasks, capabilities, environments, labels })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReportRecord {
    tenant: TenantId,
    run: RunId,
    position: u32,
    attempt: u32,
    epoch: u64,
    outcome: ReportedRecord,
    #[serde(default)]
    claim_next: bool,
    #[serde(default)]
    cost: Option<Box<Cost>>,
    #[serde(default)]
    credentials: Vec<CredentialUsed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Completed,
    Waiting,
    Retry,
    Dead,
    Released,
    UnknownTask,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReportedRecord {
    status: Status,
    #[serde(default, deserialize_with = "present")]
    output: Option<Json>,
    signal: Option<String>,
    key: Option<String>,
    timeout: Option<Millis>,
    outbound: Option<Vec<OutboundMessage>>,
    error: Option<StepError>,
    backoff: Option<Millis>,
}

impl ReportedRecord {
    /// Refuses fields that belong to another status, so that a misspelt report is not half believed.
    fn only(&self, status: &str, taken: &[&str]) -> Result<(), String> {
        let given = [
            ("output", self.output.is_some()),
            ("signal", self.signal.is_some()),
            ("key", self.key.is_some()),
            ("timeout", self.timeout.is_some()),
            ("outbound", self.outbound.is_some()),
            ("error", self.error.is_some()),
            ("backoff", self.backoff.is_some()),
        ];
        match given.into_iter().find(|(field, given)| *given && !taken.contains(field)) {
            Some((field, _)) => Err(superfluous(status, field)),
            None => Ok(()),
        }
    }
}

impl TryFrom<ReportedRecord> for ReportedOutcome {
    type Error = String;

    fn try_from(record: ReportedRecord) -> Result<Self, String> {
        Ok(match record.status {
            Status::Completed => {
                record.only("completed", &["output"])?;
                Self::Completed { output: record.output.ok_or_else(|| missing("completed", "output"))? }
            }
            Status::Waiting => {
                record.only("waiting", &["signal", "key", "timeout", "outbound"])?;
                Self::Waiting {
                    signal: record.signal.ok_or_else(|| missing("waiting", "signal"))?,
                    key: record.key,
                    timeout: record.timeout,
                    outbound: record.outbound.unwrap_or_default(),
                }
            }
            Status::Retry => {
                record.only("retry", &["error", "backoff"])?;
                Self::Retry { error: record.error.ok_or_else(|| missing("retry", "error"))?, backoff: record.backoff }
            }
            Status::Dead => {
                record.only("dead", &["error"])?;
                Self::Dead { error: record.error.ok_or_else(|| missing("dead", "error"))? }
            }
            Status::Released => {
                record.only("released", &[])?;
                Self::Released
            }
            Status::UnknownTask => {
                record.only("unknown_task", &[])?;
                Self::UnknownTask
            }
        })
    }
}

impl TryFrom<ReportRecord> for ReportBody {
    type Error = String;

    fn try_from(record: ReportRecord) -> Result<Self, String> {
        let ReportRecord { tenant, run, position, attempt, epoch, outcome, claim_next, cost, credentials } = record;
        let at = AttemptRef { tenant, run, position, attempt };
        Ok(Self(Report { at, epoch, outcome: outcome.try_into()?, claim_next, cost, credentials }))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IntentRecord {
    tenant: TenantId,
    run: RunId,
    position: u32,
    attempt: u32,
    epoch: u64,
    template: String,
    number: u32,
    effect: EffectClass,
    request: Json,
}

impl From<IntentRecord> for IntentBody {
    fn from(record: IntentRecord) -> Self {
        let IntentRecord { tenant, run, position, attempt, epoch, template, number, effect, request } = record;
        let at = AttemptRef { tenant, run, position, attempt };
        Self(EffectIntent { at, epoch, template, number, effect, request })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutcomeRecord {
    tenant: TenantId,
    run: RunId,
    position: u32,
    attempt: u32,
    epoch: u64,
    receipt: ReceiptId,
    happened: bool,
    #[serde(default, deserialize_with = "present")]
    response: Option<Json>,
}

impl From<OutcomeRecord> for OutcomeBody {
    fn from(record: OutcomeRecord) -> Self {
        let OutcomeRecord { tenant, run, position, attempt, epoch, receipt, happened, response } = record;
        let at = AttemptRef { tenant, run, position, attempt };
        Self(EffectOutcome { at, epoch, receipt, happened, response })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum EffectAnswerKind {
    Perform,
    Performed,
    Denied,
    NeedsApproval,
}

#[derive(Deserialize)]
struct AnswerRecord {
    answer: EffectAnswerKind,
    receipt: Option<ReceiptId>,
    key: Option<String>,
    response: Option<Json>,
    #[serde(default)]
    reasons: Vec<String>,
}

impl TryFrom<AnswerRecord> for AnswerBody {
    type Error = String;

    fn try_from(record: AnswerRecord) -> Result<Self, String> {
        let AnswerRecord { answer, receipt, key, response, reasons } = record;
        let receipt = |answer| receipt.ok_or_else(|| missing(answer, "receipt"));
        Ok(Self(match answer {
            EffectAnswerKind::Perform => {
                let key = key.ok_or_else(|| missing("perform", "key"))?;
                EffectAnswer::Perform { receipt: receipt("perform")?, key }
            }
            EffectAnswerKind::Performed => EffectAnswer::Performed { receipt: receipt("performed")?, response },
            EffectAnswerKind::Denied => EffectAnswer::Denied { reasons },
            EffectAnswerKind::NeedsApproval => EffectAnswer::NeedsApproval { reasons },
        }))
    }
}

#[cfg(test)]
mod tests;
