//! Config files on paper: what is taken, and how mistakes are told.

use std::path::Path;

use super::file::{Setting, check};
use super::known;
use clap::CommandFactory as _;

fn read(text: &str) -> Result<Vec<Setting>, Vec<String>> {
    check(Path::new("/etc/interlock.toml"), text, &known::all(&crate::Cli::command()))
}

fn mistakes(text: &str) -> Vec<String> {
    read(text).expect_err(text)
}

#[test]
fn every_kind_of_value_is_taken() {
    let said = read(
        r#"
listen = "0.0.0.0:1"
retention_days = 1_000
no_demo = true
secret_file = "secrets/server"

[outbound]
open = ["10.0.0.0/8", "127.0.0.1"]

[oidc]
role = { sre = ["operator", "approver"], ops = "admin" }

[worker]
slots = 4
task = { resize = "./resize.sh" }
"#,
    )
    .unwrap();
    let values = |key: &str| said.iter().find(|said| said.key == key).map(|said| said.values.clone()).unwrap();
    assert_eq!(values("listen"), ["0.0.0.0:1"]);
    assert_eq!(values("retention_days"), ["1000"]);
    assert_eq!(values("no_demo"), ["true"]);
    assert_eq!(values("secret_file"), ["/etc/secrets/server"], "a path is one from where the file is");
    assert_eq!(values("outbound.open"), ["10.0.0.0/8", "127.0.0.1"]);
    assert_eq!(values("oidc.role"), ["ops=admin", "sre=operator,approver"]);
    assert_eq!(values("worker.task"), ["resize=./resize.sh"]);
    assert_eq!(said.iter().find(|said| said.key == "worker.slots").unwrap().at.to_string(), "/etc/interlock.toml:14:1");
}

#[test]
fn an_unknown_setting_is_told_with_its_place_and_the_nearest() {
    for (text, says) in [
        ("\nlisten_on = \"x\"", "/etc/interlock.toml:2:1: `listen_on` is not a setting"),
        ("lisen = \"x\"", "did you mean `listen`?"),
        ("public-url = \"x\"", "did you mean `public_url`?"),
        ("oidc_issuer = \"x\"", "did you mean `oidc.issuer`?"),
        (
            "[oidc]\nisuer = \"x\"",
            "/etc/interlock.toml:2:1: `oidc.isuer` is not a setting; did you mean `oidc.issuer`?",
        ),
        ("slots = 4", "did you mean `worker.slots`?"),
        ("[worker]\nlisten = \"x\"", "did you mean `listen`?"),
        ("[odic]\nissuer = \"x\"", "`odic` is not a setting"),
        ("oidc = 4", "`oidc` is a table: write [oidc] above its settings"),
    ] {
        let said = mistakes(text).join("\n");
        assert!(said.contains(says), "{text:?}: {said}");
    }
}

#[test]
fn a_value_of_the_wrong_kind_or_that_does_not_fit_is_told_with_its_place() {
    for (text, says) in [
        ("listen = 8420", "/etc/interlock.toml:1:10: `listen` takes text in quotes; this is a number"),
        ("retention_days = \"90\"", "takes a whole number, 0 or more; this is a text"),
        ("retention_days = -1", "takes a whole number, 0 or more"),
        ("no_demo = \"yes\"", "takes true or false"),
        ("[outbound]\nopen = \"10.0.0.0/8\"", "takes a list of texts"),
        ("[outbound]\nopen = [4]", "takes a list of texts"),
        ("[oidc]\nrole = [\"sre=admin\"]", "takes a table"),
        ("listen = \"everywhere\"", "/etc/interlock.toml:1:10: `listen`: `everywhere` does not fit: "),
        ("visit_hours = 0", "`visit_hours`: `0` does not fit"),
        ("log = \"a=b=c\"", "`log`: "),
        ("listen = ", "/etc/interlock.toml:1:"),
        ("listen = \"a:1\"\nlisten = \"b:1\"", "/etc/interlock.toml:2:1"),
    ] {
        let said = mistakes(text).join("\n");
        assert!(said.contains(says), "{text:?}: {said}");
    }
    assert_eq!(mistakes("a = 1\nb = 2\nlisten = 3").len(), 3, "everything is told at once");
}
