//! What can be known about an expression without running it: what it refers to, which functions it calls, and the
//! types that are obvious.

use std::ops::Range;

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SourceInfo, operators};

use super::{NoExpression, compile};
use crate::definition::InputType;
use crate::diagnostic::Code;
use interlock_core::text::nearest::hint;

/// The names that an expression may refer to where it stands.
#[derive(Debug, Clone, Copy, Default)]
pub struct NamesInScope<'a> {
    /// The declared inputs with their types; nothing where inputs are not in reach.
    pub inputs: Option<&'a [(&'a str, Option<InputType>)]>,
    /// Steps that have come before; nothing where steps are not in reach.
    pub steps: Option<&'a [&'a str]>,
    /// The step itself and those that come later.
    pub later: &'a [&'a str],
    /// Other names in reach, whose fields are free.
    pub free: &'a [&'a str],
    /// The fields of `trigger`; none where it is not in reach.
    pub trigger: &'a [&'a str],
    /// `run` with its fields is in reach.
    pub run: bool,
    /// A secret may stand here alone.
    pub secrets: bool,
}

/// What `run` has.
pub const RUN_FIELDS: &[&str] = &["id", "subject", "workspace", "labels", "workflow", "version"];
/// What `trigger` has where an event from outside starts a run, and where a schedule does.
pub const EVENT_TRIGGER_FIELDS: &[&str] = &["kind", "endpoint", "event", "key"];
pub const SCHEDULE_TRIGGER_FIELDS: &[&str] = &["kind", "schedule", "slot", "key"];
/// What a step in `steps` has.
pub const STEP_FIELDS: &[&str] = &["output", "state"];

/// The functions of CEL that can be called here; those over time are left out, since expressions know no clock.
const FUNCTIONS: &[&str] = &[
    "bool",
    "bytes",
    "contains",
    "double",
    "dyn",
    "endsWith",
    "int",
    "matches",
    "max",
    "min",
    "optional.none",
    "optional.of",
    "optional.ofNonZeroValue",
    "orValue",
    "hasValue",
    "value",
    "size",
    "startsWith",
    "string",
    "type",
    "uint",
];
/// The types that `type(x)` can be held against. Where a value is charged for, a type becomes its name, a text: so there is
/// no type of types.
const TYPES: &[&str] = &["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "uint"];
const MACROS: &[&str] = &["all", "exists", "exists_one", "filter", "has", "map"];

/// One thing that is wrong, and where in the expression, in bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    pub code: Code,
    pub range: Range<usize>,
    pub message: String,
    pub help: Option<String>,
}

/// The name, if the expression is a secret and nothing else.
pub fn secret(source: &str) -> Option<&str> {
    let name = source.trim().strip_prefix("secrets.")?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some(name)
}

/// Everything that is wrong with an expression; `condition` must be true or false.
pub fn faults(source: &str, known: &NamesInScope<'_>, condition: bool) -> Vec<Fault> {
    let whole = trimmed(source);
    if secret(source).is_some() {
        if known.secrets && !condition {
            return Vec::new();
        }
        let message = "a secret cannot be used here".to_owned();
        let help = Some("secrets can only stand alone as a value in `with`: `${{ secrets.NAME }}`".to_owned());
        return vec![Fault { code: Code::SecretUse, range: whole, message, help }];
    }
    if source.trim().is_empty() {
        let message = "the expression is empty".to_owned();
        return vec![Fault { code: Code::ExpressionSyntax, range: 0..source.len(), message, help: None }];
    }
    let program = match compile(source) {
        Ok(program) => program,
        Err(error) => return vec![unreadable(source, whole, &error)],
    };
    let mut check = Check { source, known, info: program.source_info(), bound: Vec::new(), faults: Vec::new() };
    let root = program.expression();
    check.walk(root);
    let kind = check.kind(root);
    if condition
        && let Some(kind) = kind
        && kind != Type::Bool
    {
        let message = format!("a condition is true or false, this is {}", kind.said());
        check.faults.push(Fault { code: Code::ExpressionType, range: whole, message, help: None });
    }
    check.faults
}

fn trimmed(source: &str) -> Range<usize> {
    let start = source.len() - source.trim_start().len();
    start..start + source.trim().len()
}

fn unreadable(source: &str, whole: Range<usize>, error: &NoExpression) -> Fault {
    let NoExpression::Syntax { message, line, column } = error else {
        return Fault { code: Code::ExpressionTooLarge, range: whole, message: error.to_string(), help: None };
    };
    let line_start: usize = source.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let column = source.get(line_start..).unwrap_or_default().char_indices().nth(column.saturating_sub(1));
    let from = column.map_or(whole.end.saturating_sub(1), |(at, _)| line_start + at);
    let range = from.min(whole.end.saturating_sub(1)).max(whole.start)..whole.end;
    let message = format!("this is not CEL: {message}");
    Fault { code: Code::ExpressionSyntax, range, message, help: None }
}

/// The types that are obvious.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Bool,
    Int,
    Double,
    /// A JSON number, which may be whole.
    Number,
    Text,
    List,
    Map,
    Null,
}

impl Type {
    const fn said(self) -> &'static str {
        match self {
            Self::Bool => "true or false",
            Self::Int | Self::Double | Self::Number => "a number",
            Self::Text => "text",
            Self::List => "a list",
            Self::Map => "a map",
            Self::Null => "null",
        }
    }

    fn meets(self, other: Self) -> bool {
        let number = |kind| matches!(kind, Self::Int | Self::Double | Self::Number);
        self == other || (number(self) && number(other)) || self == Self::Null || other == Self::Null
    }
}

struct Check<'a> {
    source: &'a str,
    known: &'a NamesInScope<'a>,
    info: &'a SourceInfo,
    /// Names that a macro has bound: `x` in `list.all(x, …)`.
    bound: Vec<String>,
    faults: Vec<Fault>,
}

impl Check<'_> {
    fn fault(&mut self, code: Code, range: Range<usize>, message: String, help: Option<String>) {
        self.faults.push(Fault { code, range, message, help });
    }

    fn walk(&mut self, node: &IdedExpr) {
        match &node.expr {
            Expr::Ident(name) => self.root(node, name),
            Expr::Select(select) => match path(node) {
                Some(segments) => self.path(node, &segments),
                None => self.walk(&select.operand),
            },
            Expr::Call(call) => self.call(node, call),
            Expr::List(list) => list.elements.iter().for_each(|element| self.walk(element)),
            Expr::Map(map) => map.entries.iter().for_each(|entry| self.entry(&entry.expr)),
            Expr::Struct(made) => {
                let message = format!("there is no type `{}` here", made.type_name);
                let range = self.near(node, &made.type_name);
                self.fault(Code::UnknownReference, range, message, None);
            }
            Expr::Comprehension(each) => {
                self.walk(&each.iter_range);
                let before = self.bound.len();
                self.bound.extend([each.iter_var.clone(), each.accu_var.clone()]);
                self.bound.extend(each.iter_var2.clone());
                for part in [&each.accu_init, &each.loop_cond, &each.loop_step, &each.result] {
                    self.walk(part);
                }
                self.bound.truncate(before);
            }
            Expr::Literal(_) | Expr::Unspecified => {}
        }
    }

    fn entry(&mut self, entry: &EntryExpr) {
        match entry {
            EntryExpr::MapEntry(entry) => {
                self.walk(&entry.key);
                self.walk(&entry.value);
            }
            EntryExpr::StructField(field) => self.walk(&field.value),
        }
    }

    fn call(&mut self, node: &IdedExpr, call: &CallExpr) {
        // `steps["id"]` is `steps.id`.
        if let Some(segments) = path(node) {
            self.path(node, &segments);
            return;
        }
        let name = call.func_name.as_str();
        let is_operator = name.contains(['_', '@', '!', '-']) && !MACROS.contains(&name);
        let qualified = call.target.as_ref().and_then(|target| match &target.expr {
            Expr::Ident(namespace) => Some(format!("{namespace}.{name}")),
            _ => None,
        });
        let is_qualified = qualified.as_deref().is_some_and(|name| FUNCTIONS.contains(&name));
        if !is_operator && !FUNCTIONS.contains(&name) && !is_qualified {
            let known = FUNCTIONS.iter().chain(MACROS).copied().collect::<Vec<_>>();
            let range = self.near(node, name);
            self.fault(
                Code::UnknownFunction,
                range,
                format!("there is no function `{name}`"),
                Some(hint(name, known.iter().copied())),
            );
        }
        if let Some(target) = call.target.as_ref().filter(|_| !is_qualified) {
            self.walk(target);
        }
        call.args.iter().for_each(|arg| self.walk(arg));
        self.operands(node, call);
    }

    /// A path from a name on: `steps.check.output.code`.
    fn path(&mut self, node: &IdedExpr, segments: &[&str]) {
        let [root, rest @ ..] = segments else { return };
        if self.bound.iter().any(|bound| bound == root) {
            return;
        }
        match (*root, rest) {
            ("inputs", [name, ..]) if self.known.inputs.is_some() => {
                let names: Vec<_> = self.known.inputs.into_iter().flatten().map(|(name, _)| *name).collect();
                if !names.contains(name) {
                    let help = if names.is_empty() {
                        "the workflow declares no inputs; add it under `inputs:`".to_owned()
                    } else {
                        hint(name, names.iter().copied())
                    };
                    let range = self.member(node, root, name);
                    self.fault(Code::UndeclaredInput, range, format!("the input `{name}` is not declared"), Some(help));
                }
            }
            ("steps", [name, rest @ ..]) if self.known.steps.is_some() => self.step(node, name, rest),
            ("run", [name, ..]) if self.known.run => {
                if !RUN_FIELDS.contains(name) {
                    let help = Some(hint(name, RUN_FIELDS.iter().copied()));
                    let range = self.member(node, root, name);
                    self.fault(Code::UnknownReference, range, format!("`run` has no `{name}`"), help);
                }
            }
            ("trigger", [name, ..]) if !self.known.trigger.is_empty() => {
                if !self.known.trigger.contains(name) {
                    let help = Some(hint(name, self.known.trigger.iter().copied()));
                    let range = self.member(node, root, name);
                    self.fault(Code::UnknownReference, range, format!("`trigger` has no `{name}`"), help);
                }
            }
            _ => self.root(node, root),
        }
    }

    fn step(&mut self, node: &IdedExpr, name: &str, rest: &[&str]) {
        let before = self.known.steps.unwrap_or_default();
        let range = self.member(node, "steps", name);
        if self.known.later.contains(&name) {
            let help = Some("an expression sees only the steps that come before it".to_owned());
            self.fault(Code::LaterStep, range, format!("the step `{name}` has not run yet at this point"), help);
        } else if !before.contains(&name) {
            // `steps.a-b` is a subtraction.
            let dashed = before.iter().chain(self.known.later).find(|known| known.starts_with(&format!("{name}-")));
            let help = if let Some(dashed) = dashed {
                format!("an id with a dash is written `steps[\"{dashed}\"]`")
            } else if before.is_empty() {
                "no step comes before this one".to_owned()
            } else {
                hint(name, before.iter().copied())
            };
            self.fault(Code::UnknownStep, range, format!("there is no step `{name}`"), Some(help));
        } else if let Some(field) = rest.first().filter(|field| !STEP_FIELDS.contains(field)) {
            let help = if interlock_core::text::nearest::nearest(field, STEP_FIELDS.iter().copied()).is_some() {
                hint(field, STEP_FIELDS.iter().copied())
            } else {
                format!("what the step gave is under `output`: `steps.{name}.output.{field}`")
            };
            let range = self.member(node, name, field);
            self.fault(Code::UnknownReference, range, format!("a step has no `{field}`"), Some(help));
        }
    }

    fn root(&mut self, node: &IdedExpr, name: &str) {
        let mut roots: Vec<&str> = self.known.free.to_vec();
        for (there, root) in [
            (!self.known.trigger.is_empty(), "trigger"),
            (self.known.inputs.is_some(), "inputs"),
            (self.known.steps.is_some(), "steps"),
            (self.known.run, "run"),
        ] {
            if there {
                roots.push(root);
            }
        }
        let range = self.near(node, name);
        if name == "secrets" {
            let help = Some("write `${{ secrets.NAME }}` as the whole value".to_owned());
            let message = "a secret is a reference: nothing can be computed with it".to_owned();
            self.fault(Code::SecretUse, range, message, help);
        } else if !roots.contains(&name) && !TYPES.contains(&name) && !self.bound.iter().any(|bound| bound == name) {
            let message = format!("there is no `{name}` here");
            let help = Some(hint(name, roots.iter().copied()));
            self.fault(Code::UnknownReference, range, message, help);
        }
    }

    /// The operators whose operands' types are obvious and do not fit.
    fn operands(&mut self, node: &IdedExpr, call: &CallExpr) {
        let kinds: Vec<_> = call.args.iter().map(|arg| self.kind(arg)).collect();
        let name = call.func_name.as_str();
        match (name, kinds.as_slice()) {
            (
                operators::ADD
                | operators::SUBSTRACT
                | operators::MULTIPLY
                | operators::DIVIDE
                | operators::MODULO
                | operators::LESS
                | operators::LESS_EQUALS
                | operators::GREATER
                | operators::GREATER_EQUALS
                | operators::EQUALS
                | operators::NOT_EQUALS,
                [Some(left), Some(right)],
            ) if !left.meets(*right) => {
                let sign = name.trim_matches('_');
                let message = format!("`{sign}` between {} and {}", left.said(), right.said());
                let help = (*left == Type::Text || *right == Type::Text)
                    .then(|| "turn one side into text with `string(…)`, or into a number with `int(…)`".to_owned());
                let range = self.near(node, sign);
                self.fault(Code::ExpressionType, range, message, help);
            }
            (operators::LOGICAL_AND | operators::LOGICAL_OR | operators::LOGICAL_NOT, kinds) => {
                for kind in kinds.iter().flatten().filter(|kind| **kind != Type::Bool) {
                    let sign = name.trim_matches('_');
                    let message = format!("`{sign}` takes true or false, this is {}", kind.said());
                    let range = self.near(node, sign);
                    self.fault(Code::ExpressionType, range, message, None);
                }
            }
            _ => {}
        }
    }

    fn kind(&self, node: &IdedExpr) -> Option<Type> {
        match &node.expr {
            Expr::Literal(literal) => Some(match literal {
                LiteralValue::Boolean(_) => Type::Bool,
                LiteralValue::Double(_) => Type::Double,
                LiteralValue::Int(_) | LiteralValue::UInt(_) => Type::Int,
                LiteralValue::Null => Type::Null,
                LiteralValue::String(_) => Type::Text,
                LiteralValue::Bytes(_) => return None,
            }),
            Expr::List(_) => Some(Type::List),
            Expr::Map(_) => Some(Type::Map),
            Expr::Select(select) if select.test => Some(Type::Bool),
            Expr::Select(_) => match path(node)?.as_slice() {
                ["inputs", name] => {
                    let (_, kind) = self.known.inputs.into_iter().flatten().find(|(known, _)| known == name)?;
                    kind.map(|kind| match kind {
                        InputType::String => Type::Text,
                        InputType::Integer => Type::Int,
                        InputType::Number => Type::Number,
                        InputType::Boolean => Type::Bool,
                        InputType::Object => Type::Map,
                        InputType::Array => Type::List,
                    })
                }
                ["steps", _, "state"] => Some(Type::Text),
                _ => None,
            },
            Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
                (
                    operators::EQUALS
                    | operators::NOT_EQUALS
                    | operators::LESS
                    | operators::LESS_EQUALS
                    | operators::GREATER
                    | operators::GREATER_EQUALS
                    | operators::LOGICAL_AND
                    | operators::LOGICAL_OR
                    | operators::LOGICAL_NOT
                    | operators::IN
                    | "contains"
                    | "startsWith"
                    | "endsWith"
                    | "matches"
                    | "bool",
                    _,
                ) => Some(Type::Bool),
                ("string", _) => Some(Type::Text),
                ("size" | "int", _) => Some(Type::Int),
                ("double", _) => Some(Type::Double),
                (operators::ADD | operators::SUBSTRACT | operators::MULTIPLY, [left, right])
                | (operators::CONDITIONAL, [_, left, right]) => {
                    let (left, right) = (self.kind(left)?, self.kind(right)?);
                    (left == right).then_some(left)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Where a name stands, near a node: the first time from the node's own place on, else the first time at all.
    fn near(&self, node: &IdedExpr, name: &str) -> Range<usize> {
        let from = self.info.offset_for(node.id).map_or(0, |(start, _)| start as usize);
        let nearest = from.saturating_sub(name.len())..=from.min(self.source.len());
        let before = nearest.rev().find(|at| self.source.is_char_boundary(*at) && self.source[*at..].starts_with(name));
        let found = before
            .or_else(|| self.source.get(from..).and_then(|rest| rest.find(name)).map(|at| from + at))
            .or_else(|| self.source.find(name));
        found.map_or_else(|| trimmed(self.source), |at| at..at + name.len())
    }

    /// Where a member stands behind its parent: `steps` then `typo` in `steps.typo`.
    fn member(&self, node: &IdedExpr, parent: &str, name: &str) -> Range<usize> {
        for (open, close) in [(".", ""), ("['", "']"), ("[\"", "\"]")] {
            let spelled = format!("{parent}{open}{name}{close}");
            if let Some(at) = self.source.find(&spelled) {
                let start = at + parent.len() + open.len();
                return start..start + name.len();
            }
        }
        self.near(node, name)
    }
}

/// The steps that an expression names. What is not an expression names none.
pub fn steps_of(source: &str) -> Vec<String> {
    let Ok(program) = compile(source) else { return Vec::new() };
    let mut found = Vec::new();
    collect(program.expression(), &mut found);
    found.sort();
    found.dedup();
    found
}

fn collect(node: &IdedExpr, found: &mut Vec<String>) {
    if let Some(["steps", step, ..]) = path(node).as_deref() {
        found.push((*step).to_owned());
        return;
    }
    match &node.expr {
        Expr::Select(select) => collect(&select.operand, found),
        Expr::Call(call) => {
            call.target.iter().map(AsRef::as_ref).chain(&call.args).for_each(|part| collect(part, found));
        }
        Expr::List(list) => list.elements.iter().for_each(|element| collect(element, found)),
        Expr::Map(map) => map.entries.iter().for_each(|entry| {
            if let EntryExpr::MapEntry(entry) = &entry.expr {
                collect(&entry.key, found);
                collect(&entry.value, found);
            }
        }),
        Expr::Comprehension(each) => {
            for part in [&each.iter_range, &each.accu_init, &each.loop_cond, &each.loop_step, &each.result] {
                collect(part, found);
            }
        }
        _ => {}
    }
}

/// The names from the root on, if the node spells nothing but names.
fn path(node: &IdedExpr) -> Option<Vec<&str>> {
    match &node.expr {
        Expr::Ident(name) => Some(vec![name]),
        Expr::Select(select) => {
            let mut segments = path(&select.operand)?;
            segments.push(&select.field);
            Some(segments)
        }
        Expr::Call(call) if call.func_name == operators::INDEX => match call.args.as_slice() {
            [operand, index] => match &index.expr {
                Expr::Literal(LiteralValue::String(key)) => {
                    let mut segments = path(operand)?;
                    segments.push(key.inner());
                    Some(segments)
                }
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> NamesInScope<'static> {
        NamesInScope {
            inputs: Some(&[("incident", Some(InputType::String)), ("count", Some(InputType::Integer)), ("any", None)]),
            steps: Some(&["check", "restart"]),
            later: &["note", "done"],
            free: &[],
            trigger: &[],
            run: true,
            secrets: true,
        }
    }

    fn found(source: &str) -> Vec<(Code, String)> {
        let faults = faults(source, &known(), false);
        faults.into_iter().map(|fault| (fault.code, source[fault.range].to_owned())).collect()
    }

    #[test]
    fn what_is_right_passes() {
        for source in [
            "inputs.incident",
            "inputs['incident'] == 'x'",
            "steps.check.output.exit_code == 0 && inputs.count > 3",
            "steps[\"restart\"].state == 'succeeded'",
            "inputs.any.all(item, item.size() > 0 && item != inputs.incident)",
            "has(inputs.any.x) ? inputs.any.x : 'none'",
            "run.id + run.labels.env",
            "[1, 2].map(n, n * inputs.count)",
            "inputs.any.exists(k, k == 'a') || !(inputs.count in [1, 2])",
            "size(inputs.incident) > 3 && inputs.incident.matches('^INC')",
            " secrets.DB_PASSWORD ",
            "-inputs.count < -1",
            "type(inputs.any) == int || type(inputs.any) == null_type",
            "max(inputs.count, 3) > min([1, 2])",
        ] {
            assert_eq!(found(source), [], "{source}");
        }
    }

    #[test]
    fn what_is_wrong_is_found_where_it_stands() {
        for (source, code, text) in [
            ("steps.chek.output.x", Code::UnknownStep, "chek"),
            ("steps['chek'].output.x", Code::UnknownStep, "chek"),
            ("1 + steps.note.output.x", Code::LaterStep, "note"),
            ("inputs.incidnt", Code::UndeclaredInput, "incidnt"),
            ("input.incident", Code::UnknownReference, "input"),
            ("steps.check.exit_code", Code::UnknownReference, "exit_code"),
            ("run.nme", Code::UnknownReference, "nme"),
            ("inputs.incident.startWith('x')", Code::UnknownFunction, "startWith"),
            ("lower(inputs.incident)", Code::UnknownFunction, "lower"),
            ("inputs.incident + 1", Code::ExpressionType, "+"),
            ("inputs.count && true", Code::ExpressionType, "&&"),
            ("'x' + secrets.A", Code::SecretUse, "secrets"),
            ("inputs.any.all(x, y > 1)", Code::UnknownReference, "y"),
        ] {
            assert_eq!(found(source), [(code, text.to_owned())], "{source}");
        }
        assert_eq!(found("1 +")[0].0, Code::ExpressionSyntax);
        assert_eq!(found("  ")[0].0, Code::ExpressionSyntax);
    }

    #[test]
    fn a_trigger_has_the_fields_that_it_is_given() {
        let found = |source: &str, trigger: &'static [&'static str]| {
            let known = NamesInScope { free: &["event"], trigger, ..NamesInScope::default() };
            let faults = faults(source, &known, false);
            faults.into_iter().map(|fault| (fault.code, source[fault.range].to_owned())).collect::<Vec<_>>()
        };
        let wrong = |name: &str| vec![(Code::UnknownReference, name.to_owned())];
        assert_eq!(found("event.action + trigger.key + trigger.event", EVENT_TRIGGER_FIELDS), []);
        assert_eq!(found("trigger.payload.action == 'opened'", EVENT_TRIGGER_FIELDS), wrong("payload"));
        assert_eq!(found("trigger.slot", EVENT_TRIGGER_FIELDS), wrong("slot"));
        assert_eq!(found("trigger.slot + trigger.schedule", SCHEDULE_TRIGGER_FIELDS), []);
        assert_eq!(found("trigger.endpoint", SCHEDULE_TRIGGER_FIELDS), wrong("endpoint"));
        assert_eq!(found("trigger.key", &[]), wrong("trigger"));
    }

    #[test]
    fn a_condition_is_true_or_false_as_far_as_can_be_known() {
        let code = |source| faults(source, &known(), true).first().map(|fault| fault.code);
        assert_eq!(code("inputs.incident"), Some(Code::ExpressionType));
        assert_eq!(code("'always'"), Some(Code::ExpressionType));
        assert_eq!(code("secrets.A"), Some(Code::SecretUse));
        assert_eq!(code("inputs.any"), None);
        assert_eq!(code("inputs.count > 1"), None);
    }

    /// Each function and macro with an expression that needs it, and what that gives.
    const EXAMPLES: &[(&str, &str, &str)] = &[
        ("all", "[1, 2].all(x, x > 0)", "true"),
        ("bool", "bool('true')", "true"),
        ("bytes", "size(bytes('ä'))", "2"),
        ("contains", "'abc'.contains('b')", "true"),
        ("double", "double(1) / 2.0", "0.5"),
        ("dyn", "dyn(1) + 1", "2"),
        ("endsWith", "'abc'.endsWith('c')", "true"),
        ("exists", "[1, 2].exists(x, x > 1)", "true"),
        ("exists_one", "[1, 2].exists_one(x, x > 1)", "true"),
        ("filter", "[1, 2].filter(x, x > 1)", "[2]"),
        ("has", "has({'a': 1}.a)", "true"),
        ("hasValue", "optional.of(1).hasValue()", "true"),
        ("int", "int('7')", "7"),
        ("map", "[1, 2].map(x, x * 2)", "[2,4]"),
        ("matches", "'abc'.matches('^a')", "true"),
        ("max", "max(1, 3, 2) + max([4, 5])", "8"),
        ("min", "min(1, 3, 2) + min([4, 5])", "5"),
        ("optional.none", "optional.none().orValue(2)", "2"),
        ("optional.of", "optional.of(1).orValue(2)", "1"),
        ("optional.ofNonZeroValue", "optional.ofNonZeroValue(0).orValue(2)", "2"),
        ("orValue", "optional.none().orValue('x')", "\"x\""),
        ("size", "size('abc') + [1].size()", "4"),
        ("startsWith", "'abc'.startsWith('a')", "true"),
        ("string", "string(1) + 'x'", "\"1x\""),
        (
            "type",
            "[type(true) == bool, type(bytes('a')) == bytes, type(1.5) == double, type(1) == int, type([]) == list, \
             type([1]) == list, type({}) == map, type(null) == null_type, type('a') == string, type(1u) == uint, \
             type([]) == 'list'].all(same, same) && type([]) != map && type(1u) != int",
            "true",
        ),
        ("uint", "uint(7)", "7"),
        ("value", "optional.of(3).value()", "3"),
    ];

    #[test]
    fn every_function_that_is_accepted_exists_and_is_documented() {
        let scope = super::super::Scope::default();
        for (name, source, expected) in EXAMPLES {
            assert_eq!(found(source), [], "{name}");
            let value = super::super::evaluate(source, &scope).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(value.to_string(), *expected, "{name}");
        }
        let mut accepted: Vec<&str> = FUNCTIONS.iter().chain(MACROS).copied().collect();
        accepted.sort_unstable();
        let shown: Vec<&str> = EXAMPLES.iter().map(|(name, ..)| *name).collect();
        let mut sorted = shown.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, accepted);
        let page = include_str!("../../../../docs/reference/workflow.md");
        let start = page.find("Functions: ").expect("the reference lists the functions");
        let list = &page[start..start + page[start..].find("\n\n").expect("the list ends")];
        let documented: std::collections::BTreeSet<&str> = list.split('`').skip(1).step_by(2).collect();
        let known: std::collections::BTreeSet<&str> = accepted.iter().chain(TYPES).copied().collect();
        assert_eq!(documented, known);
    }
}
