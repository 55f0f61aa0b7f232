//! A worker of its own, to be killed, stopped or measured.

use std::io::{self, Write};
use std::time::Duration;

use interlock_sandbox::{CommandRules, Profile, Request, Sandbox, SandboxOptions};

pub fn run(arguments: &[&str]) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build().expect("a runtime");
    match arguments {
        ["hold", mark, watchdog_seconds] => {
            let watchdog = Duration::from_secs(watchdog_seconds.parse().expect("a number"));
            runtime.block_on(hold(mark, watchdog));
        }
        ["measure", profile, count] => {
            runtime.block_on(measure(profile.parse().expect("a profile"), count.parse().expect("a number")));
        }
        ["prove"] => runtime.block_on(async {
            let sandbox = open().await;
            for (control, proof) in sandbox.proofs().iter() {
                println!("{control}: {:?} ({})", proof.standing, proof.evidence);
            }
        }),
        _ => panic!("no such worker: {arguments:?}"),
    }
}

async fn open() -> Sandbox {
    let options = SandboxOptions { cgroup: std::env::var("INTERLOCK_TEST_CGROUP").ok(), ..SandboxOptions::default() };
    Sandbox::open(options).await.expect("a sandbox")
}

/// Runs a command that never ends, and says so.
async fn hold(mark: &str, watchdog: Duration) {
    let sandbox = open().await;
    let probe = std::env::current_exe().expect("a path").to_string_lossy().into_owned();
    let argv = vec![probe.clone(), "tree".to_owned(), mark.to_owned()];
    let command = CommandRules::default().permit(Profile::DevFlex, argv).expect("permitted");
    let request = Request::new(command).read_only(probe).watchdog(watchdog);
    let mut running = sandbox.run(request).await.expect("started");
    let chunk = running.next().await.expect("output");
    write!(io::stdout(), "{}", chunk.text()).expect("stdout is read");
    io::stdout().flush().expect("stdout is read");
    while running.next().await.is_some() {}
}

/// Start to end of `true`, bare and in the sandbox, in turns.
async fn measure(profile: Profile, count: usize) {
    let sandbox = open().await;
    let mut rules = CommandRules::default();
    rules.allow.push("/usr/bin/true".parse().expect("a template"));
    let (mut bare, mut sandboxed) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let began = tokio::time::Instant::now();
        let status = tokio::process::Command::new("/usr/bin/true").status().await.expect("true");
        assert!(status.success());
        bare.push(began.elapsed());
        let command = rules.permit(profile, vec!["/usr/bin/true".to_owned()]).expect("permitted");
        let began = tokio::time::Instant::now();
        let running = sandbox.run(Request::new(command)).await.expect("started");
        // What a caller waits for before its command runs; the end is measured apart.
        let started = began.elapsed();
        running.end().await;
        sandboxed.push((started, began.elapsed()));
    }
    let of = |mut times: Vec<Duration>| {
        times.sort();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
        format!("p50 {:.2} ms, p95 {:.2} ms, p99 {:.2} ms", at(0.5), at(0.95), at(0.99))
    };
    println!("bare, start to end:      {}", of(bare));
    println!("{profile}, to started: {}", of(sandboxed.iter().map(|(started, _)| *started).collect()));
    println!("{profile}, start to end: {}", of(sandboxed.iter().map(|(_, ended)| *ended).collect()));
}
