//! Real processes: servers and workers, started again whenever they are killed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::time::Instant;

use crate::clock::WrongClock;

/// How long a process takes to start at most, beside all the others on a slow machine.
const START_MAX: Duration = Duration::from_secs(30);

/// One process and how to start it again.
pub struct Member {
    pub name: String,
    command: Box<dyn Fn() -> Command + Send>,
    child: Child,
    started_at: Instant,
    /// Stopped until then, while the others go on.
    frozen_until: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    Kill,
    /// Stopped for longer than its lease, then let go on.
    Freeze,
    /// Stopped for longer than every timeout, while others are dealt blows.
    LongFreeze,
    Terminate,
}

/// Blows in an order of chance, of which each kind comes as often as it should.
#[derive(Default)]
pub struct Deck(Vec<Blow>);

impl Deck {
    /// Mostly kills. One process at a time is frozen for long, so that the others can go on.
    pub fn deal(&mut self, random: &mut fastrand::Rng, frozen: usize) -> Blow {
        if self.0.is_empty() {
            self.0 = vec![Blow::Kill; 9];
            self.0.extend([Blow::Freeze, Blow::LongFreeze, Blow::Terminate]);
            random.shuffle(&mut self.0);
        }
        match self.0.pop() {
            Some(Blow::LongFreeze) if frozen > 0 => Blow::Terminate,
            Some(blow) => blow,
            None => Blow::Kill,
        }
    }
}

impl Member {
    pub fn start(name: impl Into<String>, command: impl Fn() -> Command + Send + 'static) -> Self {
        let child = command().spawn().unwrap();
        Self { name: name.into(), command: Box::new(command), child, started_at: Instant::now(), frozen_until: None }
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").arg(signal).arg(self.child.id().to_string()).status().unwrap();
        assert!(status.success() || signal == "-CONT", "{} could not be signalled", self.name);
    }

    pub fn freeze(&mut self) {
        self.signal("-STOP");
    }

    pub fn thaw(&mut self) {
        self.signal("-CONT");
        self.frozen_until = None;
    }

    /// Lets it go on if its time has come.
    pub fn thaw_if_due(&mut self) {
        if self.frozen_until.is_some_and(|until| Instant::now() >= until) {
            self.thaw();
        }
    }

    pub async fn suffer(&mut self, blow: Blow, freeze: Duration, long_freeze: Duration) {
        match blow {
            Blow::Kill => {
                self.signal("-KILL");
                self.child.wait().unwrap();
                self.restart();
            }
            Blow::Freeze => {
                self.freeze();
                tokio::time::sleep(freeze).await;
                self.thaw();
            }
            Blow::LongFreeze => {
                self.freeze();
                self.frozen_until = Some(Instant::now() + long_freeze);
            }
            Blow::Terminate => {
                self.terminate().await;
                self.restart();
            }
        }
    }

    /// Ends in order, and another release takes its place.
    pub async fn replace(&mut self, next: impl FnOnce() -> Self) {
        self.terminate().await;
        *self = next();
    }

    pub async fn terminate(&mut self) {
        self.thaw();
        self.signal("-TERM");
        // Draining takes as long as its steps do.
        while self.child.try_wait().unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub fn restart(&mut self) {
        self.child = (self.command)().spawn().unwrap();
        self.started_at = Instant::now();
        self.frozen_until = None;
    }

    pub fn is_frozen(&self) -> bool {
        self.frozen_until.is_some()
    }

    /// Whether it has ended by itself, which a process does only where it cannot go on.
    pub fn gave_up(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Whether it may not have been up yet at an instant: who starts without its database ends, some time later.
    pub fn was_starting_at(&self, instant: Instant) -> bool {
        (self.started_at..self.started_at + START_MAX).contains(&instant)
    }

    /// Whether it may have waited for its database from its start on: that ends it after 30 s, which a disk that is busy with
    /// others can take.
    pub fn is_young(&self) -> bool {
        self.was_starting_at(Instant::now() - START_MAX) || self.was_starting_at(Instant::now())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The binary under test.
pub const INTERLOCK: &str = env!("CARGO_BIN_EXE_interlock");

pub struct Setup {
    pub folder: PathBuf,
    pub store: String,
    pub ledger_port: u16,
    pub lease_ms: u64,
}

impl Setup {
    pub fn interlock(binary: &Path, folder: &Path) -> Command {
        let mut command = Command::new(binary);
        let log = std::fs::OpenOptions::new().create(true).append(true).open(folder.join("fleet.log")).unwrap();
        command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.env_remove("INTERLOCK_STORE").env_remove("INTERLOCK_DATA").env_remove("INTERLOCK_API_KEY_FILE");
        command
    }

    pub fn server(&self, port: u16) -> Member {
        self.server_of(Path::new(INTERLOCK), port)
    }

    /// A server of another release.
    pub fn server_of(&self, binary: &Path, port: u16) -> Member {
        let command = self.server_command(binary, port);
        Member::start(format!("server {port}"), command)
    }

    /// A server on a machine whose time of day is wrong.
    pub fn server_with_clock(&self, port: u16, clock: &WrongClock) -> Member {
        let (command, clock) = (self.server_command(Path::new(INTERLOCK), port), clock.clone());
        Member::start(format!("server {port}"), move || {
            let mut command = command();
            clock.give_to(&mut command);
            command
        })
    }

    fn server_command(&self, binary: &Path, port: u16) -> impl Fn() -> Command + Send + 'static {
        let binary = binary.to_owned();
        let (folder, store, lease) = (self.folder.clone(), self.store.clone(), self.lease_ms);
        move || {
            let mut command = Self::interlock(&binary, &folder);
            command.args(["server", "--store", &store, "--listen", &format!("127.0.0.1:{port}")]);
            command.args(["--session-lease-ms", &lease.to_string()]);
            command
        }
    }

    /// A worker whose task tells the ledger its effect key, and waits for the ledger's word.
    pub fn worker(&self, number: usize, port: u16) -> Member {
        self.worker_of(Path::new(INTERLOCK), number, port)
    }

    /// The same of another release.
    pub fn worker_of(&self, binary: &Path, number: usize, port: u16) -> Member {
        let text = format!(
            "#!/usr/bin/env bash\nset -eu\ncat >/dev/null\nexec 3<>/dev/tcp/127.0.0.1/{port}\nprintf '%s\\n' \"$INTERLOCK_EFFECT_KEY\" >&3\nread -r word <&3\n[ \"$word\" = ok ]\nprintf '\"%s\"' \"$INTERLOCK_ATTEMPT\"\n",
            port = self.ledger_port,
        );
        let command =
            self.worker_command(binary, port, "4", &format!("append={}", self.script("append.sh", &text).display()));
        Member::start(format!("worker {number}"), command)
    }

    pub fn worker_with(&self, number: usize, port: u16, slots: &str, task: &str, program: &Path) -> Member {
        let task = format!("{task}={}", program.display());
        let command = self.worker_command(Path::new(INTERLOCK), port, slots, &task);
        Member::start(format!("worker {number}"), command)
    }

    /// A worker that runs commands in sandboxes, under rules of its own.
    pub fn commanded_worker(&self, number: usize, port: u16, rules: &Path) -> Member {
        let (folder, rules) = (self.folder.clone(), rules.to_owned());
        Member::start(format!("worker {number}"), move || {
            let mut command = Self::interlock(Path::new(INTERLOCK), &folder);
            command.args(["worker", "--server", &format!("http://127.0.0.1:{port}"), "--slots", "2"]);
            command.arg("--commands").arg(&rules);
            command
        })
    }

    fn worker_command(
        &self,
        binary: &Path,
        port: u16,
        slots: &str,
        task: &str,
    ) -> impl Fn() -> Command + Send + 'static {
        let (binary, folder) = (binary.to_owned(), self.folder.clone());
        let (slots, task) = (slots.to_owned(), task.to_owned());
        move || {
            let mut command = Self::interlock(&binary, &folder);
            command.args(["worker", "--server", &format!("http://127.0.0.1:{port}"), "--slots", &slots]);
            command.arg("--task").arg(&task);
            command
        }
    }

    /// A program in the folder. Written once: a file that is open for writing cannot be executed.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.folder.join(name);
        if !path.exists() {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        path
    }
}
