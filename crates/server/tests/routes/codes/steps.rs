//! How steps fail: in a worker that is the real one, or without its doing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use interlock_core::json::Json;
use interlock_core::state::EffectClass;
use interlock_worker::{Flow, IntoFlow, TaskContext, TaskError, Tasks, WaitFor, Worker, WorkerOptions};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::transport::{Line, Routed};
use super::{CodeSource, table};
use crate::approvals::{Person, card};
use crate::harness::{Api, plan, task};
use crate::policy::{BY_NAME, CONTRADICTS, put_in_force};
use crate::set_up::{in_doubt, until};

/// What the step's error says once it has one, and whether the step is tried again.
async fn error_of(api: &Api, run: &str) -> CodeSource {
    for _ in 0..10_000 {
        let steps = api.get(&format!("/runs/{run}/steps")).await.ok();
        let step = &steps["steps"][0];
        if let Some(code) = step["error"]["code"].as_str() {
            let again = matches!(step["state"].as_str(), Some("ready" | "running"));
            return CodeSource::Step { code: code.to_owned(), again };
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the step of {run} never fails");
}

/// The error of a step that a worker carries out.
pub async fn worked(api: &Api, start: Value, tasks: Tasks, line: Line) -> CodeSource {
    let run = api.post("/runs", start).await.text("run_id");
    let stop = CancellationToken::new();
    let worker = Worker::new(Routed::new(api, line), tasks, WorkerOptions::default());
    let working = tokio::spawn(worker.run(stop.clone()));
    let seen = error_of(api, &run).await;
    stop.cancel();
    working.await.unwrap().unwrap();
    seen
}

/// A run of one step, `t`.
pub fn one_step(change: impl FnOnce(&mut Value)) -> Value {
    let mut step = task("t");
    change(&mut step);
    json!({ "plan": plan(json!([step])) })
}

/// The error of a task that is this closure.
async fn fails<F, Fut, Output>(api: &Api, run: F) -> CodeSource
where
    F: Fn(TaskContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Output, TaskError>> + Send + 'static,
    Output: IntoFlow + 'static,
{
    let tasks = Tasks::new().task("t", move |ctx, _: Value| run(ctx));
    worked(api, one_step(|_| ()), tasks, Line::default()).await
}

/// What a JSON object cannot have as keys.
type NotJson = HashMap<(u8, u8), u8>;

fn not_json() -> NotJson {
    HashMap::from([((1, 2), 3)])
}

async fn hangs(api: &Api) -> CodeSource {
    let tasks = Tasks::new().task("t", |_, _: Value| async {
        std::future::pending::<()>().await;
        Ok(())
    });
    worked(api, one_step(|step| step["timeout"] = json!(1_000)), tasks, Line::default()).await
}

async fn misunderstands(api: &Api) -> CodeSource {
    let tasks = Tasks::new().task("t", |_, number: u32| async move { Ok(number) });
    let mut start = one_step(|_| ());
    start["inputs"] = json!({ "text": "seven" });
    worked(api, start, tasks, Line::default()).await
}

async fn misunderstands_its_signal(api: &Api) -> CodeSource {
    let tasks = Tasks::new().task("t", |ctx, _: Value| async move {
        match ctx.signal::<u32>()? {
            Some(number) => Ok(Flow::Done(number)),
            None => Ok(Flow::Wait(WaitFor::signal("go"))),
        }
    });
    let start = async {
        let run = loop {
            let waits = api.get("/waits?type=go").await.ok();
            if let Some(run) = waits["waits"][0]["run_id"].as_str() {
                break run.to_owned();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        api.post(&format!("/runs/{run}/signals"), json!({ "type": "go", "payload": "seven" })).await.ok();
    };
    tokio::join!(worked(api, one_step(|_| ()), tasks, Line::default()), start).0
}

/// The worker's heartbeats are cut until little of its lease is left.
async fn late(api: &Api) -> CodeSource {
    let line = Line::default();
    let plug = line.clone();
    let tasks = Tasks::new().task("t", move |ctx, _: Value| {
        let plug = plug.clone();
        async move {
            plug.cut_heartbeats(true);
            tokio::time::sleep(Duration::from_secs(18)).await;
            let answer = ctx.effect("x", EffectClass::Keyed, &(), |_| async { Ok(1) }).await;
            plug.cut_heartbeats(false);
            answer
        }
    });
    worked(api, one_step(|step| step["effect"] = json!("keyed")), tasks, line).await
}

/// The task itself is told; its step is given back, as its worker was lost.
async fn cut_off(api: &Api) -> CodeSource {
    let (line, heard) = (Line::default(), Arc::new(Mutex::new(None)));
    let (plug, note) = (line.clone(), Arc::clone(&heard));
    let tasks = Tasks::new().task("t", move |ctx, _: Value| {
        let (plug, note) = (plug.clone(), Arc::clone(&note));
        async move {
            plug.cut(true);
            let answer = ctx.effect("x", EffectClass::Keyed, &(), |_| async { Ok(1) }).await;
            plug.cut(false);
            *note.lock().unwrap() = answer.as_ref().err().map(|error| error.code().to_owned());
            answer
        }
    });
    let CodeSource::Step { again, .. } = worked(api, one_step(|_| ()), tasks, line).await else { panic!("no step") };
    let code = heard.lock().unwrap().clone().expect("the task has heard");
    CodeSource::Step { code, again }
}

async fn performs_both_at_once(api: &Api) -> CodeSource {
    fails(api, |ctx| async move {
        let slow = |_| async {
            tokio::task::yield_now().await;
            Ok(1)
        };
        let (one, two) =
            tokio::join!(ctx.effect("a", EffectClass::Read, &(), slow), ctx.effect("b", EffectClass::Read, &(), slow));
        Ok(one? + two?)
    })
    .await
}

async fn performs_without_end(api: &Api) -> CodeSource {
    fails(api, |ctx| async move {
        loop {
            ctx.effect("x", EffectClass::Read, &(), |_| async { Ok(()) }).await?;
        }
        #[expect(unreachable_code, reason = "it tells the compiler what the task would answer")]
        Ok(())
    })
    .await
}

/// The task makes nothing of an effect that may have happened; the worker does.
async fn careless(api: &Api) -> CodeSource {
    let tasks = Tasks::new().task("t", |ctx, _: Value| async move {
        let silent = |_| async { Err::<u32, _>(std::io::Error::other("reset").into()) };
        let _ = ctx.effect("x", EffectClass::Unsafe, &(), silent).await;
        Ok("fine")
    });
    worked(api, one_step(|step| step["effect"] = json!("unsafe")), tasks, Line::default()).await
}

/// The error of a step that an engine alone works on.
async fn unworked(api: &Api, step: Value) -> CodeSource {
    error_of(api, &api.start(json!([step])).await).await
}

async fn of_another_workers_task(api: &Api) -> CodeSource {
    let run = api.start(json!([task("a")])).await;
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    api.report(&session, &assignment, json!({ "status": "unknown_task" })).await.ok();
    error_of(api, &run).await
}

async fn lost(api: &Api) -> CodeSource {
    let run = api.start(json!([task("a")])).await;
    let session = api.register().await;
    api.poll(&session).await;
    error_of(api, &run).await
}

async fn overspent(api: &Api) -> CodeSource {
    let source = "name: broke\nlimits: { spend: 0 }\nsteps: [{ id: a, task: t }]\n";
    api.post("/workflows", json!({ "source": source })).await.ok();
    let run = api.post("/runs", json!({ "workflow": "broke" })).await.text("run_id");
    error_of(api, &run).await
}

/// A run for one worker as a whole.
async fn shares_a_directory(api: &Api) -> String {
    let source =
        "name: shares\nprofile: dev-flex\nsteps: [{ id: a, run: [/usr/bin/true], effect: read, workdir: run }]\n";
    api.post("/workflows", json!({ "source": source })).await.ok();
    api.post("/runs", json!({ "workflow": "shares" })).await.text("run_id")
}

async fn unassigned(api: &Api) -> CodeSource {
    let run = shares_a_directory(api).await;
    error_of(api, &run).await
}

async fn refused_by_its_only_worker(api: &Api) -> CodeSource {
    let run = shares_a_directory(api).await;
    let capabilities = json!(["effects", "workdir", "command:dev-flex"]);
    let hello = json!({ "worker": "w", "queues": ["default"], "slots": 1, "capabilities": capabilities });
    let session = api.post("/agent/register", hello).await.text("session");
    let polled = api.post("/agent/poll", json!({ "session": session, "max": 1, "wait_ms": 5000 })).await.ok();
    let mut answer = json!({ "answer": { "status": "refused", "check": "commands", "why": "not on my list" } });
    for field in ["tenant", "run", "epoch", "number"] {
        answer[field] = polled["offers"][0][field].clone();
    }
    api.post(&format!("/agent/{session}/assignments"), answer).await;
    error_of(api, &run).await
}

async fn unrendered(api: &Api) -> CodeSource {
    let source =
        "name: unrendered\ninputs: { n: { type: integer } }\nsteps:\n  - id: a\n    transform: ${{ 1 / inputs.n }}\n";
    api.post("/workflows", json!({ "source": source })).await.ok();
    let run = api.post("/runs", json!({ "workflow": "unrendered", "inputs": { "n": 0 } })).await.text("run_id");
    error_of(api, &run).await
}

async fn rejected(api: &Api) -> CodeSource {
    let ada = Person::new(api, "ada", json!(["approver"]), json!([])).await;
    let run = api.start(json!([{ "key": "gate", "kind": "approval" }])).await;
    let digest = card(api, &run).await["digest"].clone();
    ada.post(&format!("/runs/{run}/approve"), json!({ "approve": false, "digest": digest, "notes": "no" })).await.ok();
    error_of(api, &run).await
}

async fn past_its_deadline(api: &Api) -> CodeSource {
    let mut start = one_step(|_| ());
    start["plan"]["timeout"] = json!(1_000);
    let run = api.post("/runs", start).await.text("run_id");
    error_of(api, &run).await
}

async fn resolved_as_failed(api: &Api) -> CodeSource {
    let run = in_doubt(api).await;
    until(api, &run, "paused").await;
    tokio::time::sleep(Duration::from_secs(61)).await;
    let known = json!({ "outcome": "failed", "reason": "the bank says so" });
    api.post(&format!("/runs/{run}/steps/pay/resolve"), known).await.ok();
    error_of(api, &run).await
}

async fn released(api: &Api) -> CodeSource {
    let run = in_doubt(api).await;
    error_of(api, &run).await
}

table! { TABLE:
    "TASK_FAILED" => |api| fails(api, |_| async { Err::<(), _>(std::io::Error::other("reset").into()) }).await,
    "TASK_PANICKED" => |api| fails(api, |ctx| async move {
        assert_eq!(ctx.attempt(), 0, "attempts are counted from one");
        Ok(())
    }).await,
    "TASK_UNKNOWN" => |api| of_another_workers_task(api).await,
    "STEP_TIMEOUT" => |api| hangs(api).await,
    "LEASE_EXPIRED" => |api| lost(api).await,
    "ASSIGNMENT_FAILED" => |api| unassigned(api).await,
    "ASSIGNMENT_ERROR" => |api| refused_by_its_only_worker(api).await,
    "RUN_SPEND_EXHAUSTED" => |api| overspent(api).await,
    "LEASE_TOO_SHORT" => |api| late(api).await,
    "SERVER_UNAVAILABLE" => |api| cut_off(api).await,
    "INPUT_INVALID" => |api| misunderstands(api).await,
    "OUTPUT_INVALID" => |api| fails(api, |_| async { Ok(not_json()) }).await,
    "OUTPUT_TOO_LARGE" => |api| fails(api, |_| async { Ok("x".repeat(2 << 20)) }).await,
    "PAYLOAD_TOO_LARGE" => |api| fails(api, |ctx| async move {
        ctx.effect("x", EffectClass::Read, &"x".repeat(2 << 20), |_| async { Ok(1) }).await
    }).await,
    "REPORT_REFUSED" => |api| fails(api, |_| async {
        Ok(Flow::<()>::Wait(WaitFor::signal("go").send("nowhere", Json::null())))
    }).await,
    "SIGNAL_INVALID" => |api| misunderstands_its_signal(api).await,
    "EXPRESSION_FAILED" => |api| unrendered(api).await,
    "WAIT_TIMEOUT" => |api| unworked(api, json!({ "key": "w", "kind": "wait", "signal": { "type": "go" }, "wait_timeout": 1_000 })).await,
    "APPROVAL_REJECTED" => |api| rejected(api).await,
    "APPROVAL_EXPIRED" => |api| unworked(api, json!({ "key": "gate", "kind": "approval", "expires_after": 1_000 })).await,
    "RUN_DEADLINE" => |api| past_its_deadline(api).await,
    "RESOLVED_FAILED" => |api| resolved_as_failed(api).await,
    "EFFECT_IN_DOUBT" => |api| careless(api).await,
    "RELEASED" => |api| released(api).await,
    "POLICY_DENIED" => |api| {
        put_in_force(api, BY_NAME).await;
        let run = api.post("/runs", one_step(|step| step["handler"] = json!("forbidden"))).await.text("run_id");
        error_of(api, &run).await
    },
    "POLICY_UNAVAILABLE" => |api| {
        put_in_force(api, CONTRADICTS).await;
        let run = api.post("/runs", one_step(|step| step["handler"] = json!("contradicts"))).await.text("run_id");
        error_of(api, &run).await
    },
    "EFFECT_NEEDS_APPROVAL" => |api| {
        put_in_force(api, BY_NAME).await;
        fails(api, |ctx| async move {
            ctx.effect("ask-first", EffectClass::Keyed, &(), |_| async { Ok(()) }).await
        }).await
    },
    "EFFECT_OVERLAP" => |api| performs_both_at_once(api).await,
    "EFFECTS_EXHAUSTED" => |api| performs_without_end(api).await,
    "EFFECT_RESPONSE_INVALID" => |api| fails(api, |ctx| async move {
        ctx.effect("x", EffectClass::Keyed, &(), |_| async { Ok(not_json()) }).await.map(|_| ())
    }).await,
}
