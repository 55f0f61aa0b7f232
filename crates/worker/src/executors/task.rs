//! Between the bytes of an assignment and a typed [`Task`]: the input is read, the task runs, its end becomes a
//! report. A panic is an error like another.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use futures::future::BoxFuture;
use interlock_core::json::Json;
use interlock_core::limits;
use interlock_core::plan::retry::ErrorClass;
use interlock_core::text::json_words::json_error;
use interlock_core::text::visible::visible;
use interlock_core::work::ReportedOutcome;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::TaskContext;
use crate::error::TaskError;
use crate::task::{Flow, Task};

/// A task whose types have been erased.
pub trait Handler: Send + Sync {
    fn run<'a>(&'a self, ctx: TaskContext, input: &'a Json) -> BoxFuture<'a, ReportedOutcome>;
}

impl<T: Task> Handler for T {
    fn run<'a>(&'a self, ctx: TaskContext, input: &'a Json) -> BoxFuture<'a, ReportedOutcome> {
        let running = async move {
            let input = match input.decode() {
                Ok(input) => input,
                Err(error) => {
                    let wrong = misread::<T::Input>(input, &error);
                    let what = format!("the task does not understand its input: {wrong}");
                    return TaskError::new(ErrorClass::Invalid, "INPUT_INVALID", what).into_outcome();
                }
            };
            match Task::run(self, ctx, input).await {
                Ok(Flow::Done(output)) => done(&output),
                Ok(Flow::Wait(wait)) => ReportedOutcome::Waiting {
                    signal: wait.signal,
                    key: wait.key,
                    timeout: wait.timeout.map(Into::into),
                    outbound: wait.outbound,
                },
                Err(error) => error.into_outcome(),
            }
        };
        // The task is dropped after a panic, so nothing sees what it left half done.
        AssertUnwindSafe(running).catch_unwind().map(|ended| ended.unwrap_or_else(|panic| panicked(&*panic))).boxed()
    }
}

/// What is wrong with a payload, and in which field. It is read a second time for that.
fn misread<T: DeserializeOwned>(payload: &Json, error: &serde_json::Error) -> String {
    let mut text = serde_json::Deserializer::from_str(payload.as_str());
    let again = serde_path_to_error::deserialize::<_, T>(&mut text);
    let field = again.err().map(|found| found.path().to_string()).filter(|field| field != ".");
    match field {
        Some(field) => format!("`{}`: {}", visible(&field), json_error(error)),
        None => json_error(error),
    }
}

fn done<T: Serialize>(output: &T) -> ReportedOutcome {
    let output = match Json::of(output) {
        Ok(output) => output,
        Err(error) => {
            let what = format!("the task's output cannot be written as JSON: {error}");
            return TaskError::terminal("OUTPUT_INVALID", what).into_outcome();
        }
    };
    if output.len() > limits::PAYLOAD_BYTES_MAX {
        return too_large(output.len()).into_outcome();
    }
    ReportedOutcome::Completed { output }
}

pub(crate) fn too_large(bytes: usize) -> TaskError {
    let max = limits::PAYLOAD_BYTES_MAX;
    let what = format!(
        "the output is {bytes} bytes long, the limit is {max}; store large data elsewhere and return a reference"
    );
    TaskError::terminal("OUTPUT_TOO_LARGE", what)
}

fn panicked(panic: &(dyn Any + Send)) -> ReportedOutcome {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "the task panicked without a message".to_owned());
    TaskError::retryable("TASK_PANICKED", message).into_outcome()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only what is refused is looked at")]
    struct Basket {
        items: Vec<BasketItem>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only what is refused is looked at")]
    struct BasketItem {
        count: u32,
    }

    #[test]
    fn what_is_wrong_with_an_input_is_said_with_its_place() {
        for (text, says) in [
            (r#"{"items":[{"count":1},{"count":"two"}]}"#, "`items[1].count`: expected a whole number from 0 to"),
            (r#"{"items":[{"count":1},{}]}"#, "`items[1]`: missing field `count`"),
            ("7", "expected an object, found the number `7`"),
        ] {
            let payload = Json::trusted(text);
            let error = payload.decode::<Basket>().unwrap_err();
            let said = misread::<Basket>(&payload, &error);
            assert!(said.starts_with(says), "{text}: {said}");
        }
    }
}
