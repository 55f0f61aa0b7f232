//! A PostgreSQL of the test's own, which may be killed, and a standby that follows it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio_postgres::{Client, NoTls};

use crate::clock::WrongClock;

pub struct Cluster {
    pub port: u16,
    home: PathBuf,
    clock: Option<WrongClock>,
    process: Child,
}

/// The folder with the server's programs.
fn programs() -> PathBuf {
    if let Some(bin) = std::env::var_os("INTERLOCK_POSTGRES_BIN") {
        return bin.into();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres-bin");
    let found = Command::new(script).output().unwrap();
    assert!(found.status.success(), "PostgreSQL is not installed: run scripts/need postgres");
    String::from_utf8(found.stdout).unwrap().trim().into()
}

/// A command of PostgreSQL's, which refuses to run as root.
fn program(name: &str, home: &Path) -> Command {
    let path = programs().join(name);
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let mut command = if is_root {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]).arg(path);
        command
    } else {
        Command::new(path)
    };
    command.current_dir(home).env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn new_home(name: &str) -> PathBuf {
    let home = std::env::temp_dir().join(format!("interlock-kill-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();
    let _ = Command::new("chown").arg("postgres:postgres").arg(&home).stderr(Stdio::null()).status();
    home
}

fn spawn(home: &Path, port: u16, clock: Option<&WrongClock>) -> Child {
    let log = std::fs::OpenOptions::new().create(true).append(true).open(home.join("server.log")).unwrap();
    let mut command = program("postgres", home);
    command.arg("-D").arg(home.join("data")).args(["-p", &port.to_string()]);
    command.args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=120"]);
    if let Some(clock) = clock {
        clock.give_to(&mut command);
    }
    command.stderr(log).spawn().unwrap()
}

impl Cluster {
    pub async fn start(name: &str) -> Self {
        Self::with_clock(name, None).await
    }

    /// One whose time of day may be set.
    pub async fn with_clock(name: &str, clock: Option<&WrongClock>) -> Self {
        let home = new_home(name);
        let made = program("initdb", &home)
            .arg(format!("--pgdata={}", home.join("data").display()))
            .args(["--username=interlock", "--auth=trust", "--encoding=UTF8", "--locale=C"])
            .status()
            .unwrap();
        assert!(made.success(), "initdb failed");
        Self::run(home, crate::free_port(), clock.cloned()).await
    }

    async fn run(home: PathBuf, port: u16, clock: Option<WrongClock>) -> Self {
        let process = spawn(&home, port, clock.as_ref());
        let mut cluster = Self { port, home, clock, process };
        cluster.ready().await;
        cluster
    }

    /// A copy that follows this one, and is allowed to be behind.
    pub async fn standby(&self, name: &str) -> Self {
        let home = new_home(name);
        let made = program("pg_basebackup", &home)
            .args([
                "-h",
                "127.0.0.1",
                "-p",
                &self.port.to_string(),
                "-U",
                "interlock",
                "-X",
                "stream",
                "-R",
                "-c",
                "fast",
            ])
            .arg("-D")
            .arg(home.join("data"))
            .status()
            .unwrap();
        assert!(made.success(), "pg_basebackup failed");
        Self::run(home, crate::free_port(), None).await
    }

    /// The address of its database, with those of others that may take its place.
    pub fn url(&self, others: &[&Self]) -> String {
        let hosts: Vec<String> =
            std::iter::once(self).chain(others.iter().copied()).map(|one| format!("127.0.0.1:{}", one.port)).collect();
        format!("postgres://interlock@{}/postgres?sslmode=disable", hosts.join(","))
    }

    async fn ready(&mut self) {
        for _ in 0..1_800 {
            if self.try_connect().await.is_some() {
                return;
            }
            if self.process.try_wait().unwrap().is_some() {
                // Sessions of the one that was killed are still ending.
                self.process = spawn(&self.home, self.port, self.clock.as_ref());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("PostgreSQL does not start; see {}", self.home.join("server.log").display());
    }

    async fn try_connect(&self) -> Option<Client> {
        let (client, connection) = tokio_postgres::connect(&self.url(&[]), NoTls).await.ok()?;
        tokio::spawn(connection);
        client.simple_query("SELECT 1").await.ok()?;
        Some(client)
    }

    pub async fn connect(&self) -> Client {
        self.try_connect().await.unwrap()
    }

    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub async fn kill_and_restart(&mut self) {
        self.kill();
        self.process = spawn(&self.home, self.port, self.clock.as_ref());
        self.ready().await;
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Immediate shutdown: its sessions go as well, and the data is deleted.
        let _ = Command::new("kill").arg("-QUIT").arg(self.process.id().to_string()).stderr(Stdio::null()).status();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.home);
    }
}
