//! Between the bytes of an assignment and a typed [`Task`]: the input is read, the task runs, its end becomes a
//! report. A panic is an error like another.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use futures::future::BoxFuture;
use interlock_core::json::Json;
use interlock_core::limits;
use interlock_core::plan::retry::ErrorClass;
use interlock_core::work::ReportedOutcome;
use serde::Serialize;

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
                    let what = format!("the task does not understand its input: {error}");
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

fn done<T: Serialize>(output: &T) -> ReportedOutcome {
    let output = match Json::of(output) {
        Ok(output) => output,
        Err(error) => {
            let what = format!("the task's output is not JSON: {error}");
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
