//! What user code looks like: [`Task`] for a type, a closure for less ceremony, [`Tasks`] for the names.

use std::collections::BTreeMap;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use interlock_core::json::Json;
use interlock_core::work::OutboundMessage;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::TaskContext;
use crate::error::TaskError;
use crate::executors::task::Handler;

/// A unit of user code that steps name. It may run more than once for the same step: after an error, after a lost
/// worker, and again when what it waited for has come. What must not happen twice belongs into
/// [`TaskContext::effect`].
pub trait Task: Send + Sync + 'static {
    type Input: DeserializeOwned + Send;
    type Output: Serialize + Send;

    fn run(
        &self,
        ctx: TaskContext,
        input: Self::Input,
    ) -> impl Future<Output = Result<Flow<Self::Output>, TaskError>> + Send;
}

/// How a task ends when it does not fail.
#[derive(Debug, Clone, PartialEq)]
pub enum Flow<T> {
    /// The step has succeeded with this output.
    Done(T),
    /// The step gives its worker back, and runs again when the signal has come or the timeout has passed.
    Wait(WaitFor),
}

impl<T> From<T> for Flow<T> {
    fn from(output: T) -> Self {
        Self::Done(output)
    }
}

/// What a task waits for, and what it tells the outside in the same commit.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitFor {
    pub signal: String,
    /// The run's subject, else its id, where omitted.
    pub key: Option<String>,
    pub timeout: Option<Duration>,
    pub outbound: Vec<OutboundMessage>,
}

impl WaitFor {
    pub fn signal(signal: impl Into<String>) -> Self {
        Self { signal: signal.into(), key: None, timeout: None, outbound: Vec::new() }
    }

    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sends a message together with the wait: both are committed, or neither.
    pub fn send(mut self, destination: impl Into<String>, payload: Json) -> Self {
        let destination = destination.into();
        self.outbound.push(OutboundMessage { destination, payload });
        self
    }
}

/// What a closure may return: a plain output, or a [`Flow`].
pub trait IntoFlow: Send {
    type Output: Serialize + Send;

    fn into_flow(self) -> Flow<Self::Output>;
}

impl<T: Serialize + Send> IntoFlow for T {
    type Output = T;

    fn into_flow(self) -> Flow<T> {
        Flow::Done(self)
    }
}

impl<T: Serialize + Send> IntoFlow for Flow<T> {
    type Output = T;

    fn into_flow(self) -> Self {
        self
    }
}

/// A closure as a [`Task`].
struct Closure<F, I> {
    run: F,
    input: PhantomData<fn(I)>,
}

impl<F, I, R, Running> Task for Closure<F, I>
where
    F: Fn(TaskContext, I) -> Running + Send + Sync + 'static,
    I: DeserializeOwned + Send + 'static,
    R: IntoFlow,
    Running: Future<Output = Result<R, TaskError>> + Send,
{
    type Input = I;
    type Output = R::Output;

    async fn run(&self, ctx: TaskContext, input: I) -> Result<Flow<R::Output>, TaskError> {
        (self.run)(ctx, input).await.map(IntoFlow::into_flow)
    }
}

/// The tasks of a worker, by the names that workflows use.
#[derive(Clone, Default)]
pub struct Tasks {
    handlers: BTreeMap<String, Arc<dyn Handler>>,
}

impl Tasks {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an async closure.
    ///
    /// # Panics
    /// If the name is taken: which of the two would run must not depend on their order.
    #[must_use]
    pub fn task<F, I, R, Running>(self, name: impl Into<String>, run: F) -> Self
    where
        F: Fn(TaskContext, I) -> Running + Send + Sync + 'static,
        I: DeserializeOwned + Send + 'static,
        R: IntoFlow + 'static,
        Running: Future<Output = Result<R, TaskError>> + Send,
    {
        let input = PhantomData;
        self.add(name, Closure { run, input })
    }

    /// Adds a [`Task`].
    ///
    /// # Panics
    /// If the name is taken.
    #[must_use]
    pub fn add(mut self, name: impl Into<String>, task: impl Task) -> Self {
        let name = name.into();
        assert!(!self.contains(&name), "there is a task `{name}` already; names are unique in a worker");
        self.handlers.insert(name, Arc::new(task));
        self
    }

    pub fn contains(&self, name: &str) -> bool {
        self.handlers.contains_key(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.handlers.keys().map(String::as_str)
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn Handler>> {
        self.handlers.get(name).cloned()
    }
}
