//! Whether an answer can depend on what belongs to one run (`input.run`, `input.worker`, `input.fields`).
//!
//! A bound part can matter only where the text of a rule refers to it. Each body that does is taken apart: its statements
//! that refer to nothing bound, directly or through other rules, are put into a *probe*, a rule of their own. If a probe
//! does not hold for the fixed part of an input, its body cannot hold either, whatever is bound. If none holds, no body that
//! looks at something bound can take part in the answer, and the answer is the same for every run.
//!
//! Of a command, `input.action` holds the arguments and variables that its expressions came to in this run. Where any rule looks at
//! them, the answer on a command counts as dependent.
//!
//! Where this cannot be shown, the answer counts as dependent.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use regorus::unstable::{Expr, Literal, LiteralStmt, Module, Span};

use crate::graph::{RuleGraph, references_of};
use crate::input::{BOUND, BOUND_IN_COMMANDS};
use crate::syntax::{
    Node, declared, definitions, each_in_expr, each_in_query, each_in_stmt, package, path, references, root, variables,
};

pub(crate) const PROBE_PREFIX: &str = "interlock_probe";
/// The rule that holds where a probe does.
pub(crate) const PROBED: &str = "data.interlock_probes.open";
const PROBES_FILE: &str = "probes";

/// The modules with the probes in them, and one that asks them all. None where nothing refers to a bound part.
pub(crate) fn with_probes(modules: &[(&str, &str, &Module)], graph: &RuleGraph) -> Option<BTreeMap<String, String>> {
    let rules = BoundRules::of(graph, modules.iter().map(|(_, _, module)| *module));
    let mut asked = String::from("package interlock_probes\n");
    let mut count = 0;
    let mut probed = BTreeMap::new();
    for (name, text, module) in modules {
        let mut text = format!("{text}\n");
        for guards in rules.bound_bodies(module) {
            let probe = format!("{PROBE_PREFIX}_{count}");
            count += 1;
            let body = guards.iter().map(|stmt| text_of(&stmt.span)).collect::<Vec<_>>().join("\n\t");
            let body = if body.is_empty() { "true".to_owned() } else { body };
            writeln!(text, "\n{probe} if {{\n\t{body}\n}}").expect("a text takes a text");
            writeln!(asked, "open if data.{}.{probe}", package(module)).expect("a text takes a text");
        }
        probed.insert((*name).to_owned(), text);
    }
    probed.insert(PROBES_FILE.to_owned(), asked);
    (count > 0).then_some(probed)
}

/// The text of a statement. The parser leaves out the quotes of a text at either end.
fn text_of(span: &Span) -> &str {
    let (whole, start, end) = (span.source.contents().as_str(), span.start as usize, span.end as usize);
    let is_quote = |c: char| c == '"' || c == '`';
    let start = start - usize::from(whole[..start].ends_with(is_quote));
    let end = end + usize::from(whole[end..].starts_with(is_quote));
    &whole[start..end]
}

/// Whether a reference leads into a bound part, or could.
fn is_bound(reference: &Expr) -> bool {
    match path(reference) {
        Some((names, _)) if names[0] == "input" => names.get(1).is_none_or(|part| BOUND.contains(part)),
        _ => false,
    }
}

/// Whether a module looks at what an action is done with, or could.
pub(crate) fn reads_fields(module: &Module) -> bool {
    let reads = |reference: &Expr| match path(reference) {
        Some((names, _)) if names[0] == "input" => names.get(1).is_none_or(|part| *part == "fields"),
        _ => false,
    };
    definitions(module).any(|(_, head, bodies)| references_of(&head, bodies).into_iter().any(reads))
}

/// Whether a module looks at a command as one run has it, or could.
pub(crate) fn reads_command(module: &Module) -> bool {
    let reads = |reference: &Expr| match path(reference) {
        Some((names, _)) if names[0] == "input" => match names.get(1) {
            None => true,
            Some(part) if *part == "action" => names.get(2).is_none_or(|field| BOUND_IN_COMMANDS.contains(field)),
            Some(_) => false,
        },
        _ => false,
    };
    definitions(module).any(|(_, head, bodies)| references_of(&head, bodies).into_iter().any(reads))
}

/// The rules of a bundle, and those of them that depend on something bound.
struct BoundRules<'a> {
    graph: &'a RuleGraph,
    bound: BTreeSet<String>,
}

impl<'g> BoundRules<'g> {
    fn of<'a>(graph: &'g RuleGraph, modules: impl Iterator<Item = &'a Module>) -> Self {
        let mut fresh: Vec<String> = modules.flat_map(refers_to_bound).collect();
        let mut bound = BTreeSet::new();
        while let Some(name) = fresh.pop() {
            if bound.insert(name.clone()) {
                fresh.extend(graph.users_of(&name).map(str::to_owned));
            }
        }
        Self { graph, bound }
    }

    /// The statements of each body that refers to something bound which refer to nothing bound themselves.
    fn bound_bodies<'a>(&self, module: &'a Module) -> Vec<Vec<&'a LiteralStmt>> {
        let mut found = Vec::new();
        for (_, head, bodies) in definitions(module) {
            let is_bound_in = |expr: &Expr| references(|see| each_in_expr(expr, see)).into_iter().any(is_bound);
            let head_is_bound = head.values.iter().chain(&head.args).any(|expr| is_bound_in(expr));
            if bodies.is_empty() && head_is_bound {
                found.push(Vec::new());
            }
            for body in bodies {
                let value_is_bound = body.assign.as_ref().is_some_and(|assign| is_bound_in(&assign.value));
                let body_is_bound = references(|see| each_in_query(&body.query, see)).into_iter().any(is_bound);
                if head_is_bound || value_is_bound || body_is_bound {
                    let mut locals = declared(|see| each_in_query(&body.query, see));
                    head.args.iter().for_each(|arg| variables(arg, &mut locals));
                    found.push(self.guards(module, &locals, &body.query.stmts));
                }
            }
        }
        found
    }

    /// The statements that mean the same alone: they use names of the package, and local names that such statements declare.
    fn guards<'a>(&self, module: &Module, locals: &BTreeSet<&str>, stmts: &'a [LiteralStmt]) -> Vec<&'a LiteralStmt> {
        let mut available: BTreeSet<&str> = BTreeSet::new();
        let mut guards = Vec::new();
        for stmt in stmts {
            let declares = declared(|see| each_in_stmt(stmt, see));
            let refers = references(|see| each_in_stmt(stmt, see));
            let called = calls(stmt);
            let is_called = |reference: &Expr| called.iter().any(|name| std::ptr::eq(*name, reference));
            let is_fixed = |reference: &&Expr| {
                let name = root(reference).unwrap_or_default();
                if locals.contains(name) {
                    return available.contains(name) || declares.contains(name);
                }
                let read = self.graph.read_by(reference, module);
                let is_known = name == "input" || name == "data" || !read.is_empty() || is_called(reference);
                is_known && !is_bound(reference) && !read.iter().any(|rule| self.bound.contains(rule))
            };
            let is_plain = !matches!(stmt.literal, Literal::SomeVars { .. }) && stmt.with_mods.is_empty();
            if is_plain && refers.iter().all(is_fixed) {
                available.extend(declares);
                guards.push(stmt);
            }
        }
        guards
    }
}

/// The rules of a module whose own text refers to something bound.
fn refers_to_bound(module: &Module) -> Vec<String> {
    let own = package(module);
    let refers = definitions(module).filter(|(_, head, bodies)| references_of(head, bodies).into_iter().any(is_bound));
    refers.map(|(_, head, _)| format!("{own}.{}", head.name)).collect()
}

/// The functions that a statement calls, by their names in it.
fn calls(stmt: &LiteralStmt) -> Vec<&Expr> {
    let mut found = Vec::new();
    each_in_stmt(stmt, &mut |node| {
        if let Node::Expr(Expr::Call { fcn, .. }) = node {
            found.push(&**fcn);
        }
    });
    found
}
