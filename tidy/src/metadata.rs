//! What cargo knows about the workspace and the crates it uses.

use std::env;
use std::process::Command;

use serde_json::Value;

use crate::tree::repository_root;

/// Our own manifests, read by cargo.
///
/// # Panics
/// When cargo cannot read them: then there is nothing to check.
#[must_use]
pub fn manifests() -> Value {
    metadata(&["--no-deps"])
}

/// The whole graph as it is built on this machine, as the lock file has it.
///
/// # Panics
/// When cargo cannot resolve it: then there is nothing to check.
#[must_use]
pub fn graph() -> Value {
    let host = run(Command::new(env::var("RUSTC").unwrap_or("rustc".to_owned())).arg("-vV"));
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc names its host");
    metadata(&["--locked", "--filter-platform", host])
}

fn metadata(arguments: &[&str]) -> Value {
    let json = run(Command::new(env::var("CARGO").unwrap_or("cargo".to_owned()))
        .args(["metadata", "--format-version", "1"])
        .args(arguments)
        .current_dir(repository_root()));
    serde_json::from_str(&json).expect("cargo metadata answers in JSON")
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo and rustc write UTF-8")
}
