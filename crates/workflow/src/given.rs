//! Plans that are given with a start, without a file: what a step declares of itself only tightens what is known of the
//! operation that it calls, as in a file.

use interlock_connectors::{Fields, MODEL_CHAT, find};
use interlock_core::plan::{Plan, StepSpec, Work};
use interlock_core::state::EffectClass;
use serde_json::{Value, json};

/// Holds the effect classes of a plan's steps to what their connectors say. What a step is given may not be known yet; then the
/// worst counts that it may become.
pub fn tighten(plan: &mut Plan) {
    for step in &mut plan.steps {
        let known = class_of(step);
        if known.is_some() {
            step.effect = step.effect.max(known);
        }
    }
}

fn class_of(step: &StepSpec) -> Option<EffectClass> {
    let (name, with) = match &step.work {
        Work::Connector { operation, with } => (operation.as_str(), with.as_ref()),
        Work::Model { with, .. } => (MODEL_CHAT, with.as_ref()),
        _ => return None,
    };
    let connector = find(name)?;
    let fields: Value = with.and_then(|with| with.to_value().ok()).unwrap_or_else(|| json!({}));
    Some(connector.effect(&Fields::written(connector.declaration(), fields)))
}

#[cfg(test)]
mod tests {
    use interlock_core::json::Json;

    use super::*;

    #[test]
    fn a_declaration_only_tightens_what_the_connector_is() {
        let work = Work::Connector { operation: "slack.post".into(), with: None };
        let mut post = StepSpec::new("post", work);
        post.effect = Some(EffectClass::Read);
        let with = Json::of(&json!({ "sys_id": "abc" })).ok();
        let work = Work::Connector { operation: "servicenow.incident.get".into(), with };
        let mut get = StepSpec::new("get", work);
        get.effect = Some(EffectClass::Keyed);
        let mut task = StepSpec::task("t", "t");
        task.effect = Some(EffectClass::Read);
        let mut plan = Plan::new("demo", vec![post, get, task]);
        tighten(&mut plan);
        let classes: Vec<_> = plan.steps.iter().map(StepSpec::effect_class).collect();
        assert_eq!(classes, [EffectClass::Unsafe, EffectClass::Keyed, EffectClass::Read]);
    }
}
