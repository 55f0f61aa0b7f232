//! What rules would decide on the steps of a run that does not exist yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use interlock_boxed::boxed;
use interlock_core::decide::{StartRequest, Used, open};
use interlock_core::governance::action::Action;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::{Hash, HashHex, Json};
use interlock_core::plan::Plan;
use interlock_core::rejection::Rejection;
use interlock_core::run::{Header, Run, Trigger};
use interlock_core::time::Timestamp;
use interlock_policy::{Bundle, Excluded, Obligations, PolicyDecision, PolicyInput, PolicyReason, Verdict};
use interlock_workflow::bind::is_known_at;
use interlock_workflow::walk::{Predicted, Walk, Would};
use uuid::Uuid;

use super::JudgedBy;
use crate::error::EngineError;
use crate::parts::Policies;

impl Policies {
    /// Adds to a walk what the tenant's policy would decide on its steps.
    #[boxed]
    pub async fn predict(
        &self,
        tenant: TenantId,
        plan: Arc<Plan>,
        mut walk: Walk,
        person: Option<String>,
    ) -> Result<Walk, EngineError> {
        if matches!(self.0.0.options.judge, JudgedBy::Judge(_)) {
            return Ok(walk);
        }
        let rules = self.0.rules_of(tenant).await?;
        let predicted = self.0.evaluate(tenant, move |_| {
            predict(&rules.active, plan, &mut walk, person)?;
            Ok::<_, Rejection>(walk)
        });
        Ok(predicted.await??)
    }
}

/// Adds to a walk what these rules would decide on its steps, if it were started by this person.
pub fn predict(bundle: &Bundle, plan: Arc<Plan>, walk: &mut Walk, person: Option<String>) -> Result<(), Rejection> {
    let inputs = Json::of(&walk.inputs).unwrap_or_else(|_| Json::null());
    let run = on_paper(plan, inputs, walk.subject.clone(), person)?;
    // The steps that people would agree to along with an earlier one.
    let mut agreed: BTreeMap<u32, String> = BTreeMap::new();
    for (step, position) in walk.steps.iter_mut().zip(0..) {
        if matches!(step.would, Would::Skip | Would::Fail) || !run.spec(position).is_governed() {
            continue;
        }
        let given = step.input.as_ref().and_then(|input| Json::of(input).ok());
        let input = given.unwrap_or_else(|| run.input(position));
        let spec = run.spec(position);
        let Some(action) = Action::of_step(spec, position, input) else { continue };
        let mut document = PolicyInput::of(&action, spec, &run);
        let agreed_with = agreed.get(&position);
        document.run.agreed = agreed_with.is_some();
        let said = predicted(bundle, &document);
        if let Some(with) = agreed_with.filter(|_| said.verdict == Verdict::Allow.as_str()) {
            step.notes.push(format!("people agree to it along with step `{with}`"));
        }
        if said.verdict == Verdict::NeedsApproval.as_str() && step.would == Would::Run {
            let later = run.plan.asked_along(position).into_iter();
            let known = later.filter(|later| is_known_at(&run.plan, *later, position));
            agreed.extend(known.map(|later| (later, spec.key.clone())));
        }
        step.policy = Some(said);
    }
    Ok(())
}

/// A run that is only predicted, never started.
pub(super) fn on_paper(
    plan: Arc<Plan>,
    inputs: Json,
    subject: Option<String>,
    started_by: Option<String>,
) -> Result<Run, Rejection> {
    let header = Header {
        workspace: "main".to_owned(),
        plan_hash: HashHex(Hash([0; 32])),
        inputs,
        subject,
        labels: BTreeMap::new(),
        trigger: Trigger { kind: "api".to_owned(), reference: None },
        priority: 0,
        created_at: Timestamp::default(),
        deadline_at: None,
        lineage: None,
        started_by,
    };
    let request = StartRequest {
        tenant: TenantId(Uuid::nil()),
        run: RunId(Uuid::nil()),
        header,
        plan,
        plan_hash: Hash([0; 32]),
        plan_text: Json::null(),
        idempotency: None,
        inherited: Vec::new(),
        starters: Vec::new(),
        used: Used::default(),
        named: Vec::new(),
        claim: None,
        queued: None,
        undoes: None,
    };
    open(request).map(|(run, _)| run)
}

/// Who may not decide, by the words of the policy.
fn excluded(due: &Obligations) -> Vec<String> {
    let named = |excluded: &Excluded| match excluded {
        Excluded::Starter => "starter".to_owned(),
        Excluded::Author => "author".to_owned(),
    };
    due.exclude.iter().map(named).collect()
}

fn predicted(bundle: &Bundle, input: &PolicyInput) -> Predicted {
    let may_change = bundle.depends_on_bound(input);
    match bundle.decide(input) {
        Ok(PolicyDecision { verdict, reasons, tier, obligations }) => Predicted {
            verdict: verdict.as_str().to_owned(),
            tier: Some(tier.to_string()),
            reasons: reasons.iter().map(PolicyReason::to_string).collect(),
            quorum: obligations.as_ref().map(|due| due.quorum),
            excluded: obligations.as_ref().map(excluded).unwrap_or_default(),
            self_approval: obligations.as_ref().is_some_and(|due| due.self_approval && due.quorum <= 1),
            approvers: obligations.map(|due| due.approvers).unwrap_or_default(),
            may_change,
        },
        Err(undecided) => Predicted {
            verdict: "undecided".to_owned(),
            tier: None,
            reasons: vec![undecided.to_string()],
            quorum: None,
            approvers: Vec::new(),
            excluded: Vec::new(),
            self_approval: false,
            may_change,
        },
    }
}
