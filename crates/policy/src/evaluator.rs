//! One rule of a bundle, ready to be evaluated by many threads at once.
//!
//! There are two ways. A bundle is *interpreted*: every error ends the evaluation, and so does a rule with two values. The
//! shipped policy is *compiled*, which is several times faster. The machine that executes it takes an error in a rule for
//! "this rule does not hold", so it is not used for anything that could fail; of the shipped policy, with data of the right
//! shape, tests show that it cannot, and that both ways agree.

use std::sync::{Arc, Mutex, PoisonError};

use regorus::languages::rego::compiler::Compiler;
use regorus::rvm::program::Program;
use regorus::rvm::vm::{RegoVM, VmError};
use regorus::{CompiledPolicy, Engine, LimitError, Value};

use crate::budget;
use crate::decision::Undecided;
use crate::functions::LIMITED;
use crate::limits;
use crate::problem::{LoadError, Problem};

/// Evaluators that are kept for later, by each rule.
const IDLE_MAX: usize = 64;

pub(crate) struct Evaluator {
    rule: String,
    way: Way,
}

enum Way {
    Interpreted { engine: Box<Engine>, idle: Mutex<Vec<Engine>> },
    Compiled { program: Arc<Program>, policy: CompiledPolicy, data: Value, idle: Mutex<Vec<RegoVM>> },
}

impl Evaluator {
    /// Takes an engine with the modules of a bundle in it.
    pub(crate) fn interpreted(mut engine: Engine, data: Value, rule: &str) -> Result<Self, LoadError> {
        let refused = |error: anyhow::Error| LoadError::from(Problem::of_compiler(&error.to_string(), rule));
        engine.add_data(data).map_err(refused)?;
        for function in LIMITED {
            let arity = u8::try_from(function.arity).expect("a function takes few arguments");
            engine.add_extension(function.name.into(), arity, Box::new(function.extension())).map_err(refused)?;
        }
        // Finds what is wrong with the rules together, and whether the rule is there.
        engine.compile_with_entrypoint(&rule.into()).map_err(refused)?;
        engine.set_strict_builtin_errors(true);
        engine.set_execution_timer_config(budget::limit(limits::EVALUATION_TIME_MAX));
        Ok(Self { rule: rule.into(), way: Way::Interpreted { engine: Box::new(engine), idle: Mutex::default() } })
    }

    pub(crate) fn compiled(mut engine: Engine, data: Value, rule: &str) -> Result<Self, LoadError> {
        let refused = |error: anyhow::Error| LoadError::from(Problem::of_compiler(&error.to_string(), rule));
        engine.add_data(data.clone()).map_err(refused)?;
        let policy = engine.compile_with_entrypoint(&rule.into()).map_err(refused)?;
        let program = Compiler::compile_from_policy(&policy, &[rule])
            .map_err(|error| LoadError::from(Problem::of_compiler(&error.to_string(), rule)))?;
        Ok(Self { rule: rule.into(), way: Way::Compiled { program, policy, data, idle: Mutex::default() } })
    }

    /// The rule's value for an input document.
    pub(crate) fn evaluate(&self, input: &str) -> Result<Value, Undecided> {
        if input.len() > limits::INPUT_BYTES_MAX {
            return Err(Undecided::Input { bytes: input.len(), max: limits::INPUT_BYTES_MAX });
        }
        let input = Value::from_json_str(input).map_err(|_| Undecided::Failed { at: " at the input".into() })?;
        let (value, stopped) = budget::within(limits::WORK_MAX, || match &self.way {
            Way::Interpreted { engine, idle } => self.interpret(engine, idle, input),
            Way::Compiled { program, policy, data, idle } => execute(program, policy, data, idle, input),
        });
        match (stopped, value) {
            (Some(why), _) | (None, Err(why)) => Err(why),
            (None, Ok(Value::Undefined)) => Err(Undecided::Undefined),
            (None, Ok(value)) => Ok(value),
        }
    }

    fn interpret(&self, engine: &Engine, idle: &Mutex<Vec<Engine>>, input: Value) -> Result<Value, Undecided> {
        let mut engine = take(idle).unwrap_or_else(|| engine.clone());
        engine.set_input(input);
        let value = engine.eval_rule(self.rule.clone()).map_err(|error| match error.downcast_ref::<LimitError>() {
            Some(LimitError::TimeLimitExceeded { .. }) => took_too_long(),
            _ => Undecided::Failed { at: place(&error.to_string()) },
        })?;
        put_back(idle, engine);
        Ok(value)
    }
}

fn execute(
    program: &Arc<Program>,
    policy: &CompiledPolicy,
    data: &Value,
    idle: &Mutex<Vec<RegoVM>>,
    input: Value,
) -> Result<Value, Undecided> {
    let failed = |error: VmError| match error {
        VmError::TimeLimitExceeded { .. } => took_too_long(),
        _ => Undecided::Failed { at: String::new() },
    };
    let mut machine = if let Some(machine) = take(idle) {
        machine
    } else {
        let mut machine = RegoVM::new_with_policy(policy.clone());
        machine.load_program(program.clone());
        machine.set_max_instructions(limits::WORK_MAX as usize);
        machine.set_strict_builtin_errors(true);
        machine.set_execution_timer_config(Some(budget::limit(limits::EVALUATION_TIME_MAX)));
        machine.set_data(data.clone()).map_err(failed)?;
        machine
    };
    machine.set_input(input);
    let value = machine.execute().map_err(failed)?;
    put_back(idle, machine);
    Ok(value)
}

fn took_too_long() -> Undecided {
    Undecided::Time { millis: limits::EVALUATION_TIME_MAX.as_millis() }
}

/// Where an error happened. Its words may quote values, so they are not used.
fn place(message: &str) -> String {
    let place = message.split("--> ").nth(1).and_then(|rest| rest.lines().next()).unwrap_or_default();
    let mut parts = place.split(':');
    match (parts.next(), parts.next().map(str::parse::<u32>)) {
        (Some(file), Some(Ok(line))) => format!(" at {}:{line}", file.trim()),
        _ => String::new(),
    }
}

fn take<T>(idle: &Mutex<Vec<T>>) -> Option<T> {
    idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

fn put_back<T>(idle: &Mutex<Vec<T>>, evaluator: T) {
    let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
    if idle.len() < IDLE_MAX {
        idle.push(evaluator);
    }
}
