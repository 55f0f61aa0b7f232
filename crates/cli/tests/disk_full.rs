//! A full disk: clients get an error, nothing that was answered is lost, and it goes on by itself once there is room.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_interlock");
const RUN: &str = r#"{"plan":{"workflow":"full","version":1,"steps":[{"key":"a","kind":"task","handler":"a"}]}}"#;

/// A server whose data folder is a file system of its own with 8 MiB.
struct Server {
    child: Child,
    folder: PathBuf,
    url: String,
}

impl Server {
    fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("interlock-full-{}", std::process::id()));
        let disk = folder.join("disk");
        std::fs::create_dir_all(&disk).unwrap();
        let mut command = Command::new("unshare");
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        command.args(["--mount", "--", "sh", "-c"]);
        command.arg("mount -t tmpfs -o size=8m tmpfs \"$1\" && exec \"$2\" server --listen 127.0.0.1:0 --data \"$1/data\" --bootstrap-key-file \"$3\"");
        command.arg("sh").arg(&disk).arg(PROGRAM).arg(folder.join("key"));
        let mut child = command.stdout(Stdio::piped()).spawn().expect("unshare is part of util-linux");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("http://")).expect("a file system of its own, and a server on it");
        let url = line[line.find("http://").unwrap()..].split([',', ' ', '/']).take(3).collect::<Vec<_>>().join("/");
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, folder, url }
    }

    /// The disk as the server sees it.
    fn disk(&self) -> PathBuf {
        let disk = self.folder.join("disk");
        Path::new(&format!("/proc/{}/root", self.child.id())).join(disk.strip_prefix("/").unwrap())
    }

    /// The program where the server's disk is, with its store.
    fn inside(&self) -> Command {
        let mut command = Command::new("nsenter");
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.args(["--mount", "--target", &self.child.id().to_string(), "--", PROGRAM]);
        command.env("INTERLOCK_DATA", self.folder.join("disk/data")).env("COLUMNS", "1000");
        command
    }

    /// The status and the body of an answer; `000` where none came in time.
    fn curl(&self, path: &str, body: Option<&str>) -> (String, String) {
        let key = std::fs::read_to_string(self.folder.join("key")).unwrap();
        let mut command = Command::new("curl");
        command.args(["-s", "-m", "30", "-w", "\n%{http_code}", "-H", "Content-Type: application/json", "-K", "-"]);
        command.args(body.map(|body| ["-d", body]).into_iter().flatten()).arg(format!("{}{path}", self.url));
        let mut curl = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        writeln!(curl.stdin.take().unwrap(), "header = \"Authorization: Bearer {}\"", key.trim()).unwrap();
        let output = String::from_utf8(curl.wait_with_output().unwrap().stdout).unwrap();
        let (body, status) = output.rsplit_once('\n').unwrap();
        (status.to_owned(), body.to_owned())
    }

    fn until(&self, path: &str, body: Option<&str>, status: &str) -> String {
        let mut last = None;
        for _ in 0..3_000 {
            let (got, answer) = self.curl(path, body);
            if got == status {
                return answer;
            }
            last = Some((got, answer));
        }
        panic!("{path} does not answer {status}, but {last:?}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_full_disk_loses_nothing_and_heals_by_itself() {
    let server = Server::start();
    let run =
        |answer: &str| serde_json::from_str::<serde_json::Value>(answer).unwrap()["run_id"].as_str().map(String::from);
    let before = run(&server.until("/api/v1/runs", Some(RUN), "201")).unwrap();

    let ballast = server.disk().join("ballast");
    let mut file = std::fs::File::create(&ballast).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    drop(file);
    let refused = server.until("/api/v1/runs", Some(RUN), "503");
    assert!(refused.contains("STORE_FULL") && refused.contains("the disk of the store is full"), "{refused}");
    let unready = server.until("/readyz", None, "503");
    assert!(unready.contains("takes no commits: its disk is full"), "{unready}");
    let doctor = server.inside().args(["doctor", "--server", &server.url]).output().unwrap();
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.contains("its disk is full") && doctor.contains("free some space"), "{doctor}");
    let (status, answer) = server.curl("/api/v1/status", None);
    assert!(status == "200" && answer.contains("store_stopped") && answer.contains("its disk is full"), "{answer}");
    // What can be read is read.
    assert_eq!(server.curl(&format!("/api/v1/runs/{before}"), None).0, "200");

    std::fs::remove_file(&ballast).unwrap();
    server.until("/readyz", None, "200");
    let after = run(&server.until("/api/v1/runs", Some(RUN), "201")).unwrap();
    for run in [before, after] {
        assert_eq!(server.curl(&format!("/api/v1/runs/{run}"), None).0, "200");
    }
    let checked = server.inside().args(["db", "check"]).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
}
