//! Data in the place of a rule: the evaluator takes the data, and the rule would silently not count.

use regorus::unstable::Module;
use serde_json::Value;

use super::at;
use crate::graph::name_of;
use crate::problem::Problem;
use crate::sources::DATA_FILE;
use crate::syntax::package;

pub(super) fn problems(module: &Module, data: &Value) -> Vec<Problem> {
    let own = package(module);
    let taken = module.policy.iter().filter_map(|rule| {
        let rule = &**rule;
        let name = name_of(rule)?;
        is_taken(data, own.split('.').chain([name])).then(|| {
            let twice = format!("`data.{own}.{name}`");
            at(rule.span(), format!("{DATA_FILE} has a value for {twice} as well: give one of them another name"))
        })
    });
    taken.collect()
}

/// Whether there is a value at a path, or one on the way to it that is no object.
fn is_taken<'a>(data: &Value, path: impl Iterator<Item = &'a str>) -> bool {
    let mut found = data;
    for part in path {
        let Value::Object(fields) = found else { return true };
        let Some(next) = fields.get(part) else { return false };
        found = next;
    }
    true
}
