//! Calls: to the functions of the list, and to functions of the bundle.

use std::collections::BTreeSet;

use regorus::unstable::{Expr, Import, Module};

use super::{at, each_node};
use crate::functions::is_allowed;
use crate::problem::Problem;
use crate::syntax::{Node, definitions, package, path};

pub(super) fn problems(module: &Module, modules: &[&Module]) -> Vec<Problem> {
    let own = package(module);
    let in_package = modules.iter().filter(|other| package(other) == own);
    let functions: BTreeSet<&str> = in_package
        .flat_map(|other| definitions(other))
        .filter(|(_, head, _)| head.is_function)
        .map(|(_, head, _)| head.name)
        .collect();
    let mut found = import_problems(module);
    each_node(module, &mut |node| match node {
        Node::Stmt(stmt) if !stmt.with_mods.is_empty() => {
            found.push(at(&stmt.span, "`with` is for tests; call a function with what is to be replaced".into()));
        }
        Node::Expr(Expr::Call { fcn, span, .. }) => {
            let Some((names, true)) = path(fcn) else {
                found.push(at(span, "the called function must be named, not computed".into()));
                return;
            };
            let name = names.join(".");
            let of_bundle = functions.contains(name.as_str()) || names[0] == "data";
            if !of_bundle && !is_allowed(&name) {
                found.push(at(span, refusal(&name)));
            }
        }
        _ => {}
    });
    found
}

/// The evaluator looks names of imports up in the file that asks, not in the one that imports: they are refused, so that
/// no rule is undefined for that reason.
pub(crate) fn import_problems(module: &Module) -> Vec<Problem> {
    let names = |import: &Import| path(&import.refr).map(|(names, _)| names.join(".")).unwrap_or_default();
    let refused = module.imports.iter().filter(|import| {
        let name = names(import);
        name != "rego.v1" && !name.starts_with("future.keywords")
    });
    refused
        .map(|import| at(&import.span, format!("nothing is imported: write `{}` where it is used", names(import))))
        .collect()
}

/// Why a function may not be called, and what to do instead.
fn refusal(name: &str) -> String {
    let instead = match name.split('.').next().unwrap_or_default() {
        "http" | "net" | "opa" | "providers" | "aws" => {
            "a policy does not talk to anything: put what it needs into data.json"
        }
        "time" => "a policy reads no clock: what depends on time is decided by the engine",
        "rand" | "uuid" => "a policy draws no random numbers: the same input has the same decision",
        "io" | "crypto" => "a policy checks no signatures and keeps no secrets",
        "print" | "trace" => "`interlock policy eval` shows which rules gave the answer",
        "regex" => "of these, `regex.match` may be used",
        "walk" | "json" | "yaml" | "graph" | "object" => {
            "it can take very long on nested values: name the fields that count"
        }
        _ => "docs/reference/policy.md lists the functions that may be called",
    };
    format!("`{name}` may not be called here: {instead}")
}
