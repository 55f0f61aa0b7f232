//! What steps write while they run, as the server gets it.

use std::time::Duration;

use interlock_core::time::Millis;
use interlock_protocol::agent::{OutputChunk, OutputStream, ReportedOutcome};
use interlock_worker::{ExecTask, TaskContext, Tasks};

use crate::fake::{Fake, start};

fn written(fake: &Fake) -> Vec<OutputChunk> {
    fake.state().outputs.iter().flat_map(|batch| batch.chunks.clone()).collect()
}

fn joined(chunks: &[OutputChunk], stream: OutputStream) -> String {
    chunks.iter().filter(|chunk| chunk.stream == stream).map(|chunk| chunk.text.as_str()).collect()
}

fn shell(script: &str) -> Tasks {
    Tasks::new().add("script", ExecTask::new("/bin/sh").argument("-c").argument(script))
}

#[tokio::test]
async fn standard_error_arrives_before_the_report_without_secrets() {
    let fake = Fake::new();
    let script = r"echo begun >&2; printf 'AKIAIOSFODNN7' >&2; sleep 0.05; printf 'EXAMPLE\377\n' >&2; echo 1";
    let running = start(&fake, shell(script));
    let outcome = fake.run_one(fake.step("script", "null")).await;
    assert!(matches!(outcome, ReportedOutcome::Completed { .. }), "{outcome:?}");
    let chunks = written(&fake);
    let text = joined(&chunks, OutputStream::Stderr);
    assert!(text.starts_with("begun\n") && text.contains("[redacted]"), "{text}");
    assert!(!text.contains("AKIA") && text.contains("\\xff"), "{text}");
    assert_eq!(chunks.iter().map(|chunk| chunk.seq).collect::<Vec<_>>(), (1..=chunks.len() as u64).collect::<Vec<_>>());
    running.stop().await;
}

#[tokio::test]
async fn a_timeout_says_the_limit_and_the_end_of_standard_error() {
    let fake = Fake::new();
    let running = start(&fake, shell("echo waiting for the lock >&2; sleep 60"));
    let mut step = fake.step("script", "null");
    // Long enough for the shell to have written it on a busy machine.
    step.timeout = Some(Millis(3_500));
    let outcome = fake.run_one(step).await;
    let ReportedOutcome::Retry { error, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(error.code, "STEP_TIMEOUT");
    assert!(error.message.contains("3500 ms") && error.message.ends_with("waiting for the lock"), "{}", error.message);
    assert_eq!(joined(&written(&fake), OutputStream::Stderr), "waiting for the lock\n");
    running.stop().await;
}

/// A task that writes numbered lines.
fn lines(count: u32) -> Tasks {
    Tasks::new().task("lines", move |ctx: TaskContext, (): ()| async move {
        for number in 0..count {
            ctx.write_stdout(format!("{number}\n")).await;
        }
        Ok(())
    })
}

#[tokio::test(start_paused = true)]
async fn a_batch_whose_answer_was_lost_is_stored_once() {
    let fake = Fake::new();
    fake.state().lose_outputs = 3;
    let running = start(&fake, lines(500));
    fake.run_one(fake.step("lines", "null")).await;
    let expected: String = (0..500).map(|number| number.to_string() + "\n").collect();
    assert_eq!(joined(&written(&fake), OutputStream::Stdout), expected);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_flood_is_held_up_and_cut_where_the_server_cuts_it() {
    let fake = Fake::new();
    fake.state().output_max = Some(1 << 20);
    let tasks = Tasks::new().task("flood", |ctx: TaskContext, (): ()| async move {
        let piece = "x".repeat(64 << 10);
        for _ in 0..800 {
            ctx.write_stdout(&piece).await;
        }
        Ok(())
    });
    let running = start(&fake, tasks);
    let outcome = fake.run_one(fake.step("flood", "null")).await;
    assert!(matches!(outcome, ReportedOutcome::Completed { .. }));
    let bytes = joined(&written(&fake), OutputStream::Stdout).len();
    assert!((1 << 20..3 << 20).contains(&bytes), "{bytes} of 50 MiB were sent");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_costs_output_and_never_the_step() {
    let fake = Fake::new();
    let tasks = Tasks::new().task("flood", {
        let fake = fake.clone();
        move |ctx: TaskContext, (): ()| {
            let fake = fake.clone();
            async move {
                ctx.write_stdout("before\n").await;
                tokio::time::sleep(Duration::from_secs(1)).await;
                fake.state().down = true;
                let piece = "x".repeat(64 << 10);
                for _ in 0..100 {
                    ctx.write_stdout(&piece).await;
                }
                fake.state().down = false;
                tokio::time::sleep(Duration::from_secs(30)).await;
                ctx.write_stdout("after\n").await;
                Ok(())
            }
        }
    });
    let running = start(&fake, tasks);
    let outcome = fake.run_one(fake.step("flood", "null")).await;
    assert!(matches!(outcome, ReportedOutcome::Completed { .. }), "{outcome:?}");
    let chunks = written(&fake);
    let status = joined(&chunks, OutputStream::Status);
    assert!(status.contains("bytes of output lost"), "{status}");
    let text = joined(&chunks, OutputStream::Stdout);
    assert!(text.starts_with("before\n") && text.ends_with("after\n") && text.len() < 2 << 20, "{}", text.len());
    running.stop().await;
}
