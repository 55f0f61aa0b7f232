//! Config files: what is accepted, and how mistakes are reported.

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
        ("log_format = \"xml\"", "`log_format`: `xml` does not fit: write one of text, json"),
        ("listen = ", "/etc/interlock.toml:1:"),
        ("listen = \"a:1\"\nlisten = \"b:1\"", "/etc/interlock.toml:2:1"),
    ] {
        let said = mistakes(text).join("\n");
        assert!(said.contains(says), "{text:?}: {said}");
    }
    assert_eq!(mistakes("a = 1\nb = 2\nlisten = 3").len(), 3, "everything is told at once");
}

/// With every comment taken away the file says what would count without it: each line is a setting of its table, of the
/// right kind, with its default.
#[test]
fn the_file_that_init_writes_says_the_defaults() {
    let text = super::init::text();
    assert_eq!(read(&text), Ok(Vec::new()), "nothing is set as it is written");
    let settings = known::all(&crate::Cli::command());
    let is_setting = |line: &str| {
        let name = line.strip_prefix('#').and_then(|line| line.split_once(" = ")).map_or("", |(name, _)| name);
        settings.iter().any(|known| known.name() == name)
    };
    let uncommented: Vec<&str> = text.lines().map(|line| if is_setting(line) { &line[1..] } else { line }).collect();
    // What has no default is written as an empty value, which not every setting takes.
    let kept: Vec<&str> = uncommented.into_iter().filter(|line| !line.ends_with("= \"\"")).collect();
    let said = read(&kept.join("\n")).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    for known in &settings {
        let shown = said.iter().find(|said| said.key == known.key);
        let default: Vec<String> =
            known.arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
        if known.shape != known::Shape::Path && default.iter().any(|value| !value.is_empty()) {
            let values = shown.map(|said| said.values.join(",")).unwrap_or_default();
            assert_eq!(values, default.join(","), "{}", known.key);
        }
        assert!(text.contains(&format!("\n#{} = ", known.name())), "{} is not in it", known.key);
    }
}
