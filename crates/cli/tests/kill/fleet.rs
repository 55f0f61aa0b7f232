//! Real processes: servers and workers, started again whenever they are killed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// One process and how to start it again.
pub struct Member {
    pub name: String,
    command: Box<dyn Fn() -> Command + Send>,
    child: Child,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    Kill,
    /// Stopped for longer than its lease, then let go on.
    Freeze,
    Terminate,
}

impl Member {
    pub fn start(name: impl Into<String>, command: impl Fn() -> Command + Send + 'static) -> Self {
        let child = command().spawn().unwrap();
        Self { name: name.into(), command: Box::new(command), child }
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").arg(signal).arg(self.child.id().to_string()).status().unwrap();
        assert!(status.success() || signal == "-CONT", "{} could not be signalled", self.name);
    }

    pub async fn suffer(&mut self, blow: Blow, freeze: Duration) {
        match blow {
            Blow::Kill => {
                self.signal("-KILL");
                self.child.wait().unwrap();
                self.child = (self.command)().spawn().unwrap();
            }
            Blow::Freeze => {
                self.signal("-STOP");
                tokio::time::sleep(freeze).await;
                self.signal("-CONT");
            }
            Blow::Terminate => {
                self.signal("-TERM");
                // Draining takes as long as its steps do.
                while self.child.try_wait().unwrap().is_none() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                self.child = (self.command)().spawn().unwrap();
            }
        }
    }

    /// Whether it has ended by itself, which no process here should do.
    pub fn gave_up(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub struct Setup {
    pub folder: PathBuf,
    pub store: String,
    pub ledger_port: u16,
    pub lease_ms: u64,
}

impl Setup {
    fn interlock(folder: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_interlock"));
        let log = std::fs::OpenOptions::new().create(true).append(true).open(folder.join("fleet.log")).unwrap();
        command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.env_remove("INTERLOCK_STORE").env_remove("INTERLOCK_DATA").env_remove("INTERLOCK_API_KEY_FILE");
        command
    }

    pub fn server(&self, port: u16) -> Member {
        let (folder, store, lease) = (self.folder.clone(), self.store.clone(), self.lease_ms);
        Member::start(format!("server {port}"), move || {
            let mut command = Self::interlock(&folder);
            command.args(["server", "--store", &store, "--listen", &format!("127.0.0.1:{port}")]);
            command.args(["--session-lease-ms", &lease.to_string()]);
            command
        })
    }

    pub fn worker(&self, number: usize, port: u16) -> Member {
        let folder = self.folder.clone();
        let program = self.program();
        Member::start(format!("worker {number}"), move || {
            let mut command = Self::interlock(&folder);
            command.args(["worker", "--server", &format!("http://127.0.0.1:{port}"), "--slots", "4"]);
            command.arg("--task").arg(format!("append={}", program.display()));
            command
        })
    }

    /// The task: tells the ledger its effect key, and waits for the ledger's word.
    fn program(&self) -> PathBuf {
        let path = self.folder.join("append.sh");
        let script = format!(
            "#!/usr/bin/env bash\nset -eu\ncat >/dev/null\nexec 3<>/dev/tcp/127.0.0.1/{port}\nprintf '%s\\n' \"$INTERLOCK_EFFECT_KEY\" >&3\nread -r word <&3\n[ \"$word\" = ok ]\nprintf '\"%s\"' \"$INTERLOCK_ATTEMPT\"\n",
            port = self.ledger_port,
        );
        if !path.exists() {
            use std::os::unix::fs::PermissionsExt;
            std::fs::write(&path, script).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        path
    }
}
