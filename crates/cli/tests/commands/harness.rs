//! `interlock up` on a free port with a folder of its own, and the commands that a user would type beside it.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_interlock");

pub struct Up {
    server: Child,
    folder: PathBuf,
    /// What it printed before it was ready.
    lines: Vec<String>,
}

#[derive(Debug)]
pub struct Output {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Output {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Up {
    pub fn start(more: &[&str]) -> Self {
        Self::start_in(Self::new_folder(), more)
    }

    /// A folder for a server that needs files before it starts.
    pub fn new_folder() -> PathBuf {
        static FOLDERS: AtomicU32 = AtomicU32::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("interlock-commands-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// The folder goes with the server.
    pub fn start_in(folder: PathBuf, more: &[&str]) -> Self {
        let (server, lines) = serve(&folder, more);
        Self { server, folder, lines }
    }

    /// A command that comes before the server.
    pub fn run_in(folder: &std::path::Path, arguments: &[&str]) -> Output {
        output(quiet(folder).args(arguments), "")
    }

    /// Ends the server as a power cut would, and starts it again on the same folder.
    pub fn restart(&mut self, more: &[&str]) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
        (self.server, self.lines) = serve(&self.folder, more);
    }

    /// The line that holds this text, as a user would copy it.
    pub fn printed(&self, part: &str) -> String {
        let line = self.lines.iter().find(|line| line.contains(part));
        line.unwrap_or_else(|| panic!("no `{part}` in {:#?}", self.lines)).trim().to_owned()
    }

    pub fn server(&self) -> String {
        let line = self.printed("Interlock is up: ");
        line.trim_start_matches("Interlock is up: ").split([',', ' ']).next().unwrap().to_owned()
    }

    pub fn key(&self) -> String {
        std::fs::read_to_string(self.folder.join("data/local.key")).unwrap()
    }

    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// A file that holds a secret: nobody else may read it.
    pub fn secret_file(&self, name: &str, text: &str) -> String {
        let path = self.file(name, text);
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        path
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The program as a user would start it, not started yet.
    pub fn command(&self) -> Command {
        quiet(&self.folder)
    }

    pub fn shell(&self, line: &str) -> Output {
        let mut command = Command::new("bash");
        let quiet = quiet(&self.folder);
        for (name, value) in quiet.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        output(command.args(["-c", line]), "")
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(&[], arguments)
    }

    pub fn run_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
        output(quiet(&self.folder).envs(variables.iter().copied()).args(arguments), "")
    }

    pub fn run_fed(&self, arguments: &[&str], input: &str) -> Output {
        output(quiet(&self.folder).args(arguments), input)
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // It may have ended already; the folder goes in any case.
        let _ = self.server.kill();
        let _ = self.server.wait();
        // What the server had started may write its last into it.
        for _ in 0..20 {
            if std::fs::remove_dir_all(&self.folder).is_ok() {
                return;
            }
            pause(Duration::from_millis(50));
        }
    }
}

/// A server that is ready, and what it has printed.
fn serve(folder: &std::path::Path, more: &[&str]) -> (Child, Vec<String>) {
    let mut command = quiet(folder);
    command.args(["up", "--listen", "127.0.0.1:0", "--data"]).arg(folder.join("data")).args(more);
    let mut server = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut lines = Vec::new();
    for line in output.by_ref() {
        lines.push(line.unwrap());
        if lines.last().unwrap().contains("Ctrl-C") {
            break;
        }
    }
    // Whatever else it prints is read, so that it does not block on a full pipe.
    std::thread::spawn(move || output.for_each(drop));
    (server, lines)
}

/// The program in a home of its own.
fn quiet(folder: &std::path::Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.env("INTERLOCK_CONFIG_DIR", folder.join("config")).env("HOME", folder).stdin(Stdio::null());
    // Sentences stay whole, whatever the temporary folder is called.
    command.env("COLUMNS", "1000");
    command
}

fn output(command: &mut Command, input: &str) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // A command that does not read its input is none the worse for it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Output { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

/// What other processes do by themselves, within two minutes: on a busy machine a worker proves its sandboxes for long.
pub fn eventually(is_so: impl Fn() -> bool) -> bool {
    let until = now() + Duration::from_mins(2);
    while now() < until {
        if is_so() {
            return true;
        }
        pause(Duration::from_millis(100));
    }
    false
}

#[expect(clippy::disallowed_methods, reason = "how soon other processes come to something is what is asked")]
pub fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "other processes go on by themselves, without a notice")]
pub fn pause(span: Duration) {
    std::thread::sleep(span);
}
