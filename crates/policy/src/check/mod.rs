//! What a module must not do, found when a bundle is loaded: call what is not pure, ask for fields that do not exist, or define
//! what the data has already.

mod calls;
mod data;
mod inputs;

pub(crate) use calls::import_problems;

use regorus::unstable::{Expr, Module, Rule, Span};
use serde_json::Value;

use crate::dependence::PROBE_PREFIX;
use crate::functions::is_allowed;
use crate::limits;
use crate::problem::Problem;
use crate::syntax::{Node, definitions, each_in_expr, each_in_query, package};

pub(crate) fn problems(modules: &[&Module], data: &Value) -> Vec<Problem> {
    let rules: usize = modules.iter().map(|module| module.policy.len()).sum();
    if rules > limits::RULES_MAX {
        return vec![Problem::of_file("bundle", format!("has {rules} rules, the limit is {}", limits::RULES_MAX))];
    }
    let mut found = Vec::new();
    for module in modules {
        found.extend(calls::problems(module, modules));
        found.extend(data::problems(module, data));
        found.extend(inputs::problems(module));
        found.extend(reserved_names(module));
    }
    found
}

/// The definition of a rule, by its full name without `data`.
pub(crate) fn defined_at(rule: &str, modules: &[&Module], what: &str) -> Option<Problem> {
    let is_it = |module: &Module, name: &str| format!("{}.{name}", package(module)) == rule;
    let found = modules.iter().find_map(|module| {
        definitions(module).find(|(_, head, _)| is_it(module, head.name)).map(|(definition, ..)| definition)
    });
    found.map(|definition| at(definition.span(), what.to_owned()))
}

fn at(span: &Span, what: String) -> Problem {
    Problem { file: span.source.file().clone(), line: Some(span.line), what }
}

/// Calls `see` with everything in a module's rules.
fn each_node<'a>(module: &'a Module, see: &mut dyn FnMut(Node<'a>)) {
    for (_, head, bodies) in definitions(module) {
        head.args.iter().chain(&head.values).for_each(|expr| each_in_expr(expr, see));
        for body in bodies {
            body.assign.iter().for_each(|assign| each_in_expr(&assign.value, see));
            each_in_query(&body.query, see);
        }
    }
    for rule in &module.policy {
        if let Rule::Default { value, .. } = &**rule {
            each_in_expr(value, see);
        }
    }
}

/// Names that a bundle may not use: Interlock adds its own rules to the modules under names that begin so.
fn reserved_names(module: &Module) -> Vec<Problem> {
    let mut found = Vec::new();
    each_node(module, &mut |node| {
        if let Node::Expr(Expr::Var { span, .. }) = node
            && span.text().starts_with(PROBE_PREFIX)
        {
            found.push(at(span, format!("names that begin with `{PROBE_PREFIX}` are taken; choose another")));
        }
    });
    for (rule, head, _) in definitions(module) {
        if head.name.starts_with(PROBE_PREFIX) {
            found.push(at(rule.span(), format!("names that begin with `{PROBE_PREFIX}` are taken; choose another")));
        } else if head.is_function && is_allowed(head.name) {
            found.push(at(rule.span(), format!("`{}` is a function of the language; choose another name", head.name)));
        }
    }
    found
}
