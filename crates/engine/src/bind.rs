//! Binding: what a decision asks about a step that is about to begin. Its expressions are evaluated on the pool, so that
//! none runs on a committer or an async thread; then its action is judged.

use interlock_core::decide::{Asking, Bound, Decided, Later, Rendered};
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
        Decision::Undecided { why: "the policy was not asked about it".into() }.into()
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
                None => asking.along(asking.bind(rendered, &NothingAllowed), self.along(asking).await),
            },
            Ok(None) => Bound::condition_false(),
            Err(error) => Bound::broken(error),
        }
    }

    /// What later steps are about to do that people are asked about as well, or why it cannot be told yet.
    async fn along(&self, asking: &Asking<'_>) -> Vec<Later> {
        let mut along = Vec::new();
        for step in asking.asked_along() {
            let action = match Facts::of_later(asking, step) {
                None => Err("it is done with what other steps say first".to_owned()),
                Some(facts) => match self.evaluated(asking.run().tenant, facts).await {
                    Ok(rendered) => {
                        let input = rendered.and_then(|rendered| rendered.input);
                        asking.later_action(step, input.as_ref()).ok_or_else(|| "it proposes nothing".to_owned())
                    }
                    Err(error) => Err(error.message),
                },
            };
            along.push(Later { step, action });
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
