//! Whatever ends a command, its whole tree is gone: children that have left their session and whose parents are gone too.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::harness::{PROBE, probe, sandbox, told};
use interlock_sandbox::{Outcome, Profile, Running, Sandbox};
use rustix::process::{Pid, Signal, kill_process};

/// The command, and three orphans in sessions of their own.
const PROCESSES_OF_A_TREE: usize = 4;

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

async fn grown(sandbox: &Sandbox, profile: Profile, mark: &str) -> Running {
    let request = probe(profile, &["tree", mark]).watchdog(Duration::from_secs(2));
    let mut running = sandbox.run(request).await.unwrap();
    assert_eq!(running.next().await.unwrap().text(), "grown\n");
    wait_for(mark, PROCESSES_OF_A_TREE).await;
    running
}

async fn wait_for(mark: &str, count: usize) {
    for _ in 0..500 {
        if living(mark) == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} processes are left with the mark {mark} instead of {count}", living(mark));
}

#[tokio::test]
async fn cancel_leaves_nothing() {
    let sandbox = sandbox().await;
    for profile in Profile::ALL {
        let mark = mark(profile.name());
        let running = grown(&sandbox, *profile, &mark).await;
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
    assert!(ended.duration < Duration::from_secs(3), "{:?}", ended.duration);
    assert_eq!(living(&mark), 0);
}

#[tokio::test]
async fn a_dropped_handle_leaves_nothing() {
    let sandbox = sandbox().await;
    let mark = mark("dropped");
    drop(grown(&sandbox, Profile::ProdStandard, &mark).await);
    wait_for(&mark, 0).await;
}

#[tokio::test]
async fn the_end_of_the_command_is_the_end_of_what_it_left_in_the_background() {
    let sandbox = sandbox().await;
    let told = told(sandbox.run(probe(Profile::DevFlex, &["background"])).await.unwrap()).await;
    assert_eq!(told.ended.outcome, Outcome::Exited { code: 0 });
    assert!(told.ended.duration < Duration::from_secs(5));
}

#[tokio::test]
async fn without_renewals_by_the_caller_the_watchdog_ends_it() {
    let sandbox = sandbox().await;
    let mark = mark("watchdog");
    let request = probe(Profile::ProdCritical, &["tree", &mark]);
    let request = request.watchdog(Duration::from_millis(600)).renewed_by_caller();
    let running = sandbox.run(request).await.unwrap();
    let control = running.control();
    for _ in 0..6 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        control.renew();
    }
    assert_eq!(living(&mark), PROCESSES_OF_A_TREE, "it lives as long as it is renewed");
    let ended = running.end().await;
    assert_eq!(ended.outcome, Outcome::NotRenewed);
    assert!(ended.duration > Duration::from_millis(1_200), "{:?}", ended.duration);
    assert_eq!(living(&mark), 0);
}

#[tokio::test]
async fn a_polite_command_may_end_by_itself_and_a_stubborn_one_is_killed() {
    let sandbox = sandbox().await;
    for (command, least, said) in [("polite", 0, "goodbye\n"), ("stubborn", 400, "")] {
        let request = probe(Profile::ProdCritical, &[command]).terminate_grace(Duration::from_millis(400));
        let mut running = sandbox.run(request).await.unwrap();
        assert_eq!(running.next().await.unwrap().text(), "ready\n");
        running.cancel();
        let told = told_after(running).await;
        assert_eq!(told.0, said);
        assert_eq!(told.1.outcome, Outcome::Canceled);
        assert!(told.1.duration >= Duration::from_millis(least), "{command}: {:?}", told.1.duration);
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
fn worker(mark: &str) -> std::process::Child {
    let mut worker =
        Command::new(PROBE).args(["worker", "hold", mark]).stdout(Stdio::piped()).spawn().expect("a worker starts");
    let mut line = String::new();
    BufReader::new(worker.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "grown\n");
    worker
}

#[tokio::test]
async fn a_killed_worker_leaves_nothing() {
    let mark = mark("killed");
    let mut worker = worker(&mark);
    wait_for(&mark, PROCESSES_OF_A_TREE).await;
    worker.kill().unwrap();
    worker.wait().unwrap();
    wait_for(&mark, 0).await;
}

#[tokio::test]
async fn a_stopped_workers_command_is_ended_by_the_watchdog() {
    let mark = mark("stopped");
    let mut worker = worker(&mark);
    wait_for(&mark, PROCESSES_OF_A_TREE).await;
    let pid = Pid::from_child(&worker);
    kill_process(pid, Signal::STOP).unwrap();
    wait_for(&mark, 0).await;
    kill_process(pid, Signal::KILL).unwrap();
    worker.wait().unwrap();
}
