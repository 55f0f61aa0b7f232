//! Binding: what a decision asks about a step that is about to begin. Its expressions are evaluated on the pool, so that
//! none runs on a committer or an async thread; then its action is judged.

use interlock_core::decide::{Asking, Bound, Decided, Rendered};
use interlock_core::governance::action::Action;
use interlock_core::governance::judge::{Decision, Judge, Ruling};
use interlock_core::ids::TenantId;
use interlock_core::plan::retry::StepError;
use interlock_core::run::Run;
use interlock_core::run::change::ChangeSet;
use interlock_workflow::bind::{Facts, fixed};

use crate::Engine;
use crate::error::EngineError;
use crate::payloads::replacement;

/// For steps that propose no action: there is nothing to allow.
#[derive(Debug)]
struct NothingAllowed;

impl Judge for NothingAllowed {
    fn judge(&self, _: &Action, _: &Run) -> Ruling {
        Decision::Undecided { why: "nobody was asked about it".into() }.into()
    }
}

impl Engine {
    /// The change that a decision comes to, once everything that it asks has been found out.
    pub(crate) async fn answer_all(&self, mut decided: Decided<'_>) -> Result<Box<ChangeSet>, EngineError> {
        loop {
            let asking = match decided {
                Decided::Change(change) => return Ok(change),
                Decided::Needs(asking) => asking,
            };
            let bound = self.bind(&asking).await;
            decided = asking.answer(bound)?;
        }
    }

    /// If nothing could be evaluated, the step fails with what went wrong.
    async fn bind(&self, asking: &Asking<'_>) -> Bound {
        let rendered = match fixed(asking) {
            Some(rendered) => Ok(Some(rendered)),
            None => self.rendered(asking).await,
        };
        match rendered {
            Ok(Some(rendered)) => match asking.action(&rendered) {
                Some(action) => {
                    let judge = self.judge_for(action, asking.spec(), asking.run()).await;
                    let bound = asking.bind(rendered, &judge);
                    if judge.asks() { asking.along(bound, self.along(asking).await) } else { bound }
                }
                None => asking.bind(rendered, &NothingAllowed),
            },
            Ok(None) => Bound::condition_false(),
            Err(error) => Bound::broken(error),
        }
    }

    /// What later steps of the phase are about to do, as far as it is known by now. A step whose input cannot be told is
    /// asked about when it is reached.
    async fn along(&self, asking: &Asking<'_>) -> Vec<Action> {
        let mut along = Vec::new();
        for position in asking.asked_along() {
            let Some(facts) = Facts::of_later(asking, position) else { continue };
            let Ok(Some(rendered)) = self.evaluated(asking.run().tenant, facts).await else { continue };
            along.extend(asking.later_action(position, rendered.input.as_ref()));
        }
        along
    }

    async fn rendered(&self, asking: &Asking<'_>) -> Result<Option<Rendered>, StepError> {
        self.evaluated(asking.run().tenant, Facts::of(asking)).await
    }

    async fn evaluated(&self, tenant: TenantId, mut facts: Facts) -> Result<Option<Rendered>, StepError> {
        if let Some(payloads) = self.payloads() {
            let found = payloads.fetch_all(tenant, facts.payloads()).await.map_err(|error| error.step_error())?;
            if !found.is_empty() {
                facts.replace_payloads(|json| replacement(&found, json));
            }
        }
        self.0.evaluator.for_run(tenant, move |budget| facts.render(budget)).await?
    }
}
