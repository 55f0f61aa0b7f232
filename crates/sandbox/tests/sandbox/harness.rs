//! A sandbox whose shim and commands are the probe.

use interlock_sandbox::{
    CommandResult, CommandRules, PermittedCommand, Profile, Request, Running, Sandbox, SandboxOptions, Stream,
};

pub const PROBE: &str = env!("CARGO_BIN_EXE_sandbox-probe");

pub fn options() -> SandboxOptions {
    SandboxOptions {
        shim: Some(PROBE.into()),
        cgroup: std::env::var("INTERLOCK_TEST_CGROUP").ok(),
        ..SandboxOptions::default()
    }
}

pub async fn sandbox() -> Sandbox {
    Sandbox::open(options()).await.expect("the sandbox opens")
}

pub fn probe(profile: Profile, arguments: &[&str]) -> Request {
    let argv = std::iter::once(PROBE).chain(arguments.iter().copied()).map(str::to_owned).collect();
    Request::new(permit(profile, argv)).read_only(PROBE)
}

pub fn permit(profile: Profile, argv: Vec<String>) -> PermittedCommand {
    let mut rules = CommandRules::default();
    rules.allow.push(format!("{} {{args...}}", argv[0]).parse().expect("a template"));
    rules.allow_inline.push(format!("{} {{args...}}", argv[0]).parse().expect("a template"));
    rules.permit(profile, argv).expect("the command is permitted")
}

/// Everything that a command printed, and its end.
#[derive(Debug)]
pub struct CommandOutput {
    pub stdout: String,
    pub stderr: String,
    pub status: String,
    pub ended: CommandResult,
}

pub async fn told(mut running: Running) -> CommandOutput {
    let (mut stdout, mut stderr, mut status) = (Vec::new(), Vec::new(), Vec::new());
    let mut next = 0;
    while let Some(chunk) = running.next().await {
        assert_eq!(chunk.seq, next, "numbers are dense");
        next += 1;
        match chunk.stream {
            Stream::Stdout => stdout.extend(chunk.bytes),
            Stream::Stderr => stderr.extend(chunk.bytes),
            Stream::Status => status.extend(chunk.bytes),
        }
    }
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is text");
    CommandOutput { stdout: text(stdout), stderr: text(stderr), status: text(status), ended: running.end().await }
}
