//! `interlock worker` as the operator who starts it sees it, and where a server listens.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Up, eventually};

/// Reads until a line says this; the whole text comes along.
fn until(output: impl std::io::Read, says: &str) -> String {
    let mut text = String::new();
    let mut output = BufReader::new(output);
    while !text.contains(says) {
        assert!(output.read_line(&mut text).unwrap() > 0, "it ended without `{says}`: {text}");
    }
    text
}

struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The first server stays the one that commands find; the lines that the second one prints find the second.
#[test]
fn a_second_server_prints_lines_that_find_it() {
    let up = Up::start(&["--no-demo"]);
    let data = up.path("second").display().to_string();
    let arguments = ["up", "--no-demo", "--listen", "127.0.0.1:0", "--data", &data];
    let mut second =
        KilledOnDrop(up.command().args(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let said = until(second.0.stdout.take().unwrap(), "Ctrl-C");
    let line = said.lines().find(|line| line.contains(" status ")).unwrap();
    let flags: Vec<&str> = line.split_whitespace().skip(2).collect();
    assert!(flags.contains(&"--server") && flags.contains(&"--api-key-file"), "{line}");
    let found = up.run(&[&["whoami"], &flags[..]].concat());
    assert!(found.code == 0 && found.out.contains(flags[1]) && !found.out.contains(&up.server()), "{found:?}");
    assert!(up.run(&["whoami"]).out.contains(&up.server()));
}

#[test]
fn a_worker_says_what_it_is_connected_to_and_does_the_work() {
    let up = Up::start(&["--no-demo"]);
    let server = up.server();
    let data = up.path("data").display().to_string();
    let start = |server: &str| {
        let arguments =
            ["worker", "--server", server, "--data", &data, "--task", "echo=cat", "--task", "say=/bin/echo"];
        let child = up.command().args(arguments).stderr(Stdio::piped()).spawn().unwrap();
        KilledOnDrop(child)
    };
    let mut worker = start(&server);
    let said = until(worker.0.stderr.take().unwrap(), "\n");
    assert!(said.contains(&format!("connected to {server}; queues: default; tasks: echo, say")), "{said}");
    let file = up.file("e.yaml", "name: e\nsteps: [{ id: a, task: echo, with: { x: 1 } }]\n");
    assert_eq!(up.run(&["workflow", "apply", &file]).code, 0);
    let done = up.run(&["run", "start", "e", "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");

    let taken = up.run(&["server", "--listen", server.trim_start_matches("http://"), "--data", &format!("{data}-2")]);
    assert!(taken.code == 69 && taken.err.contains("another program does already"), "{taken:?}");
    assert_eq!(up.run(&["worker", "--task", "echo"]).code, 2);
    let viewer = up.run(&["key", "create", "v", "--role", "viewer"]).out;
    let viewer = up.secret_file("viewer.key", viewer.trim());
    let arguments = ["worker", "--server", &server, "--api-key-file", &viewer, "--task", "echo=cat"];
    let denied = up.run(&arguments);
    assert!(denied.code == 77 && denied.err.contains("key create NAME --role worker"), "{denied:?}");

    let mut alone = start("http://127.0.0.1:9");
    let said = until(alone.0.stderr.take().unwrap(), "no server answers");
    assert!(said.contains("http://127.0.0.1:9") && said.contains("interlock up"), "{said}");
}

/// What it says as it stops goes to nobody; it stops all the same.
#[test]
fn a_worker_whose_messages_nobody_reads_stops_when_it_is_asked() {
    let up = Up::start(&["--no-demo"]);
    let (server, data) = (up.server(), up.path("data").display().to_string());
    let arguments = ["worker", "--server", &server, "--data", &data, "--task", "echo=cat"];
    let mut worker = KilledOnDrop(up.command().args(arguments).stderr(Stdio::piped()).spawn().unwrap());
    until(worker.0.stderr.take().unwrap(), "connected to");
    kill_process(Pid::from_child(&worker.0), Signal::TERM).unwrap();
    let worker = std::cell::RefCell::new(worker);
    assert!(eventually(|| worker.borrow_mut().0.try_wait().unwrap().is_some()));
    assert!(worker.borrow_mut().0.wait().unwrap().success());
}

/// A worker that was started again has several sessions; its name means all of them.
#[test]
fn a_name_is_forgotten_with_all_its_sessions_that_are_over() {
    let up = Up::start(&["--no-demo"]);
    let (server, data) = (up.server(), up.path("data").display().to_string());
    for _ in 0..2 {
        let arguments = ["worker", "--server", &server, "--data", &data, "--name", "w1", "--task", "echo=cat"];
        let mut worker = KilledOnDrop(up.command().args(arguments).stderr(Stdio::piped()).spawn().unwrap());
        until(worker.0.stderr.take().unwrap(), "connected to");
        kill_process(Pid::from_child(&worker.0), Signal::TERM).unwrap();
        assert!(worker.0.wait().unwrap().success());
    }
    let listed = || up.run(&["worker", "list", "--all"]).out.matches("w1").count();
    assert_eq!(listed(), 2);
    let missing = up.run(&["worker", "forget", "nosuch"]);
    assert!(missing.code != 0 && missing.err.matches("`w1`").count() == 1, "{missing:?}");
    assert_eq!(up.run(&["worker", "forget", "w1"]).code, 0);
    assert_eq!(listed(), 0);
}

#[test]
fn a_worker_is_refused_at_once_what_it_could_not_do_later() {
    let up = Up::start(&["--no-demo"]);
    let worker = |task: &str| up.run(&["worker", "--server", &up.server(), "--task", task]);
    let missing = worker("resize=./nowhere.sh");
    assert_eq!(missing.code, 2, "{missing:?}");
    assert!(missing.err.contains("`resize`") && missing.err.contains("./nowhere.sh"), "{missing:?}");
    let plain = up.file("plain.sh", "#!/bin/sh\n");
    assert!(worker(&format!("a={plain}")).err.contains(&format!("chmod +x {plain}")));
    assert!(worker("a=no-such-program-anywhere").err.contains("on the PATH"));
    let twice = up.run(&["worker", "--task", "a=cat", "--label", "rack=a", "--label", "rack=b"]);
    assert!(twice.code == 2 && twice.err.contains("`rack` is given twice"), "{twice:?}");
}

#[test]
fn a_server_that_others_can_reach_says_so_and_is_found_here() {
    let up = Up::start(&["--no-demo"]);
    let data = up.path("open").display().to_string();
    let bad = up.run(&["server", "--listen", "8420"]);
    assert_eq!(bad.code, 2, "{bad:?}");
    assert!(bad.err.contains("127.0.0.1:8420"), "{bad:?}");
    let open = ["server", "--data", &data, "--listen", "0.0.0.0:0"];
    let refused = up.run(&open);
    assert_eq!(refused.code, 78, "{refused:?}");
    assert!(refused.err.contains("--behind-proxy") && refused.err.contains("worker ca init"), "{refused:?}");
    let server = up.command().args(open).arg("--behind-proxy").stdout(Stdio::piped()).spawn();
    let mut server = KilledOnDrop(server.unwrap());
    let said = until(server.0.stdout.take().unwrap(), "/setup?token=");
    assert!(said.contains("listens on http://127.0.0.1:") && said.contains("other machines can reach it"), "{said}");
    let link = said.lines().find(|line| line.contains("/setup?token=")).unwrap();
    assert!(link.contains("http://127.0.0.1:"), "{link}");
}
