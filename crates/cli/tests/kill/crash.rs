//! A process dies at each failpoint around an effect. A target that honours the key sees exactly one effect; at any other
//! nothing is repeated blindly, and every doubt is visible as `in_doubt`.
//!
//! `INTERLOCK_CRASHES` sets the number of rounds (`make soak` uses thousands; by default every case once).

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use interlock_core::failpoint::Failpoint;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::Client;
use crate::database::Database;
use crate::fleet::{INTERLOCK, Member, Setup};
use crate::target::Target;
use crate::{folder, free_port, number};

/// Workers that die at the same time, each with a queue of its own. With more of them on two cores, some lose leases that
/// they should have kept.
const WORKERS_MAX: usize = 8;
/// What a worker is started for at least.
const ROUNDS_PER_WORKER: usize = 5;
/// The programs that are tasks here.
const TASKS: [&str; 2] = ["keyed", "unkeyed"];
/// Long enough for a busy machine to renew it: a worker that lives and loses it leaves a doubt that no case allows.
const LEASE_MS: u64 = 6_000;
/// Far longer than a lease and a restart.
const PATIENCE: Duration = Duration::from_mins(3);

/// How a step acts on the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    KeyedCall,
    UnsafeCall,
    UnsafeCommand,
    KeyedProgram,
    UnsafeProgram,
}

impl Act {
    const ALL: [Self; 5] =
        [Self::KeyedCall, Self::UnsafeCall, Self::UnsafeCommand, Self::KeyedProgram, Self::UnsafeProgram];

    fn has_key(self) -> bool {
        matches!(self, Self::KeyedCall | Self::KeyedProgram)
    }

    /// A workflow with one such step, whose workers take from this queue.
    fn workflow(self, queue: usize, port: u16) -> String {
        let url = format!("\"http://127.0.0.1:{port}/${{{{ run.id }}}}\"");
        let step = match self {
            Self::KeyedCall => {
                format!("uses: http.request, with: {{ url: {url}, method: POST, idempotency_header: Idempotency-Key }}")
            }
            Self::UnsafeCall => format!("uses: http.request, with: {{ url: {url}, method: POST }}"),
            Self::UnsafeCommand => format!("run: [/usr/bin/curl, -sS, -X, POST, {url}]"),
            Self::KeyedProgram => "task: keyed, effect: keyed".to_owned(),
            Self::UnsafeProgram => "task: unkeyed, effect: unsafe".to_owned(),
        };
        format!(
            "name: {}\nprofile: dev-flex\nqueue: {}\nsteps:\n\
             - {{ id: act, {step}, retry: {{ max_attempts: 50, backoff: 50ms }} }}\n",
            self.name(queue),
            queue_name(queue)
        )
    }

    fn name(self, queue: usize) -> String {
        format!("{self:?}-{queue}").to_lowercase()
    }
}

fn queue_name(queue: usize) -> String {
    format!("crash-{queue}")
}

/// Which steps come by a failpoint.
fn acts(failpoint: Failpoint) -> &'static [Act] {
    match failpoint.as_str().split_once('-').unwrap().0 {
        "worker" | "connector" | "server" => &[Act::KeyedCall, Act::UnsafeCall],
        "command" => &[Act::UnsafeCommand],
        "program" => &[Act::KeyedProgram, Act::UnsafeProgram],
        other => panic!("no case reaches the failpoints of the {other}"),
    }
}

#[derive(Debug, Clone, Copy)]
struct Case {
    failpoint: Failpoint,
    act: Act,
}

fn cases(of_server: bool) -> Vec<Case> {
    let all = Failpoint::ALL.iter().filter(|failpoint| failpoint.as_str().starts_with("server-") == of_server);
    all.flat_map(|failpoint| acts(*failpoint).iter().map(|act| Case { failpoint: *failpoint, act: *act })).collect()
}

/// What is found once the run has gone on after the crash.
#[derive(Debug, PartialEq, Eq)]
struct CaseOutcome {
    in_doubt: bool,
    effects: usize,
}

impl Case {
    /// By the order of things alone: what was committed when the process died, and what had been sent.
    fn allows(self, found: &CaseOutcome) -> bool {
        let done = *found == CaseOutcome { in_doubt: false, effects: 1 };
        let doubt = |effects| *found == CaseOutcome { in_doubt: true, effects };
        if self.act.has_key() {
            return done;
        }
        match self.failpoint {
            // Nothing was begun, or everything is recorded.
            Failpoint::WorkerBeforeIntent
            | Failpoint::ServerBeforeIntent
            | Failpoint::WorkerAfterOutcome
            | Failpoint::WorkerBeforeReport
            | Failpoint::WorkerAfterReport
            | Failpoint::ServerBeforeCompletion
            | Failpoint::ServerAfterCompletion => done,
            Failpoint::WorkerAfterIntent
            | Failpoint::WorkerBeforeSend
            | Failpoint::ConnectorBeforeCall
            | Failpoint::CommandBeforeStart
            | Failpoint::ProgramBeforeStart => doubt(0),
            // It dies with its worker, with its call made or not.
            Failpoint::CommandStarted => doubt(0) || doubt(1),
            Failpoint::WorkerAfterSend
            | Failpoint::ConnectorAfterCall
            | Failpoint::CommandAfterEnd
            | Failpoint::ProgramAfterEnd => doubt(1),
            // The worker asks again while its lease lasts. Where a restart takes longer, nothing was sent.
            Failpoint::ServerAfterIntent => done || doubt(0),
            // The worker tells it again. Meanwhile its lease may have run out.
            Failpoint::ServerBeforeOutcome | Failpoint::ServerAfterOutcome => done || doubt(1),
        }
    }
}

/// Everything but the processes that die.
#[derive(Clone)]
struct CrashHarness {
    folder: PathBuf,
    port: u16,
    target: Target,
}

impl CrashHarness {
    fn armed(&self, who: &str) -> PathBuf {
        let folder = self.folder.join("failpoints").join(who);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn arm(&self, who: &str, failpoint: Failpoint) {
        std::fs::write(self.armed(who).join(failpoint.as_str()), "").unwrap();
    }

    fn server(&self, store: &str) -> Member {
        let (folder, armed, port, store) = (self.folder.clone(), self.armed("server"), self.port, store.to_owned());
        Member::start("server", move || {
            let mut command = Setup::interlock(INTERLOCK.as_ref(), &folder);
            command.env("INTERLOCK_FAILPOINTS", &armed);
            command.args(["server", "--store", &store, "--listen", &format!("127.0.0.1:{port}")]);
            command.args(["--session-lease-ms", &LEASE_MS.to_string()]);
            command
        })
    }

    fn worker(&self, queue: usize) -> Member {
        let name = queue_name(queue);
        let (folder, armed, port) = (self.folder.clone(), self.armed(&name), self.port);
        Member::start(name.clone(), move || {
            let mut command = Setup::interlock(INTERLOCK.as_ref(), &folder);
            command.env("INTERLOCK_FAILPOINTS", &armed);
            command.args(["worker", "--server", &format!("http://127.0.0.1:{port}"), "--queue", &name, "--slots", "2"]);
            for task in TASKS {
                command.args(["--task", &format!("{task}={}", folder.join(task).display())]);
            }
            command.args(["--connectors", "connectors.toml", "--commands", "commands.toml"]);
            command.args(["--outbound-open", "127.0.0.0/8", "--data", &format!("worker-{name}")]);
            command.args(["--api-key-file", "interlock-data/local.key"]);
            command
        })
    }

    /// What workers are configured with, and a policy that lets everything pass: approvals are not the question here.
    fn write_files(&self) {
        std::fs::create_dir_all(self.folder.join("policy")).unwrap();
        for (task, header) in [("keyed", "-H \"Idempotency-Key: $INTERLOCK_EFFECT_KEY\""), ("unkeyed", "")] {
            let program = format!(
                "#!/bin/sh\ncat >/dev/null\n\
                 exec /usr/bin/curl -sS -X POST {header} \"http://127.0.0.1:{}/$INTERLOCK_RUN_ID\"\n",
                self.target.port
            );
            let path = self.folder.join(task);
            std::fs::write(&path, program).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let rule = "package interlock\n\ndecision := {\"verdict\": \"allow\", \"tier\": \"low\", \"obligations\": null, \
                    \"reasons\": [{\"rule\": \"test\", \"text\": \"a test\"}]}\n";
        for (name, text) in [
            ("connectors.toml", ""),
            ("commands.toml", "profiles = ['dev-flex']\n"),
            ("policy/all.rego", rule),
            ("policy/data.json", "{\"config\": {}}"),
        ] {
            std::fs::write(self.folder.join(name), text).unwrap();
        }
    }

    fn push_policy(&self) {
        let mut push = Setup::interlock(INTERLOCK.as_ref(), &self.folder);
        push.args(["policy", "push", "policy", "--activate", "--yes"]);
        push.args(["--server", &format!("http://127.0.0.1:{}", self.port)]);
        push.args(["--api-key-file", "interlock-data/local.key"]).stderr(std::process::Stdio::piped());
        let pushed = push.output().unwrap();
        assert!(pushed.status.success(), "{}", String::from_utf8_lossy(&pushed.stderr));
    }

    /// One crash: the process dies at the failpoint while it does this act, is started again, and the run comes to rest.
    async fn round(&self, client: &Client, who: &str, victim: &mut Member, case: Case, queue: usize) {
        let (since, workflow) = (Instant::now(), case.act.name(queue));
        let run = loop {
            self.arm(who, case.failpoint);
            let starting = start(client, &workflow);
            tokio::pin!(starting);
            let mut died = false;
            let run = loop {
                tokio::select! {
                    run = &mut starting => break run,
                    () = tokio::time::sleep(Duration::from_millis(10)) => {
                        if victim.gave_up() {
                            died = true;
                            victim.restart();
                        }
                    }
                }
            };
            // A worker that repeated what it had to say about the run before has met the failpoint: once more.
            if !died {
                break run;
            }
        };
        while !victim.gave_up() {
            assert!(since.elapsed() < PATIENCE, "{case:?}: failpoint not reached; see {}", self.folder.display());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        victim.restart();
        let in_doubt = self.rest(client, &run, case).await;
        let found = CaseOutcome { in_doubt, effects: self.target.effects(&run) };
        assert!(case.allows(&found), "{case:?} of {run}: {found:?}; see {}", self.folder.display());
        // An operator who has looked at the target says that it happened. That it did not would not be believed yet.
        if found.in_doubt && found.effects == 1 {
            client.resolve(&run, "act", "happened").await;
            assert!(!self.rest(client, &run, case).await, "{case:?} of {run}");
        }
        assert!(self.target.effects(&run) <= 1, "{case:?} of {run}: it was repeated");
    }

    /// Waits until the run has ended well, or stands in doubt; answers which.
    async fn rest(&self, client: &Client, run: &str, case: Case) -> bool {
        let since = Instant::now();
        loop {
            let shown = client.run(run).await;
            match shown["state"].as_str().unwrap() {
                "succeeded" => return false,
                "paused" if client.steps(run).await[0]["state"] == "in_doubt" => return true,
                state => {
                    let lasts = since.elapsed() < PATIENCE;
                    let over = ["failed", "canceled"].contains(&state) || !lasts;
                    assert!(!over, "{case:?}: {shown}; see {}", self.folder.display());
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Under a key: the server may die before it has answered.
async fn start(client: &Client, workflow: &str) -> String {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    let key = format!("crash-{}", STARTED.fetch_add(1, Ordering::Relaxed));
    let (body, key) = (json!({ "workflow": workflow }), Some(key.as_str()));
    let (status, answer) = client.with_retries(Method::POST, "/runs", Some(&body), key).await;
    assert!(status == 201 || status == 200, "{answer}");
    answer["run_id"].as_str().unwrap().to_owned()
}

async fn apply(client: &Client, source: &str) {
    let (status, answer) =
        client.with_retries(Method::POST, "/workflows", Some(&json!({ "source": source })), None).await;
    assert!(status == 200 || status == 201, "{answer}");
}

async fn crash_everywhere(name: &str, store: &str) {
    let harness = CrashHarness { folder: folder(name), port: free_port(), target: Target::start() };
    harness.write_files();
    let mut server = harness.server(store);
    let client = Client::new(vec![harness.port], &harness.folder).await;
    client.answers().await;
    harness.push_policy();
    let (of_workers, of_server) = (cases(false), cases(true));
    let rounds = number("INTERLOCK_CRASHES", (of_workers.len() + of_server.len()) as u64) as usize;
    let share = |cases: &[Case]| (rounds * cases.len()).div_ceil(of_workers.len() + of_server.len());
    let worker_rounds = share(&of_workers);
    let count = worker_rounds.div_ceil(ROUNDS_PER_WORKER).min(WORKERS_MAX);
    for act in Act::ALL {
        for queue in 0..count {
            apply(&client, &act.workflow(queue, harness.target.port)).await;
        }
    }
    let workers: Vec<Member> = (0..count).map(|queue| harness.worker(queue)).collect();

    let mut all = tokio::task::JoinSet::new();
    for (queue, mut worker) in workers.into_iter().enumerate() {
        let (harness, client, cases) = (harness.clone(), client.through(harness.port), of_workers.clone());
        all.spawn(async move {
            for round in (queue..worker_rounds).step_by(count) {
                let case = cases[round % cases.len()];
                harness.round(&client, &queue_name(queue), &mut worker, case, queue).await;
            }
            worker
        });
    }
    let workers: Vec<Member> = all.join_all().await;
    for round in 0..share(&of_server) {
        let (case, queue) = (of_server[round % of_server.len()], round % count);
        harness.round(&client, "server", &mut server, case, queue).await;
    }
    let shown: Value = client.with_retries(Method::GET, "/runs?limit=500&state=failed", None, None).await.1;
    assert_eq!(shown["runs"].as_array().unwrap().len(), 0, "{shown}");
    println!("{worker_rounds} workers and {} servers died at {} failpoints", share(&of_server), Failpoint::ALL.len());
    drop((workers, server));
    crate::db_check(&harness.folder, store);
    let _ = std::fs::remove_dir_all(&harness.folder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_at_any_failpoint_repeats_nothing_blindly_on_sqlite() {
    let store = format!("sqlite:{}", folder("crash-sqlite").join("crash.db").display());
    crash_everywhere("crash-sqlite", &store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_at_any_failpoint_repeats_nothing_blindly_on_postgres() {
    let database = Database::create("crash").await;
    crash_everywhere("crash-postgres", &database.url).await;
}
