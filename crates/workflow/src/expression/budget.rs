//! What an evaluation may cost. The interpreter counts nothing, so [`metered`] rewrites a program: every operand that is
//! copied, looked through or walked over passes a function that charges its weight to a [`Budget`], and refuses once
//! that is spent. Since charging comes before building, neither time nor memory outgrows the budget.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use cel::extractors::This;
use cel::objects::Key;
use cel::{Context, ExecutionError};
use interlock_core::limits::{EXPRESSION_COST_MAX, EXPRESSION_LOOPS_MAX};
use serde_json::Value;

use super::pattern::{InvalidPattern, Pattern};

/// No source can spell this.
const CHARGE: &str = "@charge";

/// What an expression costs before it does anything, and for each byte that is compiled.
const EXPRESSION_COST: u64 = 250;
const BYTE_COST: u64 = 4;
/// The values in reach are handed over for each expression, which costs this part of their weight.
const REACH_SHARE: u64 = 64;
/// Bytes of text that weigh as much as one number.
const TEXT_SHARE: u64 = 8;

/// What one request, or one step of a run, may spend on all that it evaluates. Clones share it. The caller who waits
/// for the work can end it from outside ([`Budget::stop`]): the next charge is refused, so the work ends soon after.
#[derive(Debug, Clone, Default)]
pub struct Budget(Arc<Spending>);

#[derive(Debug, Default)]
struct Spending {
    spent: AtomicU64,
    stopped: AtomicBool,
    /// Patterns that were built already; each was paid for, so there are not many.
    patterns: Mutex<HashMap<String, Arc<Pattern>>>,
}

/// Why nothing more is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Spent {
    #[error(
        "the evaluation costs more than {EXPRESSION_COST_MAX} units; use fewer expressions or shorter lists, or compute this in a task"
    )]
    Cost,
    #[error("the evaluation took too long, and was stopped; compute this in a task")]
    Stopped,
}

impl Budget {
    /// Refuses every further charge.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }

    /// What has been spent so far.
    pub fn spent(&self) -> u64 {
        self.0.spent.load(Ordering::Relaxed)
    }

    /// Charges for compiling one expression.
    pub fn open(&self, source: &str) -> Result<(), Spent> {
        self.charge(EXPRESSION_COST + BYTE_COST * source.len() as u64)
    }

    /// Charges for handing values over to one expression.
    pub fn hand_over(&self, weight: u64) -> Result<(), Spent> {
        self.charge(weight / REACH_SHARE)
    }

    fn charge(&self, cost: u64) -> Result<(), Spent> {
        if self.0.stopped.load(Ordering::Relaxed) {
            return Err(Spent::Stopped);
        }
        let before = self.0.spent.fetch_add(cost.min(EXPRESSION_COST_MAX + 1), Ordering::Relaxed);
        if before.saturating_add(cost) > EXPRESSION_COST_MAX {
            return Err(Spent::Cost);
        }
        Ok(())
    }

    /// A pattern, built the first time.
    pub fn pattern(&self, text: &str) -> Result<Arc<Pattern>, InvalidPattern> {
        let built = || self.0.patterns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pattern) = built().get(text) {
            return Ok(Arc::clone(pattern));
        }
        let pattern = Arc::new(Pattern::build(text, |cost| self.charge(cost))?);
        built().insert(text.to_owned(), Arc::clone(&pattern));
        Ok(pattern)
    }

    /// Whether a pattern is found in a text.
    pub fn is_match(&self, pattern: &Pattern, text: &str) -> Result<bool, Spent> {
        self.charge(pattern.search_cost(text.len()))?;
        Ok(pattern.is_match(text))
    }

    /// Makes the functions that [`metered`] calls, and `matches`.
    pub fn equip(&self, context: &mut Context<'_, '_>) -> Result<(), String> {
        let budget = self.clone();
        let charge = move |value: cel::Value| -> Result<cel::Value, ExecutionError> {
            let refused = |spent: Spent| ExecutionError::function_error("evaluate", spent);
            budget.charge(weight(&value)).map_err(refused)?;
            Ok(value)
        };
        context.add_function(CHARGE, charge).map_err(|error| error.to_string())?;
        let budget = self.clone();
        let matches = move |This(text): This<Arc<String>>, pattern: Arc<String>| -> Result<bool, ExecutionError> {
            let refused = |why: InvalidPattern| ExecutionError::function_error("matches", why);
            let pattern = budget.pattern(&pattern).map_err(refused)?;
            budget.is_match(&pattern, &text).map_err(|spent| refused(spent.into()))
        };
        context.add_function("matches", matches).map_err(|error| error.to_string())
    }
}

pub(super) fn text_weight(bytes: usize) -> u64 {
    1 + bytes as u64 / TEXT_SHARE
}

fn weight(value: &cel::Value) -> u64 {
    match value {
        cel::Value::String(text) => text_weight(text.len()),
        cel::Value::Bytes(bytes) => text_weight(bytes.len()),
        cel::Value::List(items) => 1 + items.iter().map(weight).sum::<u64>(),
        cel::Value::Map(map) => {
            let key = |key: &Key| if let Key::String(text) = key { text_weight(text.len()) } else { 1 };
            1 + map.map.iter().map(|(name, value)| key(name) + weight(value)).sum::<u64>()
        }
        _ => 1,
    }
}

/// The weight of values before they are handed over.
pub fn json_weight(value: &Value) -> u64 {
    match value {
        Value::String(text) => text_weight(text.len()),
        Value::Array(items) => 1 + items.iter().map(json_weight).sum::<u64>(),
        Value::Object(fields) => {
            1 + fields.iter().map(|(name, value)| text_weight(name.len()) + json_weight(value)).sum::<u64>()
        }
        _ => 1,
    }
}

/// How deep the tree of an expression is. Goes over it without calling itself, since it may be too deep for that.
pub fn depth(program: &IdedExpr) -> usize {
    let mut deepest = 0;
    let mut left = vec![(program, 1)];
    while let Some((node, depth)) = left.pop() {
        deepest = deepest.max(depth);
        let mut below = |part| left.push((part, depth + 1));
        match &node.expr {
            Expr::Select(select) => below(&select.operand),
            Expr::Call(call) => call.args.iter().chain(call.target.as_deref()).for_each(below),
            Expr::List(list) => list.elements.iter().for_each(below),
            Expr::Map(map) => map.entries.iter().flat_map(|entry| parts(&entry.expr)).for_each(below),
            Expr::Struct(made) => made.entries.iter().flat_map(|entry| parts(&entry.expr)).for_each(below),
            Expr::Comprehension(each) => {
                let inside = [&each.iter_range, &each.accu_init, &each.loop_cond, &each.loop_step, &each.result];
                for part in inside {
                    below(part);
                }
            }
            Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
        }
    }
    deepest
}

fn parts(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        EntryExpr::StructField(field) => vec![&field.value],
    }
}

/// Whether macros that go over lists stand inside each other deeper than allowed.
pub fn is_too_nested(program: &IdedExpr) -> bool {
    loops(program) > EXPRESSION_LOOPS_MAX
}

/// How deep the loops of an expression nest. A list that comes out of a loop before the next one goes over it
/// (`a.filter(…).map(…)`) is no nesting.
fn loops(node: &IdedExpr) -> usize {
    let deepest = |parts: &[&IdedExpr]| parts.iter().map(|part| loops(part)).max().unwrap_or(0);
    match &node.expr {
        Expr::Select(select) => loops(&select.operand),
        Expr::Call(call) => {
            let target = call.target.as_ref().map_or(0, |target| loops(target));
            call.args.iter().map(loops).max().unwrap_or(0).max(target)
        }
        Expr::List(list) => list.elements.iter().map(loops).max().unwrap_or(0),
        Expr::Map(map) => map.entries.iter().map(|entry| entry_loops(&entry.expr)).max().unwrap_or(0),
        Expr::Struct(made) => made.entries.iter().map(|entry| entry_loops(&entry.expr)).max().unwrap_or(0),
        Expr::Comprehension(each) => {
            let inside = deepest(&[&each.accu_init, &each.loop_cond, &each.loop_step, &each.result]);
            loops(&each.iter_range).max(inside + 1)
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => 0,
    }
}

fn entry_loops(entry: &EntryExpr) -> usize {
    match entry {
        EntryExpr::MapEntry(entry) => loops(&entry.key).max(loops(&entry.value)),
        EntryExpr::StructField(field) => loops(&field.value),
    }
}

/// The same program, charging for what it does.
pub fn metered(program: &IdedExpr) -> IdedExpr {
    let mut program = program.clone();
    meter(&mut program);
    program
}

fn meter(node: &mut IdedExpr) {
    match &mut node.expr {
        Expr::Select(select) => meter(&mut select.operand),
        Expr::Call(call) => meter_call(call),
        Expr::List(list) => list.elements.iter_mut().for_each(charged),
        Expr::Map(map) => map.entries.iter_mut().for_each(|entry| meter_entry(&mut entry.expr)),
        Expr::Struct(made) => made.entries.iter_mut().for_each(|entry| meter_entry(&mut entry.expr)),
        Expr::Comprehension(each) => {
            // Every element counts before the first one is looked at, whether or not all of them will be.
            charged(&mut each.iter_range);
            for part in [&mut each.accu_init, &mut each.loop_cond, &mut each.loop_step, &mut each.result] {
                meter(part);
            }
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

fn meter_entry(entry: &mut EntryExpr) {
    match entry {
        EntryExpr::MapEntry(entry) => {
            charged(&mut entry.key);
            charged(&mut entry.value);
        }
        EntryExpr::StructField(field) => charged(&mut field.value),
    }
}

fn meter_call(call: &mut CallExpr) {
    match call.func_name.as_str() {
        // These look at nothing but a truth, a number or one element.
        operators::CONDITIONAL
        | operators::LOGICAL_AND
        | operators::LOGICAL_OR
        | operators::LOGICAL_NOT
        | operators::NOT_STRICTLY_FALSE
        | operators::SUBSTRACT
        | operators::MULTIPLY
        | operators::DIVIDE
        | operators::MODULO
        | operators::NEGATE
        | operators::INDEX
        | operators::OPT_INDEX
        | operators::OPT_SELECT => {
            call.args.iter_mut().for_each(meter);
            return;
        }
        _ => {}
    }
    if let Some(target) = call.target.as_mut() {
        // `optional.of` is a name, not a value with a function.
        if matches!(&target.expr, Expr::Ident(name) if name == "optional") {
            meter(target);
        } else {
            charged(target);
        }
    }
    call.args.iter_mut().for_each(charged);
}

/// Lets a value pass the meter. Lists and maps that are spelled out were charged piece by piece; what a macro gathers
/// (`@result`) was too, and the interpreter knows how to add to it in place only if it finds it as it was.
fn charged(node: &mut IdedExpr) {
    meter(node);
    let is_gathered = matches!(&node.expr, Expr::Ident(name) if name.starts_with('@'));
    let is_spelled = matches!(node.expr, Expr::List(_) | Expr::Map(_));
    let is_small = matches!(&node.expr, Expr::Literal(literal)
        if !matches!(literal, LiteralValue::String(_) | LiteralValue::Bytes(_)));
    if is_gathered || is_spelled || is_small {
        return;
    }
    let inner = std::mem::take(node);
    let call = CallExpr { func_name: CHARGE.to_owned(), target: None, args: vec![inner] };
    *node = IdedExpr { id: 0, expr: Expr::Call(call) };
}
