//! `interlock db backup | restore | check` with payloads beside the database, beside a server that runs.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::harness::Up;

const LONG: usize = 4_000;

fn objects(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(objects(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn payloads_go_with_a_backup_and_come_back_with_it() {
    let up = Up::start(&["--no-demo", "--payload-inline-max", "1024"]);
    let plan = up.file(
        "plan.json",
        r#"{"workflow":"w","version":1,"steps":[{"key":"pack","kind":"task","handler":"demo.pack","queue":"demo"}]}"#,
    );
    let text = format!("text={}", "x".repeat(LONG));
    let started =
        up.run(&["run", "start", "--plan", &plan, "-i", "order=a", "-i", "cents=100", "-i", &text, "-o", "json"]);
    assert_eq!(started.code, 0, "{started:?}");
    let run = started.json()["run_id"].as_str().unwrap().to_owned();
    assert_eq!(up.run(&["run", "watch", &run]).code, 0);

    let data = up.path("data").display().to_string();
    let copy = up.path("copy.db").display().to_string();
    let backup = up.run(&["db", "backup", "--data", &data, "--to", &copy]);
    assert_eq!(backup.code, 0, "{backup:?}");
    assert!(backup.out.contains("copy.db.payloads holds its 1 payloads, 3 KiB"), "{backup:?}");
    assert!(backup.out.contains("the server's secret is not in it"), "{backup:?}");
    let again = up.run(&["db", "backup", "--data", &data, "--to", &copy]);
    assert!(again.code != 0 && again.err.contains("exists already"), "{again:?}");
    let check = |more: &[&str]| up.run(&[&["db", "check", "--data", &data], more].concat());
    assert_eq!(check(&["--read-payloads"]).code, 0);

    // It is altered where it is: its length stays the same, its hash does not.
    let object = objects(&up.path("data/payloads")).remove(0);
    std::fs::write(&object, "y".repeat(std::fs::metadata(&object).unwrap().len() as usize)).unwrap();
    assert_eq!(check(&[]).code, 0);
    let found = check(&["--read-payloads"]);
    assert!(found.code == 1 && found.out.contains("PAYLOAD_ALTERED") && found.out.contains(&run), "{found:?}");
    let second = up.path("second.db").display().to_string();
    let backup = up.run(&["db", "backup", "--data", &data, "--to", &second]);
    assert!(backup.code == 1 && backup.out.contains(&run), "{backup:?}");
    assert!(up.path("second.db").is_file(), "the database is copied all the same");
    std::fs::remove_file(&object).unwrap();
    assert!(check(&[]).out.contains("PAYLOAD_MISSING"));

    // A log that another database has left is refused before any payload is brought back.
    std::fs::create_dir(up.path("used")).unwrap();
    std::fs::write(up.path("used/interlock.db-wal"), "old").unwrap();
    let refused = up.run(&["db", "restore", "--data", &up.path("used").display().to_string(), "--from", &copy]);
    assert!(refused.code == 1 && refused.err.contains("interlock.db-wal") && refused.out.is_empty(), "{refused:?}");
    assert_eq!(std::fs::read_dir(up.path("used")).unwrap().count(), 1, "nothing was changed");

    // A restore comes to its end although nobody reads what it says.
    let unread = up.path("unread").display().to_string();
    let mut restoring = up.command();
    restoring.args(["db", "restore", "--data", &unread, "--from", &copy]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut restoring = restoring.spawn().unwrap();
    drop(restoring.stdout.take());
    let ended = restoring.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let checked = up.run(&["db", "check", "--data", &unread, "--read-payloads"]);
    assert_eq!(checked.code, 0, "{checked:?}");

    let place = up.path("restored").display().to_string();
    let restored = up.run(&["db", "restore", "--data", &place, "--from", &copy]);
    assert_eq!(restored.code, 0, "{restored:?}");
    assert!(restored.out.contains("1 payloads, 3 KiB, are back in"), "{restored:?}");
    assert_eq!(up.run(&["db", "check", "--data", &place, "--read-payloads"]).code, 0);
    assert!(restored.out.contains("server.secret is not there"), "{restored:?}");

    // The secret is kept apart from backups; a server that made a new one would make all keys worthless.
    let refused = up.run(&["server", "--data", &place, "--listen", "127.0.0.1:0"]);
    assert!(refused.code != 0 && refused.err.contains("server.secret is not there"), "{refused:?}");
    assert!(!up.path("restored/server.secret").exists());

    // A damaged object of the backup is named, and so is the run that misses it.
    let object = objects(&up.path("copy.db.payloads")).remove(0);
    std::fs::write(&object, "damaged").unwrap();
    let place = up.path("restored-too").display().to_string();
    let restored = up.run(&["db", "restore", "--data", &place, "--from", &copy]);
    assert_eq!(restored.code, 1, "{restored:?}");
    assert!(restored.out.contains(&format!("{} is damaged", object.display())), "{restored:?}");
    assert!(restored.out.contains("PAYLOAD_MISSING") && restored.out.contains(&run), "{restored:?}");
}

#[test]
fn a_bucket_keeps_its_payloads_and_the_backup_says_so() {
    let up = Up::start(&["--no-demo", "--payload-inline-max", "1024"]);
    let plan = up.file(
        "plan.json",
        r#"{"workflow":"w","version":1,"steps":[{"key":"pack","kind":"task","handler":"demo.pack","queue":"demo"}]}"#,
    );
    let text = format!("text={}", "x".repeat(LONG));
    let data = up.path("data").display().to_string();
    let (first, second) = (up.path("first.db").display().to_string(), up.path("second.db").display().to_string());
    let bucket = ["--payloads", "s3://payloads/interlock"];
    let backup = up.run(&[&["db", "backup", "--data", &data, "--to", &first], &bucket[..]].concat());
    assert!(backup.code == 0 && backup.out.contains("no payloads beside it"), "{backup:?}");
    assert_eq!(up.run(&["run", "start", "--plan", &plan, "-i", "order=a", "-i", &text]).code, 0);
    let backup = up.run(&[&["db", "backup", "--data", &data, "--to", &second], &bucket[..]].concat());
    assert!(backup.code == 0 && backup.out.contains("stay in s3://payloads/interlock"), "{backup:?}");
    assert!(!up.path("second.db.payloads").exists());
    let check = up.run(&[&["db", "check", "--data", &data], &bucket[..]].concat());
    assert!(check.code == 0 && check.out.contains("were not looked at"), "{check:?}");
}

/// A process that is gone has left half a backup; its number is one that no process can have.
const HALF: &str = "monday.db.4294967295-0.partial";

#[test]
fn half_a_backup_is_no_backup_and_goes_with_the_next_one() {
    let up = Up::start(&["--no-demo"]);
    let data = up.path("data").display().to_string();
    let to = up.path("monday.db").display().to_string();
    assert_eq!(up.run(&["db", "backup", "--data", &data, "--to", &to]).code, 0);
    // All of it is there but its name.
    std::fs::rename(up.path("monday.db"), up.path(HALF)).unwrap();
    std::fs::create_dir(up.path(&format!("{HALF}.payloads"))).unwrap();
    let half = up.path(HALF).display().to_string();
    let restored = up.run(&["db", "restore", "--data", &up.path("new").display().to_string(), "--from", &half]);
    assert!(restored.code == 1 && restored.err.contains("half a copy"), "{restored:?}");
    assert!(!up.path("new").exists(), "nothing is put in place");
    let checked = up.run(&["db", "check", "--store", &format!("sqlite:{half}")]);
    assert!(checked.code == 1 && checked.err.contains("half a copy"), "{checked:?}");

    // Payloads got their name, and the machine was lost before the database did.
    std::fs::create_dir(up.path("monday.db.payloads")).unwrap();
    let without = up.run(&["db", "backup", "--data", &data, "--to", &to]);
    assert!(without.code == 1 && without.err.contains("monday.db.payloads is there without its backup"), "{without:?}");
    std::fs::remove_dir(up.path("monday.db.payloads")).unwrap();
    assert_eq!(up.run(&["db", "backup", "--data", &data, "--to", &to]).code, 0);
    let mut left: Vec<_> = std::fs::read_dir(up.path("monday.db").parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("monday.db"))
        .collect();
    left.sort();
    assert_eq!(left, ["monday.db"]);
    let mode = std::fs::metadata(up.path("monday.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_backup_whose_payloads_cannot_be_copied_leaves_nothing() {
    let up = Up::start(&["--no-demo", "--payload-inline-max", "1024"]);
    let plan = up.file(
        "plan.json",
        r#"{"workflow":"w","version":1,"steps":[{"key":"pack","kind":"task","handler":"demo.pack","queue":"demo"}]}"#,
    );
    let text = format!("text={}", "x".repeat(LONG));
    assert_eq!(up.run(&["run", "start", "--plan", &plan, "-i", "order=a", "-i", &text]).code, 0);
    let data = up.path("data").display().to_string();
    let to = up.path("monday.db").display().to_string();
    let elsewhere = up.path("not-there").display().to_string();
    let failed = up.run(&["db", "backup", "--data", &data, "--to", &to, "--payloads", &elsewhere]);
    assert!(failed.code == 1 && failed.err.contains("no backup was made"), "{failed:?}");
    let left = std::fs::read_dir(up.path("monday.db").parent().unwrap()).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    assert!(!left.iter().any(|name| name.starts_with("monday.db")), "{left:?}");
}

#[test]
fn a_folder_that_a_server_uses_is_not_restored() {
    let up = Up::start(&["--no-demo"]);
    let data = up.path("data").display().to_string();
    let copy = up.path("copy.db").display().to_string();
    assert_eq!(up.run(&["db", "backup", "--data", &data, "--to", &copy]).code, 0);
    let restored = up.run(&["db", "restore", "--data", &data, "--from", &copy]);
    assert!(restored.code == 1 && restored.err.contains("in use by another Interlock process"), "{restored:?}");
    assert!(!restored.err.contains("move it away"), "not under the server: {restored:?}");
    let again = up.run(&["db", "restore", "--data", &data, "--from", &copy, "--again"]);
    assert!(again.code == 1 && again.err.contains("--again is for PostgreSQL"), "{again:?}");
}
