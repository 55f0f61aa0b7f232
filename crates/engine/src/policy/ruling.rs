//! The decision on one action. It is found out before the core is asked, because rules are evaluated off the async
//! threads, and is good for that action of the run as it stood and for nothing else.

use std::borrow::Cow;
use std::sync::Arc;

use interlock_core::governance::action::Action;
use interlock_core::governance::judge::{Decision, Judge, Judged, Ruling};
use interlock_core::ids::SessionId;
use interlock_core::json::{Hash, HashHex, Json};
use interlock_core::plan::{Plan, StepSpec};
use interlock_core::run::Run;
use interlock_core::time::Timestamp;
use interlock_core::work::Skills;
use interlock_policy::{PolicyDecision, PolicyInput, WorkerFacts};
use interlock_workflow::expression::budget::Budget;

use super::JudgedBy;
use super::rules::InForce;
use super::standing::is_of_plan;
use crate::Engine;

/// A decision that was found out on an action of a run.
#[derive(Debug, Clone)]
pub(crate) struct KnownRuling {
    action: Action,
    version: u64,
    ruling: Ruling,
    /// It denies the action to the worker that was named to the rules, and not to every worker.
    refuses_worker: bool,
}

impl KnownRuling {
    /// Whether people are to be asked.
    pub fn asks(&self) -> bool {
        matches!(self.ruling.decision, Decision::NeedsApproval { .. })
    }

    pub const fn decision(&self) -> &Decision {
        &self.ruling.decision
    }

    /// The action that it is about, with the decision on it.
    pub fn judged(&self, run: &Run) -> Judged {
        Judged::by(self, self.action.clone(), run)
    }

    /// The bundle whose rules deny the action to the worker that came for it, where they do not deny it to every worker.
    pub fn refusing_bundle(&self) -> Option<Hash> {
        self.ruling.basis.as_ref().filter(|_| self.refuses_worker).map(|basis| basis.bundle.0)
    }

    pub fn is_for(&self, action: &Action, run: &Run) -> bool {
        *action == self.action && run.version == self.version
    }
}

impl Judge for KnownRuling {
    fn judge(&self, action: &Action, run: &Run) -> Ruling {
        if self.is_for(action, run) {
            return self.ruling.clone();
        }
        Decision::Undecided { why: "the run has moved on since its policy was asked".into() }.into()
    }
}

/// The policy must be asked about the action first.
#[derive(Debug)]
pub(crate) struct NotJudged {
    pub action: Action,
    pub run: Run,
}

/// Fields longer than this are left out of an input whose rules do not look at them.
const FIELDS_BYTES_MAX: usize = 16 << 10;

impl Engine {
    /// Who decides on this action before a worker is found, with the decision found out.
    pub(crate) async fn judge_for(&self, action: Action, spec: &StepSpec, run: &Run) -> KnownRuling {
        let ruling = self.ruling(&action, spec, &unlapsed(run, self.now()), None).await;
        KnownRuling { action, version: run.version, ruling, refuses_worker: false }
    }

    /// The same for a worker that comes to take a step, or is about to act. What is denied is judged once more without the worker:
    /// where that is not denied, the worker was the reason, and another one may have the step.
    pub(crate) async fn judge_with(&self, action: Action, spec: &StepSpec, run: &Run, worker: &Skills) -> KnownRuling {
        let as_it_stands = unlapsed(run, self.now());
        let ruling = self.ruling(&action, spec, &as_it_stands, Some(worker)).await;
        let mut refuses_worker = false;
        if ruling.basis.is_some() && matches!(ruling.decision, Decision::Deny { .. }) {
            let of_any_worker = Box::pin(self.ruling(&action, spec, &as_it_stands, None)).await;
            // Only what is known to be open to another worker is left for one.
            refuses_worker = matches!(of_any_worker.decision, Decision::Allow | Decision::NeedsApproval { .. });
        }
        KnownRuling { action, version: run.version, ruling, refuses_worker }
    }

    /// The bundle in force, where its rules have kept the session from the step that the run stands at before.
    pub(crate) fn known_refusal(&self, run: &Run, session: SessionId) -> Option<Hash> {
        if run.refused_workers().is_empty() {
            return None;
        }
        let bundle = self.known_rules(run.tenant)?.active.hash();
        run.refuses_worker(session, bundle).then_some(bundle)
    }

    /// The same where the decision is known without asking the policy; nothing otherwise.
    pub(crate) fn known_judge(&self, action: &Action, run: &Run) -> Option<KnownRuling> {
        let ruling = match &self.0.options.judge {
            JudgedBy::Judge(judge) => judge.judge(action, &unlapsed(run, self.now())),
            JudgedBy::Policy => {
                let rules = self.known_rules(run.tenant)?;
                let hash = rules.active.hash();
                let stands = rules.shadow.is_none() && self.0.standing.allows(hash, action, run);
                stands.then(|| Ruling::standing(HashHex(hash)))?
            }
        };
        Some(KnownRuling { action: action.clone(), version: run.version, ruling, refuses_worker: false })
    }

    async fn ruling(&self, action: &Action, spec: &StepSpec, run: &Run, worker: Option<&Skills>) -> Ruling {
        if let JudgedBy::Judge(judge) = &self.0.options.judge {
            return judge.judge(action, run);
        }
        let found = match self.known_rules(run.tenant) {
            Some(rules) => Ok(rules),
            // Seldom, and large: it must not make every future large that may come here.
            None => Box::pin(self.rules_of(run.tenant)).await,
        };
        let rules = match found {
            Ok(rules) => rules,
            Err(error) => {
                tracing::error!(tenant = %run.tenant, run = %run.id, %error, "a policy cannot be asked");
                return Decision::Undecided { why: "the tenant's policy cannot be read right now".into() }.into();
            }
        };
        let hash = rules.active.hash();
        if rules.shadow.is_none() && self.0.standing.allows(hash, action, run) {
            return Ruling::standing(HashHex(hash));
        }
        let mut input = PolicyInput::of(action, spec, run);
        if let Some(worker) = worker {
            input = input.with_worker(WorkerFacts::of(worker));
        }
        // Rules look at what is done, not at a note of where it is kept.
        match self.whole(run.tenant, &action.input).await {
            Ok(None) => {}
            Ok(Some(whole)) => input = input.with_whole_input(action, spec, run, whole),
            Err(error) => {
                return Decision::Undecided { why: format!("what it is done with cannot be read: {error}") }.into();
            }
        }
        if !rules.read_fields() {
            input = input.without_long_fields(FIELDS_BYTES_MAX);
        }
        let (plan, may_stand) = (Arc::clone(&run.plan), is_of_plan(action, run));
        let (input, shadow) = (Arc::new(input), rules.shadow.clone());
        let document = Arc::clone(&input);
        let evaluate = move |_: &Budget| rule(&rules, &document, &plan, may_stand);
        let decided = Box::pin(self.0.evaluator.for_run(run.tenant, evaluate)).await;
        let (mut ruling, stands) = match decided {
            Ok(decided) => decided,
            Err(error) => return Decision::Undecided { why: error.message }.into(),
        };
        if stands {
            self.0.standing.note(hash, run.header.plan_hash.0, action);
        }
        if let Some(shadow) = shadow {
            // They are asked for themselves: where they take too long, the decision is there already.
            let tried = shadow.hash();
            let evaluate = move |_: &Budget| shadow.decide(&input).ok();
            let answer = Box::pin(self.0.evaluator.for_run(run.tenant, evaluate)).await;
            if let Some(basis) = &mut ruling.basis {
                Arc::make_mut(basis).shadow = beside(tried, answer.ok().flatten().as_ref());
            }
        }
        ruling
    }
}

/// The run without what people have agreed to too long ago.
fn unlapsed(run: &Run, now: Timestamp) -> Cow<'_, Run> {
    if !run.notes.agreed.iter().any(|agreed| agreed.has_lapsed(now)) {
        return Cow::Borrowed(run);
    }
    let mut run = run.clone();
    run.notes.agreed.retain(|agreed| !agreed.has_lapsed(now));
    Cow::Owned(run)
}

/// The decision, and whether it is leave for every run of the plan: then it is not kept, also where it is made for the first
/// time. Otherwise one run would show that another, perhaps another person's, had asked the same.
fn rule(rules: &InForce, input: &PolicyInput, plan: &Plan, may_stand: bool) -> (Ruling, bool) {
    let mut ruling = rules.active.rule_on(input, plan);
    let stands = may_stand && ruling.decision == Decision::Allow && !rules.active.depends_on_bound(input);
    if stands && rules.shadow.is_none() {
        ruling = Ruling::standing(HashHex(rules.active.hash()));
    }
    (ruling, stands)
}

/// What rules that are only tried say; no answer where they have none.
fn beside(bundle: Hash, answer: Option<&PolicyDecision>) -> Option<Json> {
    Json::of(&serde_json::json!({ "bundle": bundle.to_string(), "answer": answer })).ok()
}
