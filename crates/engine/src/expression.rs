//! Expressions: CEL, evaluated off the async threads, with limits. `${{ … }}` inside a JSON template is replaced by
//! the expression's value; a string that is nothing but one expression takes the value with its type.

use std::collections::HashMap;
use std::sync::Arc;

use cel::objects::{Key, Map};
use cel::{Context, Program};
use interlock_core::limits;
use interlock_core::retry::{ErrorClass, StepError};
use serde_json::Value;
use tokio::sync::Semaphore;

const OPEN: &str = "${{";
const CLOSE: &str = "}}";

/// Whether a template holds an expression at all.
pub fn is_dynamic(template: &str) -> bool {
    template.contains(OPEN)
}

/// What expressions see.
#[derive(Debug, Clone)]
pub struct Scope(pub serde_json::Map<String, Value>);

/// Runs expressions on a bounded pool of threads, or in place in a simulation.
pub struct Evaluator {
    in_place: bool,
    permits: Arc<Semaphore>,
}

impl Evaluator {
    pub fn new(in_place: bool, at_once_max: usize) -> Self {
        Self { in_place, permits: Arc::new(Semaphore::new(at_once_max)) }
    }

    /// Runs a piece of evaluation.
    pub async fn run<T: Send + 'static>(&self, evaluate: impl FnOnce() -> T + Send + 'static) -> Result<T, StepError> {
        if self.in_place {
            return Ok(evaluate());
        }
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| failed("the engine is stopping"))?;
        let running = tokio::task::spawn_blocking(move || {
            let answer = evaluate();
            drop(permit);
            answer
        });
        running.await.map_err(|_| failed("the evaluation of an expression was aborted"))
    }
}

fn failed(message: impl Into<String>) -> StepError {
    StepError::new(ErrorClass::Invalid, "EXPRESSION_FAILED", message)
}

/// Checks that a text is an expression, without running it.
pub fn check(source: &str) -> Result<(), StepError> {
    compile(source).map(|_| ())
}

fn compile(source: &str) -> Result<Program, StepError> {
    if source.len() > limits::EXPRESSION_BYTES_MAX {
        return Err(failed(format!("the expression is longer than {} bytes", limits::EXPRESSION_BYTES_MAX)));
    }
    let mut depth = 0usize;
    for c in source.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limits::EXPRESSION_DEPTH_MAX {
            return Err(failed(format!("the expression is nested deeper than {}", limits::EXPRESSION_DEPTH_MAX)));
        }
    }
    Program::compile(source).map_err(|error| failed(format!("`{}`: {error}", source.trim())))
}

/// The value of one expression.
pub fn evaluate(source: &str, scope: &Scope) -> Result<Value, StepError> {
    let program = compile(source)?;
    let mut context = Context::default();
    for (name, value) in &scope.0 {
        context.add_variable_from_value(name.as_str(), to_cel(value));
    }
    let value = program.execute(&context).map_err(|error| failed(format!("`{}`: {error}", source.trim())))?;
    value.json().map_err(|error| failed(format!("`{}`: {error}", source.trim())))
}

/// The truth of a condition; anything but true and false is an error.
pub fn condition(source: &str, scope: &Scope) -> Result<bool, StepError> {
    let source = source.trim();
    let inner = source.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(CLOSE)).unwrap_or(source);
    match evaluate(inner, scope)? {
        Value::Bool(truth) => Ok(truth),
        other => Err(failed(format!("the condition `{}` is {other}, neither true nor false", inner.trim()))),
    }
}

/// The template with every expression replaced by its value.
pub fn render(template: &Value, scope: &Scope) -> Result<Value, StepError> {
    Ok(match template {
        Value::String(text) => render_text(text, scope)?,
        Value::Array(items) => Value::Array(items.iter().map(|item| render(item, scope)).collect::<Result<_, _>>()?),
        Value::Object(fields) => {
            let rendered: Result<_, StepError> =
                fields.iter().map(|(name, value)| Ok((name.clone(), render(value, scope)?))).collect();
            Value::Object(rendered?)
        }
        other => other.clone(),
    })
}

pub fn render_text(text: &str, scope: &Scope) -> Result<Value, StepError> {
    if !is_dynamic(text) {
        return Ok(Value::String(text.to_owned()));
    }
    let mut rendered = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(OPEN) {
        let (before, after) = (&rest[..start], &rest[start + OPEN.len()..]);
        let end = after.find(CLOSE).ok_or_else(|| failed(format!("`{text}`: `{OPEN}` without `{CLOSE}`")))?;
        let value = evaluate(&after[..end], scope)?;
        rest = &after[end + CLOSE.len()..];
        if before.is_empty() && rest.is_empty() && rendered.is_empty() {
            return Ok(value);
        }
        rendered.push_str(before);
        match value {
            Value::String(text) => rendered.push_str(&text),
            other => rendered.push_str(&other.to_string()),
        }
        if rendered.len() > limits::PAYLOAD_BYTES_MAX {
            return Err(failed(format!("the rendered text is longer than {} bytes", limits::PAYLOAD_BYTES_MAX)));
        }
    }
    rendered.push_str(rest);
    Ok(Value::String(rendered))
}

/// JSON's one number type becomes CEL's int wherever it is whole, so that `inputs.n + 1` means what it says.
fn to_cel(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(truth) => cel::Value::Bool(*truth),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => cel::Value::Int(whole),
            (None, Some(float)) => cel::Value::Float(float),
            (None, None) => cel::Value::Null,
        },
        Value::String(text) => cel::Value::String(Arc::new(text.clone())),
        Value::Array(items) => cel::Value::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(fields) => {
            let map: HashMap<Key, cel::Value> =
                fields.iter().map(|(name, value)| (Key::String(Arc::new(name.clone())), to_cel(value))).collect();
            cel::Value::Map(Map { map: Arc::new(map) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn scope() -> Scope {
        let Value::Object(scope) = json!({
            "inputs": { "n": 41, "name": "Ada", "list": [1, 2, 3], "ratio": 0.5 },
            "steps": { "check": { "output": { "exit_code": 0 } } },
        }) else {
            unreachable!()
        };
        Scope(scope)
    }

    #[test]
    fn values_keep_their_type_where_they_stand_alone() {
        let render = |template| render(&template, &scope()).unwrap();
        assert_eq!(render(json!("${{ inputs.n + 1 }}")), json!(42));
        assert_eq!(render(json!("hello ${{ inputs.name }}!")), json!("hello Ada!"));
        assert_eq!(render(json!({"a": ["${{ inputs.list }}", 7]})), json!({"a": [[1, 2, 3], 7]}));
        assert_eq!(render(json!("exit ${{ steps.check.output.exit_code }}")), json!("exit 0"));
    }

    #[test]
    fn conditions_are_true_or_false_and_nothing_else() {
        assert!(condition("inputs.n > 40 && inputs.name.startsWith('A')", &scope()).unwrap());
        assert!(condition("${{ steps.check.output.exit_code == 0 }}", &scope()).unwrap());
        assert!(!condition("inputs.ratio > 0.5", &scope()).unwrap());
        let error = condition("inputs.n", &scope()).unwrap_err();
        assert!(error.message.contains("neither true nor false"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = evaluate("inputs.nope.deeper", &scope()).unwrap_err();
        assert!(error.message.contains("inputs.nope.deeper"), "{error}");
        assert!(check("1 +").is_err());
        assert!(check(&"(".repeat(100)).unwrap_err().message.contains("nested"));
        assert!(check(&"1+".repeat(5000)).unwrap_err().message.contains("longer"));
        assert!(render_text("a ${{ b", &scope()).unwrap_err().message.contains("without"));
    }
}
