//! An evidence bundle: what a run did, as an in-toto statement. The statement is a function of the run and of the log, so
//! the same run makes the same bytes whenever it is asked for.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::ids::{ApprovalId, DecisionId, ReceiptId, RunId, TenantId};
use interlock_core::json::{Hash, HashHex, Json, canonical};
use interlock_core::run::approval::Vote;
use interlock_core::run::origin::Origin;
use interlock_core::state::StepKind;
use interlock_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::costs::CostFacts;
use crate::credentials::CredentialFacts;
use crate::details::PayloadFacts;
use crate::envelope;
use crate::export::LoggedEntry;
use crate::key::SigningKey;
use crate::leave::LeaveFacts;
use crate::model_attempts::ModelAttempts;

pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// The predicate type of an evidence bundle. A name, not an address: nothing is fetched.
pub const PREDICATE_TYPE: &str = "urn:interlock:evidence:run:v1";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statement {
    #[serde(rename = "_type")]
    pub kind: String,
    pub subject: Vec<StatementSubject>,
    pub predicate_type: String,
    pub predicate: Predicate,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementSubject {
    pub name: String,
    pub digest: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predicate {
    /// 0 is the bundle itself; what came late makes an addendum, numbered from 1.
    pub number: u32,
    /// The sha256 of the bundle before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<HashHex>,
    pub record: Record,
    /// One, unless the tenant's log began anew while the run was under way.
    pub logs: Vec<LogPart>,
}

/// What happened. Inputs and outputs by hash and length only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    pub run: RunFacts,
    pub steps: Vec<StepFacts>,
    /// What policy said of the run's actions, each with the hash of the bundle that said it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<DecisionFacts>,
    /// Steps that were handed out unasked and effects, each with the hash of the bundle that allowed it. None where the
    /// release that made the bundle did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leave: Option<Vec<LeaveFacts>>,
    pub approvals: Vec<ApprovalFacts>,
    pub receipts: Vec<ReceiptFacts>,
    /// What the run has cost, by provider, model and unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<CostFacts>,
    /// How often it has asked models, and how many of these attempts have no known price. None where it has asked none, or the
    /// release that made the bundle did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_attempts: Option<ModelAttempts>,
    /// The credentials that its steps were given: ids and times, never a value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials_used: Vec<CredentialFacts>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunFacts {
    pub tenant: TenantId,
    pub run: RunId,
    pub workspace: String,
    pub workflow: String,
    pub workflow_version: u32,
    /// The hash of the plan that the version came down to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<HashHex>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    pub trigger: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_run_id: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<RunId>,
    pub state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub created_at: Timestamp,
    pub finished_at: Timestamp,
    /// The seq of the run's last event.
    pub version: u64,
    pub inputs: PayloadFacts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<PayloadFacts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
}

impl RunFacts {
    /// The hash of what the run was made of, as its first event has it; none where its plan is not known.
    pub fn origin(&self) -> Option<Hash> {
        let origin = Origin {
            created_at: self.created_at,
            inputs: self.inputs.sha256,
            plan: self.plan?,
            resumed_from: self.resumed_from,
            root_run_id: self.root_run_id,
            run: self.run,
            started_by: self.started_by.as_deref(),
            subject: self.subject.as_deref(),
            tenant: self.tenant,
            trigger: &self.trigger,
            version: self.workflow_version,
            workflow: &self.workflow,
            workspace: &self.workspace,
        };
        Some(origin.digest())
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepFacts {
    pub position: u32,
    pub key: String,
    pub kind: String,
    pub state: String,
    pub attempt: u32,
    pub failures: u32,
    pub iteration: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<PayloadFacts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
}

/// The positions of the steps that ask a model.
pub fn model_steps(steps: &[StepFacts]) -> BTreeSet<u32> {
    steps.iter().filter(|step| step.kind == StepKind::Model.as_str()).map(|step| step.position).collect()
}

/// What policy said of one action. The document that it was asked about holds the action's fields: by hash and length only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionFacts {
    pub decision: DecisionId,
    pub position: u32,
    pub iteration: u32,
    pub attempt: u32,
    pub operation: String,
    pub verdict: String,
    pub tier: String,
    /// The digest of the action.
    pub action: HashHex,
    /// The hash of the rules that were asked.
    pub bundle: HashHex,
    pub evaluator: String,
    pub input: PayloadFacts,
    /// All that the rules answered; nothing where they could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalFacts {
    pub approval: ApprovalId,
    pub position: u32,
    pub purpose: String,
    pub state: String,
    pub quorum: u32,
    pub approvers: Vec<String>,
    pub excluded: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What exactly was approved, by hash and length: it holds the action's input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<PayloadFacts>,
    pub requested_at: Timestamp,
    pub expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<Timestamp>,
    pub votes: Vec<Vote>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptFacts {
    pub receipt: ReceiptId,
    pub position: u32,
    pub iteration: u32,
    pub attempt: u32,
    pub key: String,
    pub effect: String,
    pub state: String,
    pub request: PayloadFacts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<PayloadFacts>,
    pub intent_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome_at: Option<Timestamp>,
    pub late: bool,
}

/// The text that an entry's pin is taken of.
pub fn pinned_text<T: Serialize>(facts: &T) -> String {
    let bytes = canonical(facts).expect("facts are plain data");
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

/// The run's entries, and the proof that they are in the tenant's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogPart {
    /// The signed head that the proofs lead to.
    pub checkpoint: String,
    pub entries: Vec<ProvenEntry>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProvenEntry {
    pub logged: LoggedEntry,
    pub proof: Vec<HashHex>,
}

impl Predicate {
    /// The run's entries, in the order of the logs.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &ProvenEntry> {
        self.logs.iter().flat_map(|log| &log.entries)
    }
}

impl Statement {
    pub fn new(predicate: Predicate) -> Self {
        let digest = record_digest(&predicate.record).to_string();
        let subject = StatementSubject {
            name: predicate.record.run.run.to_string(),
            digest: BTreeMap::from([("sha256".to_owned(), digest)]),
        };
        Self {
            kind: STATEMENT_TYPE.to_owned(),
            subject: vec![subject],
            predicate_type: PREDICATE_TYPE.to_owned(),
            predicate,
        }
    }

    /// The bundle: the statement's canonical bytes in a signed envelope.
    pub fn sign(&self, key: &SigningKey) -> Json {
        let payload = canonical(self).expect("a statement is plain data");
        Json::of(&envelope::sign(&payload, key)).expect("an envelope is plain data")
    }
}

/// The hash of what happened: what the statement is about.
pub fn record_digest(record: &Record) -> Hash {
    Hash::of(pinned_text(record).as_bytes())
}
