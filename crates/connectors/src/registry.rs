//! All connectors, by the names that workflow files use.

use serde_json::Value;

use crate::connector::Connector;
use crate::fields::Fields;
use crate::schema::FieldFault;
use crate::systems::{email, github, http, model, pagerduty, servicenow, slack};

const ALL: &[&dyn Connector] = &[
    &http::HttpRequest,
    &slack::Post,
    &slack::Delete,
    &servicenow::IncidentUpdate,
    &servicenow::IncidentGet,
    &github::Comment,
    &github::CommentDelete,
    &github::Labels,
    &pagerduty::Event,
    &email::Send,
    &model::Chat,
];

pub const fn all() -> &'static [&'static dyn Connector] {
    ALL
}

/// The connector of this name.
pub fn find(operation: &str) -> Option<&'static dyn Connector> {
    ALL.iter().copied().find(|connector| connector.declaration().operation == operation)
}

/// What the fields of an operation come to, checked and complete; or everything that is wrong with them, in words.
pub fn bound(connector: &dyn Connector, fields: Value) -> Result<Fields, String> {
    let sentences = |faults: Vec<FieldFault>| faults.iter().map(FieldFault::sentence).collect::<Vec<_>>().join("; ");
    let fields = Fields::check(connector.declaration(), fields).map_err(sentences)?;
    connector.check(&fields)?;
    Ok(fields)
}

pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    ALL.iter().map(|connector| connector.declaration().operation)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use interlock_core::state::EffectClass;

    use super::*;
    use crate::declaration::Reversal;
    use crate::schema::{Field, Filling, Kind, Need, faults};

    /// Every field, also those further inside.
    fn each(fields: &[Field], see: &mut dyn FnMut(&Field)) {
        for field in fields {
            see(field);
            if let Kind::Record(inner) | Kind::Records { of: inner, .. } = field.kind {
                each(inner, see);
            }
        }
    }

    #[test]
    fn declarations_hold_together() {
        let unique: BTreeSet<_> = names().collect();
        assert_eq!(unique.len(), all().len());
        for connector in all() {
            let declared = connector.declaration();
            let name = declared.operation;
            each(declared.fields, &mut |field| {
                assert!(field.about.ends_with('.'), "{name}: {}", field.name);
                if let Need::Default(text) = field.need {
                    let value =
                        serde_json::json!({ field.name: serde_json::from_str::<serde_json::Value>(text).unwrap() });
                    assert_eq!(faults(&[*field], &value, Filling::Rendered), [], "{name}: {}", field.name);
                }
            });
            if let Reversal::Inverse { by, .. } = declared.reversal {
                assert!(find(by).is_some(), "{name} is undone by {by}, which there is not");
            }
            if declared.effect == EffectClass::Read {
                assert_eq!(declared.reversal, Reversal::NotNeeded, "{name}");
            }
            assert!(declared.key.contains(':'), "{name} has no key");
        }
    }
}
