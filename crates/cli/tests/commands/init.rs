//! `interlock init` as a newcomer uses it: in every language that it offers, each line that it prints works as printed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::harness::{Output, Up};

/// A terminal in a folder, in which the program is found by its name.
struct Terminal<'a> {
    up: &'a Up,
    folder: PathBuf,
}

impl Terminal<'_> {
    fn types(&self, line: &str) -> Output {
        let programs = Path::new(env!("CARGO_BIN_EXE_interlock")).parent().unwrap();
        let (folder, programs) = (self.folder.display(), programs.display());
        self.up.shell(&format!("cd '{folder}' && export PATH='{programs}':\"$PATH\" && {line}"))
    }

    /// A line that ends with `&`.
    fn leaves_running(&self, line: &str) -> Background {
        let log = std::fs::File::create(self.up.path("background.log")).unwrap();
        let mut command = self.up.command();
        command.current_dir(&self.folder).args(line.split_whitespace().skip(1));
        Background(command.stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }
}

struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The lines below `Try it:`, without the remarks behind them.
fn suggested(out: &str) -> Vec<String> {
    let lines = out.lines().skip_while(|line| *line != "Try it:").skip(1);
    lines.map(|line| line.split('#').next().unwrap_or_default().trim().to_owned()).collect()
}

fn a_newcomers_first_run(language: &str) {
    let up = Up::start(&["--no-demo"]);
    let folder = up.path("projects");
    std::fs::create_dir_all(&folder).unwrap();
    let mut terminal = Terminal { up: &up, folder };
    let init = format!("interlock init send-letters --language {language}");
    let made = terminal.types(&init);
    assert_eq!(made.code, 0, "{made:?}");
    let again = terminal.types(&init);
    assert!(again.code != 0 && again.err.contains("is there already"), "nothing is overwritten: {again:?}");

    let lines = suggested(&made.out);
    let (first, lines) = lines.split_first().unwrap();
    assert_eq!(first, "cd send-letters");
    terminal.folder.push("send-letters");
    let readme = std::fs::read_to_string(terminal.folder.join("README.md")).unwrap();
    let mut workers = Vec::new();
    let mut tested = false;
    for line in lines {
        assert!(readme.contains(line.as_str()), "the project's README says the same: {line}");
        match line.strip_suffix('&') {
            Some(line) => workers.push(terminal.leaves_running(line)),
            // It is up already, on a port of its own.
            None if line.starts_with("interlock up") => assert_eq!(line, "interlock up --no-demo"),
            None => {
                let log = std::fs::read_to_string(up.path("background.log")).unwrap_or_default();
                let done = terminal.types(line);
                assert_eq!(done.code, 0, "{line}: {done:?}; the worker says: {log}");
                if line.contains("workflow test") {
                    assert!(done.out.contains("2 passed, 0 failed"), "{done:?}");
                    tested = true;
                }
            }
        }
    }
    assert!(tested && workers.len() == 1, "{lines:?}");
    let shown = terminal.types("interlock run show Ada -o json");
    assert_eq!(shown.json()["state"], "succeeded", "{shown:?}");
    assert!(shown.out.contains("This letter was written by send-letters."), "{shown:?}");
}

#[test]
fn a_newcomers_first_run_in_shell() {
    a_newcomers_first_run("shell");
}

#[test]
fn a_newcomers_first_run_in_python() {
    a_newcomers_first_run("python");
}

#[test]
fn a_newcomers_first_run_in_node() {
    a_newcomers_first_run("node");
}

/// A language that is added to `init` gets a test here.
#[test]
fn every_language_that_is_offered_is_tried() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_interlock"));
    let refused = command.args(["init", "x", "--language", "cobol"]).output().unwrap();
    let says = String::from_utf8_lossy(&refused.stderr);
    assert!(says.contains("[possible values: shell, python, node]"), "{says}");
}
