//! Tasks: what goes in, what comes out, and how they end.

use std::time::Duration;

use crate::fake::{Fake, start};
use interlock_core::json::Json;
use interlock_core::plan::retry::ErrorClass;
use interlock_core::state::TaskType;
use interlock_core::time::Millis;
use interlock_protocol::agent::ReportedOutcome;
use interlock_worker::{Flow, Task, TaskContext, TaskError, Tasks, WaitFor};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Deserialize)]
struct Numbers {
    a: i64,
    b: i64,
}

#[derive(Serialize)]
struct Sum {
    sum: i64,
}

struct Add;

impl Task for Add {
    type Input = Numbers;
    type Output = Sum;

    async fn run(&self, _: TaskContext, input: Numbers) -> Result<Flow<Sum>, TaskError> {
        Ok(Sum { sum: input.a + input.b }.into())
    }
}

fn failure(outcome: ReportedOutcome) -> (bool, ErrorClass, String, Option<Millis>) {
    match outcome {
        ReportedOutcome::Retry { error, backoff } => (true, error.class, error.code, backoff),
        ReportedOutcome::Dead { error } => (false, error.class, error.code, None),
        other => panic!("not a failure: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn types_and_closures_are_tasks_alike() {
    let fake = Fake::new();
    let tasks = Tasks::new().add("add", Add).task("double", |_, n: i64| async move { Ok(n * 2) });
    let running = start(&fake, tasks);
    let sum = fake.run_one(fake.step("add", r#"{"a":2,"b":3}"#)).await;
    assert_eq!(sum, ReportedOutcome::Completed { output: Json::trusted(r#"{"sum":5}"#) });
    let doubled = fake.run_one(fake.step("double", "21")).await;
    assert_eq!(doubled, ReportedOutcome::Completed { output: Json::trusted("42") });
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_waits_and_runs_again_when_the_signal_has_come() {
    let fake = Fake::new();
    let tasks = Tasks::new().task("ship", |ctx, order: String| async move {
        match ctx.signal::<serde_json::Value>()? {
            Some(carrier) => Ok(Flow::Done(carrier)),
            None if ctx.task_type() == TaskType::WaitingTimeout => {
                Err(TaskError::terminal("NO_CARRIER", "nobody came"))
            }
            None => Ok(Flow::Wait(
                WaitFor::signal("carrier.arrived")
                    .key(order)
                    .timeout(Duration::from_mins(15))
                    .send("mail", Json::of(&json!({"to": "carrier"}))?),
            )),
        }
    });
    let running = start(&fake, tasks);

    let first = fake.run_one(fake.step("ship", r#""o-1""#)).await;
    let ReportedOutcome::Waiting { signal, key, timeout, outbound } = first else { panic!("{first:?}") };
    assert_eq!((signal.as_str(), key.as_deref()), ("carrier.arrived", Some("o-1")));
    assert_eq!(timeout, Some(Millis::from_mins(15)));
    assert_eq!(outbound[0].destination, "mail");

    let mut woken = fake.step("ship", r#""o-1""#);
    woken.task_type = TaskType::Signal;
    woken.payload = Some(Json::trusted(r#"{"truck":7}"#));
    let output = Json::trusted(r#"{"truck":7}"#);
    assert_eq!(fake.run_one(woken).await, ReportedOutcome::Completed { output });

    let mut late = fake.step("ship", r#""o-1""#);
    late.task_type = TaskType::WaitingTimeout;
    assert_eq!(failure(fake.run_one(late).await).2, "NO_CARRIER");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_signal_that_the_task_does_not_understand_fails_it_for_good() {
    let fake = Fake::new();
    let tasks = Tasks::new().task("ship", |ctx, (): ()| async move { ctx.signal::<Numbers>().map(|_| ()) });
    let running = start(&fake, tasks);
    let mut woken = fake.step("ship", "null");
    woken.task_type = TaskType::Signal;
    woken.payload = Some(Json::trusted(r#"{"a":1}"#));
    let (retried, _, code, _) = failure(fake.run_one(woken).await);
    assert_eq!((retried, code.as_str()), (false, "SIGNAL_INVALID"));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn errors_panics_and_timeouts_are_reported_by_class() {
    let fake = Fake::new();
    let tasks = Tasks::new()
        .add("add", Add)
        .task("io", |_, (): ()| async move { Err::<(), _>(std::io::Error::other("reset").into()) })
        .task("later", |_, (): ()| async move {
            Err::<(), _>(TaskError::http(429, "slow down").after(Duration::from_secs(7)))
        })
        .task("never", |_, (): ()| async move { Err::<(), _>(TaskError::terminal("NO", "never")) })
        .task("panics", |_, n: u32| async move {
            assert!(n > 100, "{n} is not enough");
            Ok(n)
        })
        .task("huge", |_, (): ()| async move { Ok("x".repeat(2 << 20)) })
        .task("hangs", |_, (): ()| async move {
            std::future::pending::<()>().await;
            Ok(())
        });
    let running = start(&fake, tasks);
    let run = async |handler, input| failure(fake.run_one(fake.step(handler, input)).await);

    assert_eq!(run("add", r#"{"a":1}"#).await, (false, ErrorClass::Invalid, "INPUT_INVALID".into(), None));
    assert_eq!(run("io", "null").await, (true, ErrorClass::Unclassified, "TASK_FAILED".into(), None));
    let slowly = (true, ErrorClass::RateLimited, "HTTP_429".into(), Some(Millis(7000)));
    assert_eq!(run("later", "null").await, slowly);
    assert_eq!(run("never", "null").await, (false, ErrorClass::Terminal, "NO".into(), None));
    assert_eq!(run("panics", "3").await, (true, ErrorClass::Unclassified, "TASK_PANICKED".into(), None));
    assert_eq!(run("huge", "null").await.2, "OUTPUT_TOO_LARGE");

    let mut hanging = fake.step("hangs", "null");
    hanging.timeout = Some(Millis::from_secs(60));
    let timed_out = (true, ErrorClass::Timeout, "STEP_TIMEOUT".into(), None);
    assert_eq!(failure(fake.run_one(hanging).await), timed_out);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_step_without_its_task_is_given_back_and_says_so() {
    let fake = Fake::new();
    let running = start(&fake, Tasks::new());
    assert_eq!(fake.run_one(fake.step("nobody", "null")).await, ReportedOutcome::UnknownTask);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_report_that_the_server_will_never_take_fails_the_step() {
    let fake = Fake::new();
    let running = start(&fake, Tasks::new().add("add", Add));
    fake.set(|state| state.refuse_reports = Some("INPUT_INVALID"));
    let refused = fake.run_one(fake.step("add", r#"{"a":2,"b":3}"#)).await;
    assert_eq!(failure(refused), (false, ErrorClass::Invalid, "REPORT_REFUSED".into(), None));
    running.stop().await;
}

#[test]
#[should_panic(expected = "there is a task `add` already")]
fn a_name_is_taken_once() {
    let _ = Tasks::new().add("add", Add).add("add", Add);
}
