//! The description of the API makes working clients: one in Python and one in TypeScript are generated from it, installed, and
//! start, watch and approve a run on a real server.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_interlock");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Where `scripts/need openapi-clients` has put the generators.
fn tools() -> PathBuf {
    let folder = std::env::var("INTERLOCK_TEST_CLIENTS")
        .expect("INTERLOCK_TEST_CLIENTS is not set: run `make test`, or scripts/need openapi-clients");
    PathBuf::from(folder)
}

struct TestServer {
    child: Child,
    folder: PathBuf,
    url: String,
}

impl TestServer {
    fn start(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("interlock-clients-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let mut child = Command::new(PROGRAM)
            .args(["up", "--no-demo", "--listen", "127.0.0.1:0", "--data"])
            .arg(folder.join("data"))
            .env("HOME", &folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("http://")).expect("a server that says where it is");
        let url = line[line.find("http://").unwrap()..].split([',', ' ']).next().unwrap().to_owned();
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, folder, url }
    }

    /// Runs a program that uses a client, which ends well and says so.
    fn uses(&self, mut program: Command) {
        let key = std::fs::read_to_string(self.folder.join("data/local.key")).unwrap();
        let output = program.env("INTERLOCK_URL", &self.url).env("INTERLOCK_KEY", key.trim()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.contains("the run has succeeded"), "{output:?}");
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {said}");
    said
}

fn description() -> PathBuf {
    Path::new(ROOT).join("docs/reference/openapi.json")
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

#[test]
fn a_python_client_starts_watches_and_approves_a_run() {
    let (tools, server) = (tools(), TestServer::start("python"));
    let (project, installed) = (server.folder.join("client"), server.folder.join("installed"));
    let mut generate = Command::new(tools.join("python/bin/openapi-python-client"));
    generate
        .args(["generate", "--meta", "setup", "--path"])
        .arg(description())
        .arg("--output-path")
        .arg(&project)
        .arg("--config")
        .arg(script("python.yaml"));
    let said = run(&mut generate);
    for trouble in ["Unable to", "Cannot parse", "WARNING", "ERROR"] {
        assert!(!said.contains(trouble), "the generator did not understand everything:\n{said}");
    }
    // What it needs is there already, so nothing is asked of a registry.
    let offline = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"];
    run(Command::new(tools.join("python/bin/python"))
        .args(["-m", "pip", "install", "--quiet"])
        .args(offline)
        .arg("--target")
        .arg(&installed)
        .arg(&project));
    let mut program = Command::new(tools.join("python/bin/python"));
    program.arg(script("ship.py")).env("PYTHONPATH", &installed);
    server.uses(program);
}

#[test]
fn a_typescript_client_starts_watches_and_approves_a_run() {
    let (tools, server) = (tools().join("typescript"), TestServer::start("typescript"));
    let made = server.folder.join("client");
    std::fs::create_dir_all(&made).unwrap();
    std::os::unix::fs::symlink(tools.join("node_modules"), made.join("node_modules")).unwrap();
    run(Command::new(tools.join("node_modules/.bin/openapi-typescript"))
        .arg(description())
        .arg("-o")
        .arg(made.join("api.d.ts")));
    for file in ["ship.ts", "tsconfig.json", "package.json"] {
        std::fs::copy(script(file), made.join(file)).unwrap();
    }
    // The compiler holds every call against the description.
    run(Command::new(tools.join("node_modules/.bin/tsc")).arg("-p").arg(&made));
    let mut program = Command::new("node");
    program.arg(made.join("ship.js"));
    server.uses(program);
}
