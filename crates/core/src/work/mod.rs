//! What passes between the engine and a worker, wherever the worker runs: an [`Assignment`] out, a [`Report`] back.
//! Every message names the run, the step and the attempt; the attempt fences, and repeating a message is harmless.

mod bounds;
pub mod controls;
pub mod credential;
pub mod destination;
pub mod fault;
pub mod notice;
pub mod offer;
pub mod output;
pub mod terms;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::cost::Cost;
use crate::ids::{ReceiptId, RunId, SessionId, SignalId, TenantId};
use crate::json::Json;
pub use crate::plan::EFFECTS;
use crate::plan::StepSpec;
use crate::plan::command::{needed_label, needed_latency, needed_segment};
use crate::plan::retry::StepError;
use crate::planted::{Bug, is_planted};
use crate::run::Run;
use crate::state::{EffectClass, StepKind, TaskType};
use crate::time::{Millis, Timestamp};
use credential::CredentialUsed;
pub use terms::WorkerTerms;

/// Names one attempt of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub struct AttemptRef {
    pub tenant: TenantId,
    pub run: RunId,
    pub position: u32,
    pub attempt: u32,
}

/// A claimed step, handed to a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Assignment {
    #[serde(flatten)]
    pub at: AttemptRef,
    /// The store's epoch: a claim made before a restore is worthless after it.
    pub epoch: u64,
    /// The run at the root of a chain of resumed runs; part of every effect key.
    pub root_run: RunId,
    pub workflow: String,
    pub step: String,
    pub kind: StepKind,
    /// The name of the task that is to run.
    pub handler: String,
    pub iteration: u32,
    pub effect: EffectClass,
    pub input: Json,
    pub task_type: TaskType,
    /// The payload of the signal that woke the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<SignalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Timestamp>,
    /// The W3C trace context that the run was started in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// What tracing systems have added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracestate: Option<String>,
    /// The environment in which the run acts: `prod`, `staging`, `dev`, `none` or `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// How a command is to be run that carries the step out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Box<CommandTerms>>,
}

/// How a command is to be run. What is run stands in the input, `{"argv": […], "env": {…}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CommandTerms {
    /// The sandbox that confines it.
    pub profile: String,
    /// Names of credentials, which it is given as files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<String>,
    /// The command that undoes a step, whose input is something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Vec<String>>,
    /// It runs in the directory that the run's commands share.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub workdir: bool,
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Report {
    #[serde(flatten)]
    pub at: AttemptRef,
    pub epoch: u64,
    pub outcome: ReportedOutcome,
    /// Take the run's next step too, if it may be had.
    #[serde(default)]
    pub claim_next: bool,
    /// What the attempt has cost: it adds up on the run, and counts against the workflow's `limits.spend`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Box<Cost>>,
    /// The credentials that the attempt was given, whatever became of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<CredentialUsed>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ReportedOutcome {
    Completed {
        output: Json,
    },
    Waiting {
        signal: String,
        /// The run's subject, else its id, where omitted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<Millis>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        outbound: Vec<OutboundMessage>,
    },
    Retry {
        error: StepError,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        backoff: Option<Millis>,
    },
    Dead {
        error: StepError,
    },
    /// Given back uncharged: the worker drains.
    Released,
    /// Given back uncharged: the worker has no such task. It is offered again after a pause.
    UnknownTask,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutboundMessage {
    pub destination: String,
    pub payload: Json,
}

/// A worker asks to perform an effect. The intent is durable when the answer arrives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EffectIntent {
    #[serde(flatten)]
    pub at: AttemptRef,
    pub epoch: u64,
    /// What the effect is, in the words of the system it acts on: `stripe:charge:{order}`.
    pub template: String,
    /// 0, 1, … in the order the attempt performs its effects.
    pub number: u32,
    pub effect: EffectClass,
    pub request: Json,
}

/// The answer to an [`EffectIntent`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum EffectAnswer {
    /// Perform it now, under this key.
    Perform { receipt: ReceiptId, key: String },
    /// It was performed before, in this scope; this is what it answered. Do not perform it again.
    Performed { receipt: ReceiptId, response: Option<Json> },
    /// It is not permitted. The attempt is over and the step has failed: stop, and report nothing.
    Denied { reasons: Vec<String> },
    /// People are asked first. The attempt is over: stop, and report nothing. Once they agree, the step is handed out
    /// again, and the same effect is permitted then.
    NeedsApproval { reasons: Vec<String> },
}

/// What became of an effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EffectOutcome {
    #[serde(flatten)]
    pub at: AttemptRef,
    pub epoch: u64,
    pub receipt: ReceiptId,
    /// True if it happened; false only if it certainly did not.
    pub happened: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Json>,
}

/// Who a worker is, when it registers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkerHello {
    /// A readable name: host and process.
    pub worker: String,
    /// The tenant it serves; none for a worker inside the server, which serves all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantId>,
    pub queues: Vec<String>,
    pub slots: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// The names of the tasks that it has: it is given steps of these only. Where omitted, it is given every step of its
    /// queues and hands back what it does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Vec<String>>,
    /// What it can do besides: `effects`, that it asks before each effect on another system and reports its outcome; and
    /// the kinds of steps other than tasks that it carries out. Where omitted, it names no effects: an `unsafe` step that
    /// it is given counts as an effect from the claim on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<String>>,
    /// The environments whose runs it takes: `prod`, `staging`, `dev`, and `none` for runs without a profile. Where omitted, those
    /// of its certificate, or all of them if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environments: Option<BTreeSet<String>>,
    /// What it is told apart by, as in `rack: a`. A task or a command can ask for them (`requires.labels`), and people see them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// What a worker can do, as it said when it registered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skills {
    /// All tasks of its queues where it did not say.
    pub tasks: Option<BTreeSet<String>>,
    /// All kinds of steps where it did not say.
    pub capabilities: Option<BTreeSet<String>>,
    /// It asks before each effect, so that a claim alone is no effect yet.
    pub names_effects: bool,
    /// Within which bounds it works: those of its certificate, or the environments that it names itself.
    pub terms: Option<WorkerTerms>,
    /// It has shown a certificate.
    pub enrolled: bool,
    /// What it is told apart by.
    pub labels: BTreeMap<String, String>,
}

impl Skills {
    pub fn new(tasks: Option<Vec<String>>, capabilities: Option<Vec<String>>) -> Arc<Self> {
        let set = |names: Vec<String>| names.into_iter().collect();
        let (tasks, capabilities) = (tasks.map(set), capabilities.map(set));
        let names_effects = capabilities.as_ref().is_some_and(|names: &BTreeSet<String>| names.contains(EFFECTS));
        let labels = BTreeMap::new();
        Arc::new(Self { tasks, capabilities, names_effects, terms: None, enrolled: false, labels })
    }

    /// The same with the labels that it has registered with.
    pub fn labeled(skills: Arc<Self>, labels: BTreeMap<String, String>) -> Arc<Self> {
        if labels.is_empty() {
            return skills;
        }
        Arc::new(Self { labels, ..Arc::unwrap_or_clone(skills) })
    }

    /// The same within bounds. That it has some says nothing of a certificate: every worker can name environments.
    pub fn within(skills: Arc<Self>, terms: Option<WorkerTerms>, enrolled: bool) -> Arc<Self> {
        if terms.is_none() && !enrolled {
            return skills;
        }
        Arc::new(Self { terms, enrolled, ..Arc::unwrap_or_clone(skills) })
    }

    /// Whether it may act in this environment.
    pub fn allows_environment(&self, environment: &str) -> bool {
        self.terms.as_ref().is_none_or(|terms| terms.allows_environment(environment))
    }

    /// Whether it can carry the step out. How far away it is, is not looked at: for a step that asks for that it comes with a poll.
    pub fn can_do(&self, spec: &StepSpec) -> bool {
        self.can_do_from(spec, None)
    }

    fn can_do_from(&self, spec: &StepSpec, distance: Option<Millis>) -> bool {
        match spec.task_name() {
            Some(task) => {
                let asks_for_more = spec.rules.requires.is_some();
                self.has_task(task) && (!asks_for_more || self.has_required(&spec.task_needs(), distance))
            }
            // Who runs a command depends on the profile of the run.
            None if spec.is_command() => false,
            None => self.has_kind(spec.kind()) && self.asks_for(spec),
        }
    }

    /// Whether it can take the step that a run stands at: one that has named its effects is for workers that name them. How far away
    /// it is has been measured, or is not known.
    pub fn can_take(&self, run: &Run, distance: Option<Millis>) -> bool {
        let spec = run.spec(run.position);
        let can_do = match run.command_needs() {
            Some(needs) => self.has_all(&needs, distance),
            None => self.can_do_from(spec, distance),
        };
        can_do && (self.names_effects || !run.has_named_effects()) && self.allows_environment(run.plan.environment())
    }

    /// Whether it asks before each effect of the step, where that is what the step needs: what another run may have done is only
    /// found by asking.
    pub fn asks_for(&self, spec: &StepSpec) -> bool {
        self.names_effects || spec.rules.dedupe_window().is_none()
    }

    /// Whether it carries out steps of this kind, which is not one of tasks.
    pub fn has_kind(&self, kind: StepKind) -> bool {
        self.capabilities.as_ref().is_none_or(|names| names.contains(kind.as_str()))
    }

    /// Whether it has said that it has all of these, and is as near as they ask. A worker that has said nothing gets no commands, and
    /// one of which nobody knows how far away it is gets none that asks for that.
    pub fn has_all(&self, needs: &BTreeSet<String>, distance: Option<Millis>) -> bool {
        self.capabilities.as_ref().is_some_and(|names| needs.iter().all(|need| self.has(names, need, distance)))
    }

    /// The same for what a task asks for: one that has said nothing has no capability, and may have labels and be near.
    pub fn has_required(&self, needs: &BTreeSet<String>, distance: Option<Millis>) -> bool {
        let none = BTreeSet::new();
        let names = self.capabilities.as_ref().unwrap_or(&none);
        needs.iter().all(|need| self.has(names, need, distance))
    }

    fn has(&self, names: &BTreeSet<String>, need: &str, distance: Option<Millis>) -> bool {
        if let Some(segment) = needed_segment(need) {
            return self.terms.as_ref().is_some_and(|terms| terms.segments.contains(segment));
        }
        if let Some(label) = needed_label(need) {
            return self.has_label(label);
        }
        match needed_latency(need) {
            Some(most) => distance.is_some_and(|distance| distance <= most),
            None => names.contains(need),
        }
    }

    fn has_label(&self, (name, value): (&str, &str)) -> bool {
        self.labels.get(name).is_some_and(|own| own == value)
    }

    pub fn has_task(&self, task: &str) -> bool {
        self.tasks.as_ref().is_none_or(|tasks| tasks.contains(task))
    }

    /// Whether a claim of this step needs an intent with it, should this worker take it: a repeat would do harm, and
    /// the worker does not name its effects one by one.
    pub fn needs_intent(&self, spec: &StepSpec) -> bool {
        spec.effect_class() == EffectClass::Unsafe && !self.names_effects && !is_planted(Bug::ClaimWithoutIntent)
    }
}

/// A session that takes a step in the commit which makes it ready.
#[derive(Debug, Clone)]
pub struct Claimer {
    pub session: SessionId,
    pub skills: Arc<Skills>,
}

impl Claimer {
    /// A session whose worker can do everything.
    pub fn of_all_trades(session: SessionId) -> Self {
        Self { session, skills: Arc::new(Skills { names_effects: true, ..Skills::default() }) }
    }

    /// Whether the step may be its without anything further.
    pub fn takes(&self, spec: &StepSpec) -> bool {
        self.skills.can_do(spec) && !self.skills.needs_intent(spec)
    }
}
