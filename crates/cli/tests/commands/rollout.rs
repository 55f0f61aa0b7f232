//! The flag for workers elsewhere, and the way back, as an operator types them.

use std::process::{Child, Stdio};

use crate::harness::{Output, Up, eventually};

struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Worker {
    fn start(up: &Up, name: &str, task: &str) -> Self {
        let (server, data) = (up.server(), up.path("data").display().to_string());
        let arguments = ["worker", "--server", &server, "--data", &data, "--name", name, "--task", task];
        let log = std::fs::File::create(up.path(&format!("{name}.log"))).unwrap();
        let mut command = up.command();
        Self(command.args(arguments).stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }

    /// Whether it has ended by itself, within a while.
    fn ends(&mut self) -> bool {
        let child = std::cell::RefCell::new(&mut self.0);
        eventually(|| child.borrow_mut().try_wait().unwrap().is_some())
    }
}

fn says(up: &Up, arguments: &[&str], part: &str) -> Output {
    assert!(eventually(|| up.run(arguments).out.contains(part)), "{arguments:?}: {:?}", up.run(arguments));
    up.run(arguments)
}

const SHORT: &[&str] = &["--no-demo", "--session-lease-ms", "8000"];

#[test]
fn with_the_flag_off_only_the_servers_own_worker_takes_steps() {
    let up = Up::start(SHORT);
    let _worker = Worker::start(&up, "far", "echo=cat");
    says(&up, &["worker", "list"], "far");
    let listed = up.run(&["flag", "list"]);
    assert!(listed.out.contains("worker_orchestration.enabled  on"), "{listed:?}");
    let off = up.run(&["flag", "set", "worker_orchestration.enabled", "false"]);
    assert!(off.code == 0 && off.out.contains("worker_orchestration.enabled  off"), "{off:?}");
    let file = up.file("e.yaml", "name: e\nsteps: [{ id: a, task: echo, with: { x: 1 } }]\n");
    assert_eq!(up.run(&["workflow", "apply", &file]).code, 0);
    let run = up.run(&["run", "start", "e", "-o", "json"]).json()["run_id"].as_str().unwrap().to_owned();
    let why = says(&up, &["run", "why", &run], "worker_orchestration.enabled is off");
    assert!(why.out.contains("no worker inside a server"), "{why:?}");
    let log = up.path("far.log");
    let logged = || std::fs::read_to_string(&log).unwrap();
    assert!(eventually(|| logged().contains("worker_orchestration.enabled is off")), "{}", logged());
    assert_eq!(up.run(&["flag", "set", "worker_orchestration.enabled", "true"]).code, 0);
    let waited = up.run(&["run", "watch", &run, "--plain"]);
    assert_eq!(waited.code, 0, "{waited:?}");
}

#[test]
fn a_backout_cancels_what_is_in_flight_and_sends_the_workers_away() {
    let up = Up::start(SHORT);
    let slow = up.file("slow.sh", "#!/bin/sh\nsleep 60\necho '{}'\n");
    assert_eq!(up.shell(&format!("chmod +x {slow}")).code, 0);
    let mut worker = Worker::start(&up, "far", &format!("slow={slow}"));
    let file = up.file("s.yaml", "name: s\nsteps: [{ id: a, task: slow }]\n");
    assert_eq!(up.run(&["workflow", "apply", &file]).code, 0);
    let waits = up.file("w.yaml", "name: w\nsteps: [{ id: a, wait: { signal: never } }]\n");
    assert_eq!(up.run(&["workflow", "apply", &waits]).code, 0);
    let start = |workflow: &str| up.run(&["run", "start", workflow, "-o", "json"]).json()["run_id"].clone();
    let runs = [start("s"), start("w")].map(|run| run.as_str().unwrap().to_owned());
    says(&up, &["worker", "list"], "1/");

    let unsure = up.run(&["backout"]);
    assert!(unsure.code == 64 || unsure.code == 2, "{unsure:?}");
    assert!(unsure.err.contains("--yes"), "{unsure:?}");
    let done = up.run(&["backout", "--yes", "--wait", "60"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.out.contains("2 runs canceled (backout), 1 worker gone"), "{done:?}");
    assert!(done.err.contains("worker_orchestration.enabled is off"), "{done:?}");
    assert!(worker.ends(), "the worker leaves");
    for run in &runs {
        let shown = up.run(&["run", "show", run, "-o", "json"]).json();
        let run = if shown["run"].is_object() { &shown["run"] } else { &shown };
        assert_eq!((&run["state"], &run["reason"]), (&"canceled".into(), &"backout".into()), "{shown}");
    }
    assert!(!up.run(&["worker", "list", "--all"]).out.contains("far"));

    let again = up.run(&["backout", "--yes", "-o", "json"]);
    assert_eq!((again.code, &again.json()["runs_canceled"]), (0, &0.into()), "{again:?}");
}

#[test]
fn a_backout_ends_with_a_failure_as_long_as_an_effect_is_in_doubt() {
    let up = Up::start(SHORT);
    // Whether it did its work is not known.
    let fails = up.file("fails.sh", "#!/bin/sh\nexit 1\n");
    assert_eq!(up.shell(&format!("chmod +x {fails}")).code, 0);
    let _worker = Worker::start(&up, "far", &format!("pay={fails}"));
    let file = up.file("p.yaml", "name: p\nsteps: [{ id: pay, task: pay, effect: unsafe }]\n");
    assert_eq!(up.run(&["workflow", "apply", &file]).code, 0);
    let run = up.run(&["run", "start", "p", "-o", "json"]).json()["run_id"].as_str().unwrap().to_owned();
    says(&up, &["run", "why", &run], "its outcome is unknown");

    let resolve = format!("interlock run resolve {run} --step pay --outcome happened --reason WHY");
    let done = up.run(&["backout", "--yes", "--wait", "60"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.out.contains("1 run canceled (backout), 1 worker gone"), "{done:?}");
    assert!(done.out.contains("in doubt: 1 effect of canceled runs.") && done.out.contains(&resolve), "{done:?}");
    let again = up.run(&["backout", "--yes", "-o", "json"]);
    let left = again.json()["effects_in_doubt"].clone();
    assert_eq!(
        (again.code, &left["count"], &left["listed"][0]["run_id"]),
        (1, &1.into(), &run.as_str().into()),
        "{again:?}"
    );

    let said =
        ["run", "resolve", run.as_str(), "--step", "pay", "--outcome", "happened", "--reason", "the bank says so"];
    let resolved = up.run(&said);
    assert_eq!(resolved.code, 0, "{resolved:?}");
    let settled = up.run(&["backout", "--yes"]);
    assert_eq!(settled.code, 0, "{settled:?}");
}
