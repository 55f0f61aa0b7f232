//! Expressions: CEL, with limits. `${{ … }}` inside a JSON template is replaced by the expression's value; a string
//! that is nothing but one expression takes the value with its type. [`reference`] checks expressions without running
//! them; [`pieces`] finds them in a text; [`budget`] bounds what they cost; [`convert`] takes values to CEL and back
//! without changing them.

pub mod budget;
mod convert;
mod extremes;
pub mod pattern;
pub mod pieces;
pub mod reference;
mod words;

use std::sync::{Arc, LazyLock};

use cel::{Context, Env, ExecutionError, Program};
use interlock_core::limits;
use interlock_core::plan::retry::{ErrorClass, StepError};
use serde_json::Value;

use budget::Budget;
use pieces::Piece;

/// The field that marks a reference to a secret inside a rendered value: `{"$secret": "NAME"}`.
pub const SECRET: &str = "$secret";

/// Whether a template holds an expression at all.
pub fn is_dynamic(template: &str) -> bool {
    interlock_core::plan::is_template(template)
}

/// CEL's own types and functions, the same for every expression.
static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// What expressions see, and what they may cost together.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    values: serde_json::Map<String, Value>,
    weight: u64,
    budget: Budget,
}

impl Scope {
    /// A scope whose expressions spend from a budget.
    pub fn new(values: serde_json::Map<String, Value>, budget: &Budget) -> Self {
        let weight = values.values().map(budget::json_weight).sum();
        Self { values, weight, budget: budget.clone() }
    }

    /// The same scope, spending from another budget.
    #[must_use]
    pub fn within(mut self, budget: &Budget) -> Self {
        self.budget = budget.clone();
        self
    }

    /// Gives a name a value, in the place of what it had.
    pub fn set(&mut self, name: &str, value: Value) {
        self.weight += budget::json_weight(&value);
        if let Some(before) = self.values.insert(name.to_owned(), value) {
            self.weight -= budget::json_weight(&before);
        }
    }

    /// Gives a field of a named object a value: `steps.check`.
    pub fn set_in(&mut self, name: &str, field: &str, value: Value) {
        let Some(Value::Object(fields)) = self.values.get_mut(name) else { return };
        let weight = |value: &Value| budget::text_weight(field.len()) + budget::json_weight(value);
        self.weight += weight(&value);
        if let Some(before) = fields.insert(field.to_owned(), value) {
            self.weight -= weight(&before);
        }
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }
}

fn failed(message: impl Into<String>) -> StepError {
    StepError::new(ErrorClass::Invalid, "EXPRESSION_FAILED", message)
}

/// Why a text is no expression.
#[derive(Debug, thiserror::Error)]
pub enum NoExpression {
    #[error("the expression is longer than {} bytes", limits::EXPRESSION_BYTES_MAX)]
    TooLong,
    #[error("the expression is nested deeper than {}", limits::EXPRESSION_DEPTH_MAX)]
    TooDeep,
    #[error(
        "the expression has more than {} operators; compute this in several steps",
        limits::EXPRESSION_OPERATORS_MAX
    )]
    TooManyOperators,
    #[error(
        "`map`, `filter`, `all`, `exists` and `exists_one` stand inside each other deeper than {}; compute this in a task",
        limits::EXPRESSION_LOOPS_MAX
    )]
    TooNested,
    #[error("{message}")]
    Syntax { message: String, line: usize, column: usize },
}

/// Checks that a text is an expression, without running it, and charges for reading it.
pub fn check(source: &str, budget: &Budget) -> Result<(), StepError> {
    budget.open(source).map_err(|spent| about(source, &spent))?;
    compile(source).map(|_| ()).map_err(|error| unreadable(source, &error))
}

/// What is wrong with a text that is no expression, and where.
fn unreadable(source: &str, error: &NoExpression) -> StepError {
    match error {
        NoExpression::Syntax { message, line, column } => {
            about(source, &format!("{}: {message}", words::place(*line, *column)))
        }
        other => about(source, other),
    }
}

/// Why an expression has no value, and where, as far as that is known.
fn uncomputable(source: &str, error: &ExecutionError) -> StepError {
    let (what, culprit) = words::execution(error);
    match culprit.and_then(|culprit| culprit.place_in(source.trim())) {
        Some(place) => about(source, &format!("{place}: {what}")),
        None => about(source, &what),
    }
}

fn about(source: &str, error: &dyn std::fmt::Display) -> StepError {
    // An expression that is too long is not repeated.
    if source.len() > limits::EXPRESSION_BYTES_MAX {
        return failed(error.to_string());
    }
    failed(format!("`{}`: {error}", source.trim()))
}

pub(crate) fn compile(source: &str) -> Result<Program, NoExpression> {
    if source.len() > limits::EXPRESSION_BYTES_MAX {
        return Err(NoExpression::TooLong);
    }
    let mut depth = 0usize;
    for c in source.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limits::EXPRESSION_DEPTH_MAX {
            return Err(NoExpression::TooDeep);
        }
    }
    // Signs nest without brackets.
    let signs = source.split(|c: char| !matches!(c, '!' | '-' | ' ')).map(str::len).max().unwrap_or(0);
    if signs > 2 * limits::EXPRESSION_DEPTH_MAX && source.contains(['!', '-']) {
        return Err(NoExpression::TooDeep);
    }
    // So do operators, and what goes over the tree calls itself: this is refused before there is a tree.
    if operators(source) > limits::EXPRESSION_OPERATORS_MAX {
        return Err(NoExpression::TooManyOperators);
    }
    let program = Program::compile(source).map_err(|errors| {
        let first = errors.errors.into_iter().next();
        let (message, line, column) = first.map_or_else(
            || ("it cannot be read as an expression".to_owned(), 1, 1),
            |error| {
                (
                    words::syntax(&error.msg),
                    usize::try_from(error.pos.0).unwrap_or(1),
                    usize::try_from(error.pos.1).unwrap_or(1),
                )
            },
        );
        NoExpression::Syntax { message, line, column }
    })?;
    if budget::depth(program.expression()) > limits::EXPRESSION_TREE_MAX {
        return Err(NoExpression::TooDeep);
    }
    if budget::is_too_nested(program.expression()) {
        return Err(NoExpression::TooNested);
    }
    Ok(program)
}

/// How many operators there may be, at most. Texts count too: where one ends is for the parser to know.
fn operators(source: &str) -> usize {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let signs =
        source.chars().filter(|c| matches!(c, '+' | '-' | '*' | '/' | '%' | '<' | '>' | '=' | '!' | '?')).count();
    let ins = source.match_indices("in").filter(|(at, found)| {
        let (before, after) = (&source[..*at], &source[at + found.len()..]);
        !is_word(before.chars().next_back()) && !is_word(after.chars().next())
    });
    signs + ins.count()
}

/// The value of one expression.
pub fn evaluate(source: &str, scope: &Scope) -> Result<Value, StepError> {
    if let Some(name) = reference::secret(source) {
        return Ok(serde_json::json!({ SECRET: name }));
    }
    scope.budget.open(source).map_err(|spent| about(source, &spent))?;
    let program = compile(source).map_err(|error| unreadable(source, &error))?;
    scope.budget.hand_over(scope.weight).map_err(|spent| about(source, &spent))?;
    let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
    scope.budget.equip(&mut context).map_err(|error| about(source, &error))?;
    extremes::equip(&mut context).map_err(|error| about(source, &error))?;
    for (name, value) in &scope.values {
        context.add_variable_from_value(name.as_str(), convert::to_cel(value));
    }
    let program = budget::metered(program.expression());
    let value = context.resolve(&program).map_err(|error| uncomputable(source, &error))?;
    convert::to_json(&value).map_err(|error| about(source, &error))
}

/// The value of a text that needs no computing: without expressions, or nothing but one path such as `inputs.ticket`.
pub fn look_up(text: &str, scope: &Scope) -> Option<Value> {
    if !is_dynamic(text) {
        return Some(Value::String(text.to_owned()));
    }
    let pieces = pieces::split(text).ok()?;
    let [Piece::Expression { source, .. }] = pieces.as_slice() else { return None };
    let mut names = source.trim().split('.');
    let mut value = scope.values.get(names.next()?)?;
    for name in names {
        let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        value = value.as_object()?.get(name).filter(|_| plain)?;
    }
    Some(value.clone())
}

/// The truth of a condition; anything but true and false is an error.
pub fn condition(source: &str, scope: &Scope) -> Result<bool, StepError> {
    let inner = pieces::unwrapped(source);
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
    let pieces = pieces::split(text).map_err(|error| failed(format!("`{text}`: {error}")))?;
    if let [Piece::Expression { source, .. }] = pieces.as_slice() {
        return evaluate(source, scope);
    }
    let mut rendered = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => rendered.push_str(text),
            Piece::Expression { source, .. } if reference::secret(source).is_some() => {
                return Err(failed(format!("`{}` is a secret, and can only stand alone as a value", source.trim())));
            }
            Piece::Expression { source, .. } => match evaluate(source, scope)? {
                Value::String(text) => rendered.push_str(&text),
                other => rendered.push_str(&other.to_string()),
            },
        }
        if rendered.len() > limits::PAYLOAD_BYTES_MAX {
            return Err(failed(format!("the rendered text is longer than {} bytes", limits::PAYLOAD_BYTES_MAX)));
        }
    }
    Ok(Value::String(rendered))
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
        Scope::new(scope, &Budget::default())
    }

    fn check(source: &str) -> Result<(), StepError> {
        super::check(source, &Budget::default())
    }

    fn empty() -> Scope {
        Scope::new(serde_json::Map::new(), &Budget::default())
    }

    #[test]
    fn values_keep_their_type_where_they_stand_alone() {
        let render = |template| render(&template, &scope()).unwrap();
        assert_eq!(render(json!("${{ inputs.n + 1 }}")), json!(42));
        assert_eq!(render(json!("hello ${{ inputs.name }}!")), json!("hello Ada!"));
        assert_eq!(render(json!({"a": ["${{ inputs.list }}", 7]})), json!({"a": [[1, 2, 3], 7]}));
        assert_eq!(render(json!("exit ${{ steps.check.output.exit_code }}")), json!("exit 0"));
        assert_eq!(render(json!("${{ {'a': {'b': inputs.n}} }}")), json!({"a": {"b": 41}}));
    }

    #[test]
    fn a_secret_stays_a_reference() {
        assert_eq!(render(&json!("${{ secrets.DB }}"), &scope()).unwrap(), json!({"$secret": "DB"}));
        let error = render(&json!("x ${{ secrets.DB }}"), &scope()).unwrap_err();
        assert!(error.message.contains("stand alone"), "{error}");
        assert!(evaluate("secrets.DB + 'x'", &scope()).is_err());
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
        assert!(check(&format!("{}true", "!".repeat(3000))).unwrap_err().message.contains("nested"));
        assert!(check(&"1+".repeat(5000)).unwrap_err().message.contains("longer"));
        assert!(render_text("a ${{ b", &scope()).unwrap_err().message.contains("without"));
    }

    /// Nothing of what the library says reaches people.
    #[test]
    fn errors_are_in_our_words_with_the_column() {
        for (source, says) in [
            ("1 +", "column 4: the expression ends too early"),
            ("inputs.n = 1", "column 10: `=` means nothing here; two values are compared with `==`"),
            ("true & false", "column 6: `&` means nothing here; both conditions hold with `&&`"),
            ("inputs.n )", "column 10: "),
            ("'open", "column 1: the text that begins here has no closing quote"),
            ("inputs.n # 2", "column 10: `#` has no meaning in an expression"),
            ("1 +\n  * 2", "line 2, column 3: `*` cannot stand here"),
            ("inputs.nope", "column 8: there is no field `nope` in this value"),
            ("input.n", "column 1: there is nothing of the name `input`"),
            ("inputs.name.first", "column 7 or column 12: a text has no fields"),
            ("inputs.n + inputs.name", "column 10: `+` cannot be applied to a"),
            ("'a + b' + 1 + 'c'", "column 9 or column 13: `+` cannot be applied to"),
            ("1 / 0", "column 3: a number is divided by zero"),
            ("7 %\n inputs.ratio", "column 3: `%` cannot be applied to"),
            ("1 <= 2 && 'a' < 2", "column 15: `<` cannot be applied to"),
            ("inputs.list[7]", "column 12: the list has no item at this place"),
            ("9223372036854775807 + 1", "column 21: the result of `+` is larger than a whole number can be"),
            ("int('seven')", "column 1: `int` cannot read this value as a whole number"),
            ("[1].map(1, 2)", "is a plain name, as in `list.map(x, x + 1)`"),
        ] {
            let error = evaluate(source, &scope()).unwrap_err().message;
            assert!(error.contains(says), "{source}: {error}");
            let lower = error.to_lowercase();
            for word in
                ["syntax error", "expecting", "<eof>", "undeclared", "no such key", "overload", "Int(", "mismatched"]
            {
                assert!(!lower.contains(word) && !error.contains(word), "{source}: {error}");
            }
        }
    }

    /// Ten items, `levels` loops inside each other.
    fn loops(levels: usize, inmost: &str) -> String {
        (0..levels).fold(inmost.to_owned(), |inner, level| format!("[1,2,3,4,5,6,7,8,9,10].map(x{level}, {inner})"))
    }

    /// On a thread with half the stack of those that evaluate: a stack that overflows ends the whole process.
    #[test]
    fn the_longest_chains_overflow_no_stack() {
        let small = std::thread::Builder::new().stack_size(1 << 20);
        let tried = small.spawn(|| {
            for sign in ["+", "-", "*", "/", "%", "<", "==", "!=", " in ", "?1:", "&&", "||", ".a", "[0]", ".size()"] {
                for times in [limits::EXPRESSION_OPERATORS_MAX / 2, limits::EXPRESSION_BYTES_MAX / 8] {
                    let term = if matches!(sign, ".a" | "[0]" | ".size()") { "" } else { "1" };
                    let source = format!("1{}", format!("{sign}{term}").repeat(times));
                    let _ = evaluate(&source[..source.len().min(limits::EXPRESSION_BYTES_MAX)], &empty());
                }
            }
            let longest = format!("1{}", "+1".repeat(limits::EXPRESSION_OPERATORS_MAX));
            assert_eq!(evaluate(&longest, &empty()).unwrap(), serde_json::json!(257));
            let longer = format!("{longest}+1");
            let refused = evaluate(&longer, &empty()).unwrap_err();
            assert!(refused.message.contains("more than 256 operators"), "{}", refused.message);
        });
        tried.unwrap().join().unwrap();
    }

    #[test]
    fn loops_nest_two_deep_and_follow_each_other_freely() {
        assert!(check(&loops(2, "1")).is_ok());
        assert!(check(&loops(3, "1")).unwrap_err().message.contains("inside each other"));
        assert!(check(&loops(8, "1")).is_err());
        assert!(check("inputs.a.filter(x, x > 1).map(x, x + 1).filter(x, x > 2).all(x, x > 3)").is_ok());
    }

    #[test]
    fn what_costs_too_much_is_refused_before_it_is_built() {
        let long: Vec<u32> = (0..2_000).collect();
        let Value::Object(values) = json!({ "inputs": { "long": long, "text": "x".repeat(1 << 19) } }) else {
            unreachable!()
        };
        let doubled = |start: &str, times: usize| format!("[{start}]{}", ".map(x, [x, x])".repeat(times));
        for source in [
            "inputs.long.map(a, inputs.long.map(b, a + b))".to_owned(),
            "inputs.long.all(a, inputs.long.all(b, a + b >= 0))".to_owned(),
            "inputs.long.map(a, inputs.text)".to_owned(),
            "inputs.long.map(a, inputs.text.contains('y'))".to_owned(),
            "inputs.long.map(a, inputs.long == inputs.long)".to_owned(),
            "inputs.long.exists(a, inputs.text.matches('(x+x+)+y'))".to_owned(),
            doubled("1", 60),
            format!("[inputs.text]{}", ".map(x, x + x)".repeat(60)),
            format!("[{}]", vec!["inputs.text"; 300].join(",")),
        ] {
            let error = evaluate(&source, &Scope::new(values.clone(), &Budget::default())).unwrap_err();
            assert_eq!(error.code, "EXPRESSION_FAILED");
            assert!(error.message.contains("costs more than"), "{error}");
        }
        let scope = Scope::new(values, &Budget::default());
        assert_eq!(evaluate("inputs.long.map(a, a + 1).filter(a, a > 1999)", &scope).unwrap(), json!([2000]));
        let many = json!(vec!["${{ inputs.long.map(a, a) }}"; 1_000]);
        assert!(render(&many, &scope).unwrap_err().message.contains("costs more than"));
    }

    #[test]
    fn patterns_are_built_once_and_large_ones_are_refused() {
        let scope = scope();
        assert!(condition("inputs.name.matches('^A') && matches(inputs.name, 'a$')", &scope).unwrap());
        let loops = "[1,2,3,4,5,6,7,8,9,10].map(x, 'abc'.matches('^[a-c]+$'))";
        let (budget, values) = (Budget::default(), serde_json::Map::new());
        evaluate(loops, &Scope::new(values.clone(), &budget)).unwrap();
        let ten = budget.spent();
        evaluate(loops, &Scope::new(values, &budget)).unwrap();
        assert!(budget.spent() - ten < ten / 2, "the second time the pattern is there: {ten}, {}", budget.spent());
        let error = evaluate(r"'x'.matches('(\\w{100}){100}')", &scope).unwrap_err();
        assert!(error.message.contains("becomes larger than 1024 KiB"), "{error}");
        let error = evaluate("'x'.matches('(')", &scope).unwrap_err();
        assert!(error.message.contains("not a regular expression"), "{error}");
    }

    /// Thirty patterns of the largest size would take a second to build.
    #[test]
    fn many_patterns_of_one_request_cost_more_than_it_may_spend() {
        let budget = Budget::default();
        let scope = Scope::new(serde_json::Map::new(), &budget);
        let built = (0..60).take_while(|n| evaluate(&format!(r"'x'.matches('\\w{{9}}{n}')"), &scope).is_ok()).count();
        assert!((5..60).contains(&built), "{built} patterns were built");
        assert!(evaluate("1", &scope).unwrap_err().message.contains("costs more than"));
    }

    #[test]
    fn work_that_nobody_waits_for_is_stopped() {
        let budget = Budget::default();
        let scope = Scope::new(serde_json::Map::new(), &budget);
        assert!(evaluate("1 + 1", &scope).is_ok());
        budget.stop();
        assert!(evaluate("1 + 1", &scope).unwrap_err().message.contains("stopped"));
    }

    #[test]
    fn numbers_are_kept_exactly_or_refused() {
        let Value::Object(values) = json!({ "n": [9_007_199_254_740_993_i64, i64::MAX, 1_u64 << 63, u64::MAX] }) else {
            unreachable!()
        };
        let scope = Scope::new(values.clone(), &Budget::default());
        assert_eq!(evaluate("n", &scope).unwrap(), values["n"]);
        assert_eq!(render_text("${{ n[3] }} ", &scope).unwrap(), json!("18446744073709551615 "));
        assert_eq!(evaluate("n[0] + 1", &scope).unwrap(), json!(9_007_199_254_740_994_i64));
        assert!(evaluate("n[1] + 1", &scope).is_err(), "it overflows");
        assert!(evaluate("n[2] + 1", &scope).is_err(), "CEL adds no int to a uint");
        for source in ["1.0 / 0.0", "-1.0 / 0.0", "0.0 / 0.0", "[1.0 / 0.0]", "{'a': 0.0 / 0.0}"] {
            let error = evaluate(source, &scope).unwrap_err();
            assert!(error.message.contains("JSON has no such number"), "{source}: {error}");
        }
        assert_eq!(evaluate("[type(1), type([]), type({})]", &scope).unwrap(), json!(["int", "list", "map"]));
        assert_eq!(evaluate("type([])", &scope).unwrap(), json!("list"));
        for source in ["optional.of(1)", "{1: 'a', '1': 'b'}", "max([])", "max(1, 'a')"] {
            assert!(evaluate(source, &scope).is_err(), "{source}");
        }
    }
}
