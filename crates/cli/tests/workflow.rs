//! `interlock workflow` as a person uses it, and the example workers against a real server.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn interlock_command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_interlock"));
    command.args(args).current_dir(root()).env("NO_COLOR", "1");
    command
}

fn interlock(args: &[&str]) -> Output {
    interlock_command(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn ok(args: &[&str]) -> String {
    let output = interlock(args);
    assert!(output.status.success(), "{args:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn the_examples_are_valid_and_keep_to_their_scenarios() {
    let said = ok(&[
        "workflow",
        "validate",
        "examples/order/order.yaml",
        "examples/workers/greet.yaml",
        "examples/workers/hello.yaml",
    ]);
    assert!(said.contains("`order` is valid, 7 steps") && said.contains("`hello` is valid"), "{said}");
    let said = ok(&["workflow", "test", "examples/order/order.test.yaml"]);
    assert!(said.contains("4 passed, 0 failed"), "{said}");
    let drawn = ok(&["workflow", "graph", "examples/order/order.yaml"]);
    assert!(drawn.contains("wait for carrier.picked_up, at most 10m"), "{drawn}");
    let mermaid = ok(&["workflow", "graph", "--format", "mermaid", "examples/order/order.yaml"]);
    assert!(mermaid.starts_with("flowchart TD") && mermaid.contains("-. rollback .->"), "{mermaid}");
    let plan = ok(&["workflow", "plan", "examples/order/order.yaml", "-i", "order=o-1", "-i", "cents=100"]);
    assert!(plan.contains("gift_card  is skipped") && plan.contains("undone by task demo.refund"), "{plan}");
}

#[test]
fn what_apply_would_refuse_is_not_valid() {
    let runbook = ok(&["workflow", "validate", "crates/workflow/tests/files/restart-primary-db.yaml"]);
    assert!(runbook.contains("is valid, 4 steps"), "{runbook}");
    let file = std::env::temp_dir().join(format!("interlock-task-{}.yaml", std::process::id()));
    std::fs::write(&file, "name: w\nsteps:\n  - { id: a, task: t, workdir: keep }\n").unwrap();
    let output = interlock(&["workflow", "validate", file.to_str().unwrap()]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("`workdir`") && said.contains("error["), "{said}");
    assert!(!said.contains("is valid"), "{said}");
    std::fs::remove_file(file).unwrap();
}

#[test]
fn what_is_wrong_is_shown_and_ends_with_1() {
    let folder = std::env::temp_dir().join(format!("interlock-workflow-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("broken.yaml");
    std::fs::write(&file, "name: x\nsteps:\n  - id: a\n    taks: b\n").unwrap();
    let output = interlock(&["workflow", "validate", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(said.contains("broken.yaml:4:5") && said.contains("did you mean `task`?"), "{said}");
    let json = interlock(&["workflow", "validate", "-o", "json", file.to_str().unwrap()]);
    let found: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        (found[0]["valid"].as_bool(), found[0]["diagnostics"][1]["start"]["line"].as_u64()),
        (Some(false), Some(4))
    );

    std::fs::write(folder.join("w.yaml"), "name: w\nsteps:\n  - { id: a, task: b }\n").unwrap();
    let scenario = folder.join("w.test.yaml");
    let wrong = "workflow: w.yaml\nscenarios:\n  - name: it fails\n    steps: { a: { output: 1 } }\n    expect: { state: failed }\n";
    std::fs::write(&scenario, wrong).unwrap();
    let output = interlock(&["workflow", "test", scenario.to_str().unwrap()]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the run is succeeded, not failed") && said.contains("a runs"), "{said}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A server on any port, which goes away with the test.
struct Server {
    child: Child,
    url: String,
    folder: PathBuf,
}

impl Server {
    fn start(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("interlock-example-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let store = format!("sqlite:{}", folder.join("store.db").display());
        let mut child = Command::new(env!("CARGO_BIN_EXE_interlock"))
            .args(["server", "--store", &store, "--listen", "127.0.0.1:0", "--data", folder.to_str().unwrap()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines
            .by_ref()
            .map(Result::unwrap)
            .find_map(|line| line.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned))
            .expect("the server says where it listens");
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url: url.trim_end_matches(['.', ',']).to_owned(), folder }
    }

    fn key_file(&self) -> PathBuf {
        self.folder.join("local.key")
    }

    fn try_ask(&self, args: &[&str]) -> Output {
        let mut command = interlock_command(args);
        command.env("INTERLOCK_SERVER", &self.url).env("INTERLOCK_API_KEY_FILE", self.key_file()).output().unwrap()
    }

    /// A call of the API that has no command of its own.
    fn curl(&self, path: &str, body: Option<&str>) -> String {
        let headers = self.folder.join("curl-headers");
        let key = std::fs::read_to_string(self.key_file()).unwrap();
        let lines = format!("authorization: Bearer {}\ncontent-type: application/json\n", key.trim());
        std::fs::write(&headers, lines).unwrap();
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--fail-with-body", "--header", &format!("@{}", headers.display())]);
        if let Some(body) = body {
            curl.args(["--data", body]);
        }
        let output = curl.arg(format!("{}/api/v1/{path}", self.url)).output().unwrap();
        assert!(output.status.success(), "{path}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    fn end_session(&self, session: &str) {
        self.curl("agent/unregister", Some(&format!(r#"{{"session":"{session}"}}"#)));
    }

    fn ask(&self, args: &[&str]) -> String {
        let output = self.try_ask(args);
        assert!(output.status.success(), "{args:?}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Applies the example's workflow, starts a run, lets the worker do it, and looks at what came of it.
fn an_example_worker_does_the_work(name: &str, mut program: Command) {
    let server = Server::start(name);
    server.ask(&["workflow", "apply", "examples/workers/greet.yaml"]);
    let again = server.ask(&["workflow", "apply", "examples/workers/greet.yaml"]);
    assert!(again.contains("unchanged"), "{again}");
    assert!(server.ask(&["workflow", "list"]).contains("greet"));
    let greetings = server.folder.join("greetings.txt");
    let mut worker = program
        .current_dir(root())
        .env("INTERLOCK_SERVER", &server.url)
        .env("INTERLOCK_API_KEY_FILE", server.key_file())
        .env("GREETINGS_FILE", &greetings)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(worker.stdout.take().unwrap()).lines().map(Result::unwrap);
    // The session ends behind the worker's back: it notices, and registers again.
    let session = said.find_map(|line| line.strip_prefix("registered ").map(str::to_owned)).expect("it registers");
    server.end_session(&session);
    let again = said.find_map(|line| line.strip_prefix("registered ").map(str::to_owned)).expect("it registers again");
    assert_ne!(session, again);
    std::thread::spawn(move || said.for_each(drop));
    let start = ["run", "start", "greet", "-i", "name=Ada", "-i", "fail_first=true", "--wait", "--timeout", "300s"];
    let started = server.try_ask(&start);
    // Told to stop, it ends what it has begun and gives its session back.
    let told = Command::new("kill").args(["-TERM", &worker.id().to_string()]).status().unwrap();
    assert!(told.success() && worker.wait().unwrap().success());
    assert!(started.status.success(), "{}", text(&started.stderr));
    let shown: serde_json::Value = serde_json::from_str(&server.ask(&["run", "show", "latest", "-o", "json"])).unwrap();
    assert_eq!(shown["state"], "succeeded", "{shown:#}");
    assert_eq!(shown["output"]["text"], "HELLO, ADA");
    assert_eq!(shown["steps"][0]["attempt"], 2, "the first attempt failed, as it was asked to");
    // What it did outside was announced before, and told after.
    assert_eq!(std::fs::read_to_string(greetings).unwrap(), "HELLO, ADA\n");
    let run = shown["run_id"].as_str().unwrap();
    let receipts = server.curl(&format!("runs/{run}/receipts"), None);
    let receipts: serde_json::Value = serde_json::from_str(&receipts).unwrap();
    let kept = &receipts["receipts"][0];
    assert_eq!((&kept["state"], &kept["effect"]), (&"succeeded".into(), &"unsafe".into()), "{receipts:#}");
    assert!(kept["key"].as_str().unwrap().starts_with("file:append#"), "{receipts:#}");
}

#[test]
fn the_worker_in_shell_does_the_work() {
    an_example_worker_does_the_work("shell", Command::new("examples/workers/shell.sh"));
}

/// The one that fits a page: for a task whose repeat does no harm.
#[test]
fn the_smallest_worker_does_the_work_and_registers_again() {
    const LINES_MAX: usize = 40;
    let lines = std::fs::read_to_string(root().join("examples/workers/smallest.sh")).unwrap().lines().count();
    assert!(lines <= LINES_MAX, "{lines} lines");
    let server = Server::start("smallest");
    server.ask(&["workflow", "apply", "examples/workers/hello.yaml"]);
    let mut worker = Command::new("examples/workers/smallest.sh")
        .current_dir(root())
        .env("INTERLOCK_SERVER", &server.url)
        .env("INTERLOCK_API_KEY_FILE", server.key_file())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(worker.stdout.take().unwrap()).lines().map(Result::unwrap);
    let session = said.find_map(|line| line.strip_prefix("registered ").map(str::to_owned)).expect("it registers");
    server.end_session(&session);
    let again = said.find_map(|line| line.strip_prefix("registered ").map(str::to_owned)).expect("it registers again");
    assert_ne!(session, again);
    std::thread::spawn(move || said.for_each(drop));
    let started = server.try_ask(&["run", "start", "hello", "-i", "name=Ada", "--wait", "--timeout", "60s"]);
    let told = Command::new("kill").args(["-TERM", &worker.id().to_string()]).status().unwrap();
    assert!(told.success() && worker.wait().unwrap().success());
    assert!(started.status.success(), "{}", text(&started.stderr));
    let shown: serde_json::Value = serde_json::from_str(&server.ask(&["run", "show", "latest", "-o", "json"])).unwrap();
    assert_eq!((&shown["state"], &shown["output"]["text"]), (&"succeeded".into(), &"Hello, Ada".into()), "{shown:#}");
}

#[test]
fn the_worker_in_python_does_the_work() {
    let mut python = Command::new("python3");
    python.arg("examples/workers/python.py");
    an_example_worker_does_the_work("python", python);
}
