//! `interlock worker` as whoever starts it sees it, and where a server listens.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::rig::Up;

/// Reads until a line says this; the whole text comes along.
fn until(output: impl std::io::Read, says: &str) -> String {
    let mut text = String::new();
    let mut output = BufReader::new(output);
    while !text.contains(says) {
        assert!(output.read_line(&mut text).unwrap() > 0, "it ended without `{says}`: {text}");
    }
    text
}

struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
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
        Ending(child)
    };
    let mut worker = start(&server);
    let said = until(worker.0.stderr.take().unwrap(), "\n");
    assert!(said.contains(&format!("connected to {server}; queues: default; tasks: echo, say")), "{said}");
    let file = up.file("e.yaml", "name: e\nsteps: [{ id: a, task: echo, with: { x: 1 } }]\n");
    assert_eq!(up.run(&["workflow", "apply", &file]).code, 0);
    let done = up.run(&["run", "start", "e", "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");

    let mut alone = start("http://127.0.0.1:9");
    let said = until(alone.0.stderr.take().unwrap(), "no server answers");
    assert!(said.contains("http://127.0.0.1:9") && said.contains("interlock up"), "{said}");
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
}

#[test]
fn a_server_that_others_can_reach_says_so_and_is_found_here() {
    let up = Up::start(&["--no-demo"]);
    let data = up.path("open").display().to_string();
    let bad = up.run(&["server", "--listen", "8420"]);
    assert_eq!(bad.code, 2, "{bad:?}");
    assert!(bad.err.contains("127.0.0.1:8420"), "{bad:?}");
    let server = up.command().args(["server", "--data", &data, "--listen", "0.0.0.0:0"]).stdout(Stdio::piped()).spawn();
    let mut server = Ending(server.unwrap());
    let said = until(server.0.stdout.take().unwrap(), "/setup?token=");
    assert!(said.contains("listens on http://127.0.0.1:") && said.contains("other machines can reach it"), "{said}");
    let link = said.lines().find(|line| line.contains("/setup?token=")).unwrap();
    assert!(link.contains("http://127.0.0.1:"), "{link}");
}
