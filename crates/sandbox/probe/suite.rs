//! The escape suite of one identity: every attempt outside, then inside of every profile.

use std::collections::BTreeMap;
use std::io::{self, Write};

use interlock_sandbox::{CommandRules, Outcome, Profile, Request, Sandbox, SandboxOptions, Stream, UNPRIVILEGED};
use serde::{Deserialize, Serialize};

use crate::attempts::{self, Result as Tried};
use crate::ground::{Ground, LaidGround};

/// What the test reads: names of attempts that were tried, and every one that did not go as it must.
#[derive(Debug, Serialize, Deserialize)]
pub struct Verdict {
    pub profile: String,
    /// Succeeded outside and failed inside.
    pub held: Vec<String>,
    /// Failed outside, so that they prove nothing.
    pub proved_nothing: Vec<Tried>,
    /// Succeeded inside.
    pub escaped: Vec<Tried>,
    /// Not tried inside, or without a result.
    pub missing: Vec<String>,
}

pub fn run(base: &str) {
    let is_root = rustix::process::geteuid().is_root();
    let laid = LaidGround::lay(base, if is_root { UNPRIVILEGED.uid } else { 0 }).expect("the ground is laid");
    // The ground's attempts change it: each round finds it as it was.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build().expect("a runtime");
    let mut verdicts = Vec::new();
    let sandbox = runtime.block_on(open());
    for profile in Profile::ALL {
        let ground = with_limits(&laid.ground, *profile);
        let outside = outside(&ground, is_root);
        restore(&ground);
        let inside = runtime.block_on(inside(
            &sandbox,
            *profile,
            &Ground { holder: 1, scratch: "/tmp".to_owned(), ..ground.clone() },
        ));
        restore(&ground);
        verdicts.push(judge(*profile, is_root, &outside, &inside));
    }
    let text = serde_json::to_string(&verdicts).expect("verdicts are JSON");
    writeln!(io::stdout(), "{text}").expect("stdout is read");
}

async fn open() -> Sandbox {
    let options = SandboxOptions { cgroup: std::env::var("INTERLOCK_TEST_CGROUP").ok(), ..SandboxOptions::default() };
    let sandbox = Sandbox::open(options).await.expect("a sandbox");
    for profile in Profile::ALL {
        sandbox.offers(*profile).expect("the host has what the profile needs");
    }
    sandbox
}

fn with_limits(ground: &Ground, profile: Profile) -> Ground {
    let limits = profile.spec().limits;
    Ground {
        pids: limits.pids as usize,
        memory_bytes: limits.memory_bytes as usize,
        tmp_bytes: limits.tmp_bytes as usize,
        open_files: limits.open_files as usize,
        ..ground.clone()
    }
}

fn outside(ground: &Ground, is_root: bool) -> BTreeMap<String, Tried> {
    let possible = attempts::all().filter(|attempt| attempt.is_possible(is_root));
    possible.map(|attempt| (attempt.name.to_owned(), attempts::try_one(attempt, ground))).collect()
}

/// What the attempts make in the folders goes again.
fn restore(ground: &Ground) {
    std::fs::remove_dir_all(&ground.scratch).expect("the scratch folder goes");
    std::fs::create_dir(&ground.scratch).expect("the scratch folder is made anew");
    for folder in [&ground.shown, &ground.hidden] {
        for name in ["new", "hard", "soft", "pipe", "listener", "renamed", "removable"] {
            let _ = std::fs::remove_file(format!("{folder}/{name}"));
        }
        let _ = std::fs::remove_dir(format!("{folder}/new-folder"));
        for name in ["file", "other"] {
            let path = format!("{folder}/{name}");
            std::fs::write(&path, "of the host").expect("the ground is restored");
            crate::ground::open_to_all(&path).expect("the ground is restored");
        }
    }
}

async fn inside(sandbox: &Sandbox, profile: Profile, ground: &Ground) -> BTreeMap<String, Tried> {
    let mut rules = CommandRules::default();
    rules.allow.push(format!("{} attempts {{ground}}", ground.probe).parse().expect("a template"));
    let ground_json = serde_json::to_string(ground).expect("the ground is JSON");
    let argv = vec![ground.probe.clone(), "attempts".to_owned(), ground_json];
    let command = rules.permit(profile, argv).expect("the probe is permitted");
    let request = Request::new(command).read_only(&ground.probe).read_only(&ground.set_uid).read_only(&ground.shown);
    let mut running = sandbox.run(request).await.expect("the probe starts");
    let mut said = Vec::new();
    let mut errors = String::new();
    while let Some(chunk) = running.next().await {
        match chunk.stream {
            Stream::Stdout => said.extend(chunk.bytes),
            _ => errors.push_str(&chunk.text()),
        }
    }
    let ended = running.end().await;
    assert_eq!(ended.outcome, Outcome::Exited { code: 0 }, "{profile}: {errors}");
    let lines = String::from_utf8(said).expect("results are text");
    let results = lines.lines().map(|line| serde_json::from_str(line).expect("a result is JSON"));
    results.map(|result: Tried| (result.name.clone(), result)).collect()
}

fn judge(
    profile: Profile,
    is_root: bool,
    outside: &BTreeMap<String, Tried>,
    inside: &BTreeMap<String, Tried>,
) -> Verdict {
    let mut verdict = Verdict {
        profile: profile.name().to_owned(),
        held: Vec::new(),
        proved_nothing: Vec::new(),
        escaped: Vec::new(),
        missing: Vec::new(),
    };
    for attempt in attempts::all() {
        if attempt.allowed_in.contains(&profile.name()) || !attempt.is_possible(is_root) {
            continue;
        }
        let name = attempt.name.to_owned();
        match (outside.get(&name), inside.get(&name)) {
            (Some(outside), _) if !outside.done => verdict.proved_nothing.push(outside.clone()),
            (Some(_), Some(inside)) if inside.how.starts_with("not tried") => verdict.missing.push(name),
            (Some(_), Some(inside)) if inside.done => verdict.escaped.push(inside.clone()),
            (Some(_), Some(_)) => verdict.held.push(name),
            _ => verdict.missing.push(name),
        }
    }
    verdict
}
