//! Local programs as tasks, run for real.

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use interlock_core::json::Json;
use interlock_core::state::EffectClass;
use interlock_core::time::Millis;
use interlock_protocol::agent::{Assignment, ReportedOutcome};
use interlock_worker::{ExecTask, Flow, Task, TaskContext, TaskError, Tasks};

use crate::fake::{Fake, Running, start};

fn shell(script: &str) -> ExecTask {
    ExecTask::new("/bin/sh").argument("-c").argument(script)
}

fn running(script: &str) -> (Fake, Running) {
    let fake = Fake::new();
    let running = start(&fake, Tasks::new().add("script", shell(script)));
    (fake, running)
}

async fn outcome(script: &str, input: &str) -> ReportedOutcome {
    let (fake, running) = running(script);
    let outcome = fake.run_one(fake.step("script", input)).await;
    running.stop().await;
    outcome
}

fn completed(output: &str) -> ReportedOutcome {
    ReportedOutcome::Completed { output: Json::trusted(output) }
}

/// Whether it is tried again, the code, and the message.
fn failure(outcome: ReportedOutcome) -> (bool, String, String) {
    match outcome {
        ReportedOutcome::Retry { error, .. } => (true, error.code, error.message),
        ReportedOutcome::Dead { error } => (false, error.code, error.message),
        other => panic!("not a failure: {other:?}"),
    }
}

#[tokio::test]
async fn input_and_output_go_through_the_pipes() {
    assert_eq!(outcome("cat", r#"{"a":[1,2]}"#).await, completed(r#"{"a":[1,2]}"#));
    assert_eq!(outcome("true", "1").await, completed("null"));
    // A program need not read what it is given, however large.
    let large = format!("\"{}\"", "x".repeat(500_000));
    assert_eq!(outcome("echo 7", &large).await, completed("7"));
    assert_eq!(outcome("cat", &large).await, completed(&large));
}

#[tokio::test]
async fn the_environment_names_the_attempt() {
    let (fake, running) = running(
        r#"printf '["%s","%s","%s","%s"]' "$INTERLOCK_RUN_ID" "$INTERLOCK_STEP" "$INTERLOCK_ATTEMPT" "$INTERLOCK_EFFECT_KEY""#,
    );
    let step = fake.step("script", "null");
    let run = step.at.run;
    let expected = format!(r#"["{run}","script-0","1","exec:script#{run}/script-0/0/0"]"#);
    assert_eq!(fake.run_one(step).await, completed(&expected));
    running.stop().await;
}

/// What a program has paid counts however it ends, and is asked for in a file that is gone afterwards.
#[tokio::test]
async fn a_program_says_what_it_has_cost() {
    let path = Note::new("cost-file");
    for (end, ended) in [("echo 1", "completed"), ("exit 3", "retry"), ("kill -9 $$", "retry")] {
        let script = format!(
            r#"echo '{{"micros":12500,"unit":"USD"}}' >> "$INTERLOCK_COST_FILE"
               echo '{{"micros":500,"input_tokens":9}}' >> "$INTERLOCK_COST_FILE"
               printf %s "$INTERLOCK_COST_FILE" > '{}'; {end}"#,
            path.0.display()
        );
        let (fake, running) = running(&script);
        fake.run_one(fake.step("script", "null")).await;
        let report = fake.state().reports[0].clone();
        let said = match report.outcome {
            ReportedOutcome::Completed { .. } => "completed",
            ReportedOutcome::Retry { .. } => "retry",
            other => panic!("{other:?}"),
        };
        assert_eq!(said, ended);
        let cost = report.cost.unwrap();
        assert_eq!((cost.micros, cost.unit.as_deref(), cost.input_tokens), (13_000, Some("USD"), Some(9)), "{end}");
        let named = std::fs::read_to_string(&path.0).unwrap();
        assert!(!named.is_empty() && !PathBuf::from(named).exists(), "the file is removed");
        running.stop().await;
    }
}

/// A worker that was killed could not remove its file.
#[tokio::test]
async fn a_worker_removes_the_cost_files_of_dead_ones_when_it_starts() {
    let left = std::env::temp_dir().join(format!("interlock-cost-{:016x}", std::process::id()));
    std::fs::write(&left, "").unwrap();
    assert_eq!(outcome("echo 1", "null").await, completed("1"));
    assert!(!left.exists());
}

#[tokio::test]
async fn a_cost_that_cannot_be_read_is_not_taken_for_none() {
    let (fake, running) = running(r#"echo 'five dollars' > "$INTERLOCK_COST_FILE"; echo 1"#);
    assert_eq!(fake.run_one(fake.step("script", "null")).await, completed("1"));
    let report = fake.state().reports[0].clone();
    assert!(report.cost.unwrap().unpriced);
    let said: String =
        fake.state().outputs.iter().flat_map(|batch| batch.chunks.iter().map(|chunk| chunk.text.clone())).collect();
    assert!(said.contains("line 1 is no cost") && said.contains("INTERLOCK_COST_FILE"), "{said}");
    running.stop().await;
}

#[tokio::test]
async fn a_program_without_costs_reports_none() {
    let (fake, running) = running("echo 1");
    fake.run_one(fake.step("script", "null")).await;
    assert_eq!(fake.state().reports[0].cost, None);
    running.stop().await;
}

#[tokio::test]
async fn the_exit_status_decides() {
    let (retried, code, message) = failure(outcome("echo oops >&2; exit 3", "null").await);
    assert_eq!((retried, code.as_str()), (true, "TASK_EXITED"));
    assert!(message.contains("ended with exit status 3: ") && message.ends_with("oops"), "{message}");

    let (retried, code, message) = failure(outcome("echo busy >&2; exit 75", "null").await);
    assert_eq!((retried, code.as_str()), (true, "TASK_TEMPFAIL"));
    assert!(message.ends_with("busy"), "{message}");

    let (retried, code, message) = failure(outcome("echo no such order >&2; exit 65", "null").await);
    assert_eq!((retried, code.as_str()), (false, "TASK_DATA_ERROR"));
    assert!(message.ends_with("no such order"), "{message}");

    let (retried, code, _) = failure(outcome("kill -9 $$", "null").await);
    assert_eq!((retried, code.as_str()), (true, "TASK_KILLED"));
}

#[tokio::test]
async fn output_that_is_not_json_or_too_much_fails_for_good() {
    let (retried, code, message) = failure(outcome("echo hello", "null").await);
    assert_eq!((retried, code.as_str()), (false, "OUTPUT_INVALID"));
    assert!(message.contains("line 1 column 1") && message.contains("standard error"), "{message}");
    assert_eq!(failure(outcome("echo '{} {}'", "null").await).1, "OUTPUT_INVALID");
    assert_eq!(failure(outcome(r"printf '\377'", "null").await).1, "OUTPUT_INVALID");

    let (retried, code, _) = failure(outcome("yes", "null").await);
    assert_eq!((retried, code.as_str()), (false, "OUTPUT_TOO_LARGE"));
}

#[tokio::test]
async fn only_the_end_of_standard_error_is_kept() {
    let script = "i=0; while [ $i -lt 3000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1";
    let (_, _, message) = failure(outcome(script, "null").await);
    assert!(message.ends_with("line 2999") && !message.contains("line 1\n"), "{message}");
    assert!(message.len() < 5_000, "{}", message.len());
}

#[tokio::test]
async fn a_program_that_cannot_start_says_so() {
    let fake = Fake::new();
    let tasks = Tasks::new().add("missing", ExecTask::new("/nonexistent/program"));
    let running = start(&fake, tasks);
    let (retried, code, message) = failure(fake.run_one(fake.step("missing", "null")).await);
    assert_eq!((retried, code.as_str()), (false, "TASK_PROGRAM_UNUSABLE"));
    assert!(message.contains("/nonexistent/program"), "{message}");
    running.stop().await;
}

#[tokio::test]
async fn what_a_program_leaves_behind_does_not_hold_its_step() {
    // The grandchild inherits the pipes and would keep them open for an hour.
    assert_eq!(outcome("sleep 3600 & echo 1", "null").await, completed("1"));
}

/// What has left the program's group is out of the worker's reach.
#[tokio::test]
async fn output_that_somebody_else_keeps_open_cannot_be_believed() {
    let note = Note::new("elsewhere");
    let path = note.0.display();
    let script = format!("setsid sh -c 'echo $$ > {path}; exec sleep 60' & while [ ! -s {path} ]; do :; done; echo 1");
    let (retried, code, _) = failure(outcome(&script, "null").await);
    assert_eq!((retried, code.as_str()), (false, "OUTPUT_HELD_OPEN"));
    let ended = std::process::Command::new("kill").arg(note.pid().await).status().unwrap();
    assert!(ended.success(), "it was still there");
}

/// A program that is being replaced cannot be run at that moment, and can a moment later.
#[tokio::test]
async fn a_program_that_is_being_written_is_tried_again() {
    let program = Note::new("in-writing");
    let mut file = std::fs::OpenOptions::new();
    let file = file.create(true).write(true).truncate(true).mode(0o700).open(&program.0).unwrap();
    let fake = Fake::new();
    let running = start(&fake, Tasks::new().add("script", ExecTask::new(&program.0)));
    let (retried, code, message) = failure(fake.run_one(fake.step("script", "null")).await);
    assert_eq!((retried, code.as_str()), (true, "TASK_NOT_STARTED"), "{message}");
    drop(file);
    running.stop().await;
}

/// A task that has its work done by a program, and looks at what became of it.
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

#[tokio::test]
async fn a_program_that_was_stopped_is_not_believed_whatever_it_exits_with() {
    let (note, heard) = (Note::new("stopped"), Arc::default());
    let fake = Fake::new();
    fake.set(|state| state.renew_every = Some(Millis(20)));
    let script = format!("trap 'exit 0' TERM; echo $$ > '{}'; sleep 3600 & wait", note.0.display());
    let running = start(&fake, Tasks::new().add("script", Around(shell(&script), Arc::clone(&heard))));
    let at = fake.enqueue_one("script", "null");
    note.pid().await;
    fake.set(|state| state.stop.push(at));
    fake.until("a report", |state| !state.reports.is_empty()).await;
    assert_eq!(heard.lock().unwrap().as_deref(), Some("TASK_STOPPED"));
    assert_eq!(fake.outcomes_reported(), [ReportedOutcome::Released], "it costs the step no try");
    running.stop().await;
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_ended() {
    let (fake, running) = running("exec sleep 3600");
    let mut step = fake.step("script", "null");
    step.timeout = Some(Millis(50));
    assert_eq!(failure(fake.run_one(step).await).1, "STEP_TIMEOUT");
    running.stop().await;
}

/// A file through which a program says who it is.
struct Note(PathBuf);

impl Note {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("interlock-{name}-{}", std::process::id())))
    }

    async fn pid(&self) -> String {
        loop {
            let text = std::fs::read_to_string(&self.0).unwrap_or_default();
            if text.ends_with('\n') {
                return text.trim().to_owned();
            }
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Gone, or a zombie that its parent has not collected yet.
async fn ended(pid: &str) {
    let lives = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    while lives() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_program_dies_with_its_worker_and_takes_what_it_started_along() {
    let note = Note::new("grandchild");
    let (fake, running) = running(&format!("sleep 3600 & echo $! > '{}'; wait", note.0.display()));
    fake.enqueue_one("script", "null");
    let grandchild = note.pid().await;
    running.worker.abort();
    ended(&grandchild).await;
}

#[tokio::test]
async fn a_program_that_is_no_longer_wanted_is_asked_to_stop_first() {
    let note = Note::new("polite");
    let fake = Fake::new();
    fake.set(|state| state.renew_every = Some(Millis(20)));
    // The signal reaches the whole group; the shell outlives `sleep` and says goodbye.
    let script = format!("trap 'echo bye >&2; exit 3' TERM; echo $$ > '{}'; sleep 3600 & wait", note.0.display());
    let running = start(&fake, Tasks::new().add("script", shell(&script)));
    let at = fake.enqueue_one("script", "null");
    let shell = note.pid().await;
    fake.set(|state| state.stop.push(at));
    fake.until("a report", |state| !state.reports.is_empty()).await;
    assert_eq!(fake.outcomes_reported(), [ReportedOutcome::Released]);
    ended(&shell).await;
    running.stop().await;
}

fn unsafely(fake: &Fake) -> Assignment {
    Assignment { effect: EffectClass::Unsafe, ..fake.step("script", "null") }
}

#[tokio::test]
async fn an_unsafe_program_runs_once_and_its_output_is_recorded() {
    let (fake, running) = running("echo 5");
    let first = unsafely(&fake);
    let mut again = first.clone();
    again.at.attempt += 1;
    assert_eq!(fake.run_one(first).await, completed("5"));
    assert_eq!(fake.run_one(again).await, completed("5"));
    assert_eq!(fake.state().intents.len(), 2);
    assert_eq!(fake.state().outcomes.len(), 1, "the second one performed nothing");
    running.stop().await;
}

#[tokio::test]
async fn an_unsafe_program_that_breaks_off_leaves_a_doubt() {
    for (script, recorded) in [("exit 75", 1), ("exit 1", 0), ("exit 65", 0), ("kill -9 $$", 0)] {
        let (fake, running) = running(script);
        fake.run_one(unsafely(&fake)).await;
        assert_eq!(fake.state().outcomes.len(), recorded, "{script}");
        assert!(fake.state().outcomes.iter().all(|outcome| !outcome.happened));
        running.stop().await;
    }
}
