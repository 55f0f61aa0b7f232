//! How local programs fail, run for real.

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use interlock_core::json::Json;
use interlock_worker::{ExecTask, Flow, Task, TaskContext, TaskError, Tasks, Worker, WorkerOptions};
use tokio_util::sync::CancellationToken;

use super::steps::{one_step, worked};
use super::transport::{Line, Routed};
use super::{CodeSource, table};
use crate::harness::Api;

fn shell(script: &str) -> ExecTask {
    ExecTask::new("/bin/sh").argument("-c").argument(script)
}

async fn program(api: &Api, program: ExecTask) -> CodeSource {
    worked(api, one_step(|_| ()), Tasks::new().add("t", program), Line::default()).await
}

/// A file of this test alone.
fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("interlock-codes-{name}-{}", std::process::id()))
}

/// A program that is being written cannot be run at that moment.
async fn in_writing(api: &Api) -> CodeSource {
    let path = path("in-writing");
    let mut file = std::fs::OpenOptions::new();
    let file = file.create(true).write(true).truncate(true).mode(0o700).open(&path).unwrap();
    let seen = program(api, ExecTask::new(&path)).await;
    drop(file);
    std::fs::remove_file(&path).unwrap();
    seen
}

/// Something that the program started, and that has left its group, keeps its output open.
async fn held_open(api: &Api) -> CodeSource {
    let note = path("held-open");
    let path = note.display();
    // What the shell becomes is ended below; without that it would stay for ten minutes.
    let script = format!("setsid sh -c 'echo $$ > {path}; exec sleep 600' & while [ ! -s {path} ]; do :; done; echo 1");
    let seen = program(api, shell(&script)).await;
    let pid = std::fs::read_to_string(&note).unwrap();
    assert!(std::process::Command::new("kill").args(["-9", pid.trim()]).status().unwrap().success());
    std::fs::remove_file(&note).unwrap();
    seen
}

/// A task that has its work done by a program, and notes what became of it.
struct Around(ExecTask, Arc<Mutex<Option<String>>>);

impl Task for Around {
    type Input = Json;
    type Output = Json;

    async fn run(&self, ctx: TaskContext, input: Json) -> Result<Flow<Json>, TaskError> {
        let answer = self.0.run(ctx, input).await;
        *self.1.lock().unwrap() = answer.as_ref().err().map(|error| error.code().to_owned());
        answer
    }
}

/// The worker is told to stop and does not wait for the program, which says goodbye. The step is given back.
async fn stopped(api: &Api) -> CodeSource {
    let (note, heard) = (path("stopped"), Arc::default());
    let script = format!("trap 'exit 0' TERM; echo $$ > '{}'; sleep 3600 & wait", note.display());
    let tasks = Tasks::new().add("t", Around(shell(&script), Arc::clone(&heard)));
    let run = api.post("/runs", one_step(|_| ())).await.text("run_id");
    let options = WorkerOptions { drain_grace: Duration::ZERO, ..WorkerOptions::default() };
    let stop = CancellationToken::new();
    let working = tokio::spawn(Worker::new(Routed::new(api, Line::default()), tasks, options).run(stop.clone()));
    while !std::fs::read_to_string(&note).is_ok_and(|pid| pid.ends_with('\n')) {
        tokio::task::yield_now().await;
    }
    stop.cancel();
    working.await.unwrap().unwrap();
    std::fs::remove_file(&note).unwrap();
    let steps = api.get(&format!("/runs/{run}/steps")).await.ok();
    let code = heard.lock().unwrap().clone().expect("the task has heard");
    CodeSource::Step { code, again: steps["steps"][0]["state"] == "ready" }
}

table! { TABLE:
    "TASK_TEMPFAIL" => |api| program(api, shell("exit 75")).await,
    "TASK_KILLED" => |api| program(api, shell("kill -9 $$")).await,
    "TASK_STOPPED" => |api| stopped(api).await,
    "TASK_NOT_STARTED" => |api| in_writing(api).await,
    "TASK_PROGRAM_UNUSABLE" => |api| program(api, ExecTask::new("/nonexistent/program")).await,
    "TASK_DATA_ERROR" => |api| program(api, shell("exit 65")).await,
    "TASK_EXITED" => |api| program(api, shell("exit 3")).await,
    "OUTPUT_HELD_OPEN" => |api| held_open(api).await,
}
