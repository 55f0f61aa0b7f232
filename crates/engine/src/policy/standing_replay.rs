//! What other rules would say to steps that those in force allow in every run. No decision is kept of these, so holding rules
//! against decisions does not show them: the newest versions of the workflows are held against both instead.

use std::sync::Arc;

use interlock_core::governance::action::Action;
use interlock_core::ids::TenantId;
use interlock_core::json::Json;
use interlock_core::plan::Plan;
use interlock_policy::{Bundle, PolicyInput, PolicyReason, Verdict};

use super::predict::on_paper;
use crate::error::EngineError;
use crate::parts::Policies;

/// How many workflows are looked at, and how many differences are told.
const WORKFLOWS_MAX: usize = 500;
const DIFFERENCES_MAX: usize = 200;
/// Few: each page is one piece of work, which has a limit of time, and a workflow may have a thousand steps.
const WORKFLOWS_PAGE: usize = 10;

/// Steps that the rules in force allow in every run, under other rules.
#[derive(Debug, Clone, Default)]
pub struct ReplayedStanding {
    pub steps: usize,
    pub same: usize,
    /// Allowed as far as the workflow says; what a run is, or is given, may change that.
    pub may_change: usize,
    pub newly_gated: usize,
    pub newly_denied: usize,
    pub newly_undecided: usize,
    pub differences: Vec<StandingDifference>,
    /// There are more workflows than were looked at, or some that cannot be read.
    pub more: bool,
}

/// A step that would not be allowed in every run any more.
#[derive(Debug, Clone)]
pub struct StandingDifference {
    pub workflow: String,
    pub version: u32,
    pub step: String,
    pub after: String,
    pub reasons: Vec<String>,
}

impl Policies {
    /// Holds a bundle against the steps that the one in force allows in every run, of the newest version of each workflow.
    pub(super) async fn replay_standing(
        &self,
        tenant: TenantId,
        candidate: &Arc<Bundle>,
    ) -> Result<ReplayedStanding, EngineError> {
        let active = self.0.rules_of(tenant).await?.active;
        let mut result = ReplayedStanding::default();
        let mut after: Option<String> = None;
        let mut seen = 0;
        loop {
            let page = self.0.0.store.list_workflows(tenant, after.as_deref(), WORKFLOWS_PAGE).await?;
            let Some(last) = page.last() else { return Ok(result) };
            after = Some(last.name.clone());
            let is_full = page.len() == WORKFLOWS_PAGE;
            seen += page.len();
            let mut plans = Vec::new();
            for head in page.iter().filter(|head| !head.disabled) {
                match self.0.workflows().version(tenant, &head.name, head.latest_version).await {
                    Ok(Some(version)) => plans.push(Arc::clone(&version.plan.plan)),
                    Ok(None) | Err(_) => result.more = true,
                }
            }
            let (active, candidate) = (Arc::clone(&active), Arc::clone(candidate));
            let held = self.0.evaluate(tenant, move |budget| {
                for plan in plans {
                    if budget.hand_over(0).is_err() {
                        // The caller has stopped waiting for it.
                        break;
                    }
                    hold_steps(&active, &candidate, plan, &mut result);
                }
                result
            });
            result = held.await?;
            if !is_full {
                return Ok(result);
            }
            if seen >= WORKFLOWS_MAX {
                result.more = true;
                return Ok(result);
            }
        }
    }
}

fn hold_steps(active: &Bundle, candidate: &Bundle, plan: Arc<Plan>, result: &mut ReplayedStanding) {
    let Ok(run) = on_paper(plan, Json::trusted("{}"), None, None) else {
        result.more = true;
        return;
    };
    for (spec, position) in run.plan.steps.iter().zip(0..) {
        let given = spec.command_template().unwrap_or_else(|| Json::trusted("{}"));
        let Some(action) = Action::of_step(spec, position, given) else { continue };
        let input = PolicyInput::of(&action, spec, &run);
        let allows = active.decide(&input).is_ok_and(|decision| decision.verdict == Verdict::Allow);
        if !allows || active.depends_on_bound(&input) {
            continue;
        }
        result.steps += 1;
        let decided = candidate.decide(&input);
        let verdict = decided.as_ref().ok().map(|decision| decision.verdict);
        match verdict {
            Some(Verdict::Allow) => {
                let count = if candidate.depends_on_bound(&input) { &mut result.may_change } else { &mut result.same };
                *count += 1;
                continue;
            }
            Some(Verdict::NeedsApproval) => result.newly_gated += 1,
            Some(Verdict::Deny) => result.newly_denied += 1,
            None => result.newly_undecided += 1,
        }
        if result.differences.len() < DIFFERENCES_MAX {
            let reasons = match decided {
                Ok(decision) => decision.reasons.iter().map(PolicyReason::to_string).collect(),
                Err(undecided) => vec![undecided.to_string()],
            };
            result.differences.push(StandingDifference {
                workflow: run.plan.workflow.clone(),
                version: run.plan.version,
                step: spec.key.clone(),
                after: verdict.map_or("undecided", Verdict::as_str).to_owned(),
                reasons,
            });
        }
    }
}
