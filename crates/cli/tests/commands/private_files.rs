//! Files with secrets that everyone on the machine can read: whatever reads one refuses it, and says what mends it.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt as _;

use crate::harness::Up;

#[test]
fn a_secret_that_others_can_read_is_refused_with_what_mends_it() {
    let up = Up::start(&["--no-demo"]);
    let (data, identity) = (up.path("second").display().to_string(), up.path("identity").display().to_string());
    let server = up.server();
    let text = "ab".repeat(32);
    let secret = up.file("open.secret", &text);
    set_permissions(&secret, Permissions::from_mode(0o644)).unwrap();
    let second = ["server", "--listen", "127.0.0.1:0", "--data", &data];
    let oidc = ["--oidc-issuer", "https://id.example.org", "--oidc-client-id", "interlock"];
    let worker = ["worker", "--server", &server, "--task", "echo=cat"];
    let slack = ["slack", "connect", "--team", "T0123", "--channel", "C0123"];
    for arguments in [
        [&second[..], &["--secret-file", &secret]].concat(),
        [&second[..], &oidc, &["--oidc-client-secret-file", &secret]].concat(),
        [&second[..], &["--traces-endpoint", "http://127.0.0.1:9", "--traces-headers-file", &secret]].concat(),
        [&worker[..], &["--api-key-file", &secret]].concat(),
        [&worker[..], &["--identity", &identity, "--enrol-token-file", &secret]].concat(),
        [&slack[..], &["--bot-token-file", &secret]].concat(),
        [&slack[..], &["--signing-secret-file", &secret]].concat(),
        [&slack[..], &["--pagerduty-key-file", &secret]].concat(),
        vec!["webhook", "in", "create", "alarms", "--source", "generic", "--secret-file", &secret],
        vec!["run", "list", "--server", &server, "--api-key-file", &secret],
        vec!["login", "--server", &server, "--api-key-file", &secret],
    ] {
        let refused = up.run(&arguments);
        assert!(refused.code > 0, "{arguments:?}: {refused:?}");
        let mended_by = format!("(its mode is 644); run: chmod 600 {secret}");
        assert!(refused.err.contains(&mended_by), "{arguments:?}: {refused:?}");
        assert!(!refused.err.contains(&text) && !refused.out.contains(&text), "{arguments:?}: {refused:?}");
    }
    set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
    let taken = up.run(&["webhook", "in", "create", "alarms", "--source", "generic", "--secret-file", &secret]);
    assert_eq!(taken.code, 0, "{taken:?}");
}

#[test]
fn what_a_volume_opens_to_its_group_in_the_data_folder_is_closed_again() {
    let mut up = Up::start(&["--no-demo"]);
    let secret = up.path("data/server.secret");
    set_permissions(&secret, Permissions::from_mode(0o660)).unwrap();
    up.restart(&["--no-demo"]);
    assert_eq!(std::fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(up.run(&["run", "list"]).code, 0, "and the server goes on with it");
}
