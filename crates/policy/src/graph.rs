//! Which rules read which others.

use std::collections::{BTreeMap, BTreeSet};

use regorus::unstable::{Expr, Module, Rule, RuleBody};

use crate::syntax::{Head, definitions, each_in_expr, each_in_query, package, path, references, root};

/// The rules of a bundle, by their full names without `data`.
pub(crate) struct RuleGraph {
    all: BTreeSet<String>,
    /// For each rule, those that read it.
    users: BTreeMap<String, BTreeSet<String>>,
}

impl RuleGraph {
    pub(crate) fn of(modules: &[&Module]) -> Self {
        let named = modules.iter().flat_map(|module| {
            let own = package(module);
            module.policy.iter().filter_map(move |rule| Some(format!("{own}.{}", name_of(rule)?)))
        });
        let mut graph = Self { all: named.collect(), users: BTreeMap::new() };
        for module in modules {
            let own = package(module);
            for (_, head, bodies) in definitions(module) {
                let name = format!("{own}.{}", head.name);
                let refers = references_of(&head, bodies);
                let used: Vec<String> = refers.iter().flat_map(|reference| graph.read_by(reference, module)).collect();
                for used in used {
                    graph.users.entry(used).or_default().insert(name.clone());
                }
            }
        }
        graph
    }

    /// Whether there is a rule of this name.
    pub(crate) fn has(&self, rule: &str) -> bool {
        self.all.contains(rule)
    }

    pub(crate) fn users_of(&self, rule: &str) -> impl Iterator<Item = &str> {
        self.users.get(rule).into_iter().flatten().map(String::as_str)
    }

    /// The rules that a reference may read.
    pub(crate) fn read_by(&self, reference: &Expr, module: &Module) -> Vec<String> {
        let Some((names, _)) = path(reference) else { return Vec::new() };
        let full = match names[0] {
            "input" => return Vec::new(),
            "data" => names[1..].join("."),
            _ => format!("{}.{}", package(module), names.join(".")),
        };
        let above = full.match_indices('.').map(|(at, _)| &full[..at]).chain([full.as_str()]);
        let mut read: Vec<String> = above.filter_map(|name| self.all.get(name)).cloned().collect();
        let below = if full.is_empty() { String::new() } else { format!("{full}.") };
        let under = self.all.range(below.clone()..).take_while(|rule| rule.starts_with(&below));
        read.extend(under.cloned());
        read
    }

    /// How many rules stand above each other at most, or a rule that needs itself.
    pub(crate) fn depth(&self) -> Result<usize, String> {
        let mut waiting: BTreeMap<&str, usize> = self.all.iter().map(|rule| (rule.as_str(), 0)).collect();
        for user in self.users.values().flatten() {
            *waiting.entry(user).or_default() += 1;
        }
        let mut ready: Vec<(&str, usize)> =
            waiting.iter().filter(|(_, reads)| **reads == 0).map(|(rule, _)| (*rule, 1)).collect();
        let mut depths: BTreeMap<&str, usize> = BTreeMap::new();
        let mut deepest = 0;
        while let Some((rule, depth)) = ready.pop() {
            waiting.remove(rule);
            deepest = deepest.max(depth);
            for user in self.users_of(rule) {
                let known = depths.entry(user).or_default();
                *known = (*known).max(depth + 1);
                let reads = waiting.get_mut(user).expect("what waits for a rule has not been reached");
                *reads -= 1;
                if *reads == 0 {
                    ready.push((user, *known));
                }
            }
        }
        match waiting.keys().next() {
            Some(rule) => Err(self.in_circle(rule, &waiting)),
            None => Ok(deepest),
        }
    }

    /// A rule that needs itself, found from one that waits for such a rule: each of those reads another one that waits, so going back far
    /// enough ends in a circle.
    fn in_circle<'a>(&'a self, from: &'a str, waiting: &BTreeMap<&str, usize>) -> String {
        let mut reads: BTreeMap<&str, &str> = BTreeMap::new();
        for (read, users) in self.users.iter().filter(|(read, _)| waiting.contains_key(read.as_str())) {
            reads.extend(users.iter().map(|user| (user.as_str(), read.as_str())));
        }
        let mut rule = from;
        for _ in 0..waiting.len() {
            rule = reads.get(rule).copied().unwrap_or(rule);
        }
        rule.to_owned()
    }
}

/// All references in a definition: of its head, and of its bodies.
pub(crate) fn references_of<'a>(head: &Head<'a>, bodies: &'a [RuleBody]) -> Vec<&'a Expr> {
    references(|see| {
        head.args.iter().chain(&head.values).for_each(|expr| each_in_expr(expr, see));
        for body in bodies {
            body.assign.iter().for_each(|assign| each_in_expr(&assign.value, see));
            each_in_query(&body.query, see);
        }
    })
}

/// The name of a rule; what stands behind it in `name[key]` or `name.key` is left out.
pub(crate) fn name_of(rule: &Rule) -> Option<&str> {
    match rule {
        Rule::Spec { head, .. } => Some(Head::of(head).name),
        Rule::Default { refr, .. } => root(refr),
    }
}
