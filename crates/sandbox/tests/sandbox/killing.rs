//! Whatever ends a command, its whole tree is gone: children that have left their session and whose parents are gone too.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::harness::{PROBE, probe, sandbox, told};
use interlock_sandbox::{Outcome, Profile, Running, Sandbox};
use rustix::process::{Pid, Signal, kill_process};

/// The command, and three orphans in sessions of their own.
const PROCESSES_OF_A_TREE: usize = 4;

/// Longer than the tests wait, so that it is not the watchdog that ends a command.
const WATCHDOG_MAX: Duration = Duration::from_mins(2);
const PATIENCE: Duration = Duration::from_mins(1);

/// Processes of the host whose arguments hold the mark.
fn living(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let marked = processes.filter(|process| {
        let arguments = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let arguments = String::from_utf8_lossy(&arguments);
        arguments.contains("\0tree\0") && arguments.contains(mark)
    });
    marked.count()
}

fn mark(test: &str) -> String {
    format!("{test}-{}", std::process::id())
}

async fn grown(sandbox: &Sandbox, profile: Profile, mark: &str, watchdog: Duration) -> Running {
    let request = probe(profile, &["tree", mark]).watchdog(watchdog);
    let mut running = sandbox.run(request).await.unwrap();
    assert_eq!(running.next().await.unwrap().text(), "grown\n");
    wait_for(mark, PROCESSES_OF_A_TREE).await;
    running
}

async fn wait_for(mark: &str, count: usize) {
    let counted = async {
        while living(mark) != count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, counted).await.is_ok();
    assert!(in_time, "{} processes are left with the mark {mark} instead of {count}", living(mark));
}

#[tokio::test]
async fn cancel_leaves_nothing() {
    let sandbox = sandbox().await;
    for profile in Profile::ALL {
        let mark = mark(profile.name());
        let running = grown(&sandbox, *profile, &mark, WATCHDOG_MAX).await;
        running.cancel();
        let ended = running.end().await;
        assert_eq!(ended.outcome, Outcome::Canceled, "{profile}");
        assert_eq!(living(&mark), 0, "{profile}: gone once the end is told");
    }
}

#[tokio::test]
async fn a_timeout_leaves_nothing() {
    let sandbox = sandbox().await;
    let mark = mark("timeout");
    let request = probe(Profile::ProdCritical, &["tree", &mark]).timeout(Duration::from_millis(700));
    let ended = sandbox.run(request).await.unwrap().end().await;
    assert_eq!(ended.outcome, Outcome::TimedOut);
    assert!(ended.duration < PATIENCE, "{:?}", ended.duration);
    assert_eq!(living(&mark), 0);
}

#[tokio::test]
async fn the_time_that_a_start_takes_is_the_commands_own() {
    let sandbox = sandbox().await;
    let mark = mark("late");
    // By its profile it would have minutes.
    let request = probe(Profile::ProdCritical, &["tree", &mark]).end_by(tokio::time::Instant::now());
    let running = sandbox.run(request).await.unwrap();
    let ended = tokio::time::timeout(PATIENCE, running.end()).await.expect("its time is over");
    assert_eq!(ended.outcome, Outcome::TimedOut);
    assert_eq!(living(&mark), 0);
}

#[tokio::test]
async fn a_dropped_handle_leaves_nothing() {
    let sandbox = sandbox().await;
    let mark = mark("dropped");
    drop(grown(&sandbox, Profile::ProdStandard, &mark, WATCHDOG_MAX).await);
    wait_for(&mark, 0).await;
}

#[tokio::test]
async fn a_command_whose_worker_lives_outlives_its_watchdog() {
    let sandbox = sandbox().await;
    let (mark, watchdog) = (mark("renewed"), Duration::from_secs(3));
    let running = grown(&sandbox, Profile::DevFlex, &mark, watchdog).await;
    tokio::time::sleep(2 * watchdog).await;
    assert_eq!(living(&mark), PROCESSES_OF_A_TREE, "the worker's renewals keep it alive");
    running.cancel();
    assert_eq!(running.end().await.outcome, Outcome::Canceled);
}

#[tokio::test]
async fn the_end_of_the_command_is_the_end_of_what_it_left_in_the_background() {
    let sandbox = sandbox().await;
    let told = told(sandbox.run(probe(Profile::DevFlex, &["background"])).await.unwrap()).await;
    assert_eq!(told.ended.outcome, Outcome::Exited { code: 0 });
    // After ten seconds the worker would kill it.
    assert!(told.ended.duration < Duration::from_secs(10), "{:?}", told.ended.duration);
}

#[tokio::test]
async fn a_polite_command_may_end_by_itself_and_a_stubborn_one_is_killed() {
    let sandbox = sandbox().await;
    let (long, short) = (Duration::from_mins(1), Duration::from_millis(400));
    let cases = [("polite", long, Duration::ZERO, "goodbye\n"), ("stubborn", short, short, "")];
    for (command, grace, least, said) in cases {
        let request = probe(Profile::ProdCritical, &[command]).terminate_grace(grace);
        let mut running = sandbox.run(request).await.unwrap();
        assert_eq!(running.next().await.unwrap().text(), "ready\n");
        running.cancel();
        let told = told_after(running).await;
        assert_eq!(told.0, said);
        assert_eq!(told.1.outcome, Outcome::Canceled);
        assert!(told.1.duration >= least, "{command}: {:?}", told.1.duration);
    }
}

async fn told_after(mut running: Running) -> (String, interlock_sandbox::CommandResult) {
    let mut said = String::new();
    while let Some(chunk) = running.next().await {
        said.push_str(&chunk.text());
    }
    (said, running.end().await)
}

/// A worker in a process of its own, with a command that has grown its tree.
fn worker(mark: &str, watchdog: Duration) -> std::process::Child {
    let mut command = Command::new(PROBE);
    command.args(["worker", "hold", mark, &watchdog.as_secs().to_string()]).stdout(Stdio::piped());
    let mut worker = command.spawn().expect("a worker starts");
    let mut line = String::new();
    BufReader::new(worker.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "grown\n");
    worker
}

#[tokio::test]
async fn a_killed_worker_leaves_nothing() {
    let mark = mark("killed");
    let mut worker = worker(&mark, WATCHDOG_MAX);
    wait_for(&mark, PROCESSES_OF_A_TREE).await;
    worker.kill().unwrap();
    worker.wait().unwrap();
    wait_for(&mark, 0).await;
}

#[tokio::test]
async fn a_stopped_workers_command_is_ended_by_the_watchdog() {
    let mark = mark("stopped");
    let mut worker = worker(&mark, Duration::from_secs(8));
    wait_for(&mark, PROCESSES_OF_A_TREE).await;
    let pid = Pid::from_child(&worker);
    kill_process(pid, Signal::STOP).unwrap();
    wait_for(&mark, 0).await;
    kill_process(pid, Signal::KILL).unwrap();
    worker.wait().unwrap();
}
