//! Why a delivery started nothing: the triggers that it missed, each with the first thing that did not fit.

use std::sync::Arc;

use interlock_core::ids::TenantId;
use interlock_core::trigger::Source;
use interlock_workflow::expression::Scope;
use interlock_workflow::expression::budget::Budget;
use interlock_workflow::shape::{At, Expression, Name};
use serde::{Deserialize, Serialize};

use crate::Engine;
use crate::error::EngineError;
use crate::triggers::{Kind, TriggerEvent, one_of, passes, scope};
use crate::workflows::WorkflowVersion;

/// Triggers that are told of one delivery.
const MISSED_MAX: usize = 20;

/// A trigger that did not take a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissedTrigger {
    pub workflow: String,
    /// The part of `on:`, such as `github`.
    pub on: String,
    /// What did not fit: `endpoint`, `event`, `action`, `repository`, `source` or `filter`.
    pub failed: String,
    pub detail: String,
}

impl Engine {
    /// The triggers for this sender that did not take the occasion, by workflow.
    pub(crate) async fn missed_by(
        &self,
        tenant: TenantId,
        occasion: TriggerEvent,
    ) -> Result<Vec<MissedTrigger>, EngineError> {
        let occasion = Arc::new(occasion);
        let mut all = Vec::new();
        for version in self.triggered(tenant).await? {
            let occasion = Arc::clone(&occasion);
            all.extend(self.evaluate_trigger(tenant, move |budget| missed(&version, &occasion, budget)).await?);
            if all.len() >= MISSED_MAX {
                all.truncate(MISSED_MAX);
                break;
            }
        }
        Ok(all)
    }
}

fn missed(version: &WorkflowVersion, occasion: &TriggerEvent, budget: &Budget) -> Vec<MissedTrigger> {
    let (Some(on), Kind::Webhook { source, endpoint }) = (version.definition.on.as_ref(), &occasion.kind) else {
        return Vec::new();
    };
    let (scope, endpoint) = (scope(occasion, budget), endpoint.as_str());
    let told = |on: &str, (failed, detail): (&str, String)| MissedTrigger {
        workflow: version.name.clone(),
        on: on.to_owned(),
        failed: failed.to_owned(),
        detail,
    };
    let mut all = Vec::new();
    if *source == Source::GitHub {
        let of = |path: &[&str]| path.iter().try_fold(&occasion.payload, |value, key| value.get(key))?.as_str();
        all.extend(on.github.0.iter().map(|trigger| {
            let why = elsewhere(trigger.endpoint.as_ref(), endpoint)
                .or_else(|| other("event", &trigger.events.0, Some(&occasion.event)))
                .or_else(|| other("action", &trigger.actions.0, of(&["action"])))
                .or_else(|| other("repository", &trigger.repositories.0, of(&["repository", "full_name"])));
            told("github", why.unwrap_or_else(|| filtered(trigger.filter.as_ref(), &scope)))
        }));
    }
    all.extend(on.webhook.0.iter().map(|trigger| {
        let known = |name: &str| name == source.as_str() || name == endpoint;
        let why = elsewhere(trigger.endpoint.as_ref(), endpoint).or_else(|| {
            let wanted = trigger.source.as_ref().filter(|name| !known(&name.0))?;
            Some(("source", format!("it is from `{}`, and not from `{}`", source.as_str(), wanted.0)))
        });
        told("webhook", why.unwrap_or_else(|| filtered(trigger.filter.as_ref(), &scope)))
    }));
    all
}

fn elsewhere(wanted: Option<&At<Name>>, endpoint: &str) -> Option<(&'static str, String)> {
    let wanted = wanted.filter(|name| *name.0 != *endpoint)?;
    Some(("endpoint", format!("it came to `{endpoint}`, and not to `{}`", wanted.0)))
}

fn other(what: &'static str, wanted: &[At<Name>], found: Option<&str>) -> Option<(&'static str, String)> {
    if one_of(wanted, found) {
        return None;
    }
    let wanted: Vec<String> = wanted.iter().map(|name| format!("`{}`", name.0)).collect();
    let found = found.map_or_else(|| "absent".to_owned(), |found| format!("`{found}`"));
    Some((what, format!("the {what} is {found}, and not {}", wanted.join(" or "))))
}

/// Everything else fits.
fn filtered(filter: Option<&Expression>, scope: &Scope) -> (&'static str, String) {
    match filter {
        Some(text) if !passes(filter, scope) => ("filter", format!("the filter does not hold: {}", *text.0)),
        _ => ("filter", "it fits now; the workflow may have changed since".to_owned()),
    }
}
