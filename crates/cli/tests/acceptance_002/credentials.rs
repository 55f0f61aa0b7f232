//! The use of credentials is audited from end to end: from the Vault's own log to the run's evidence.

use std::os::unix::fs::PermissionsExt as _;

use super::Staging;
use crate::harness::Up;
use crate::simulator::{DATABASE, ROLE_ID, SECRET_ID, Simulator};

/// What the values begin with that the Vault makes for each reader.
const VALUE: &str = "db-s3cr3t-";

/// The file of a worker that has its secrets from the Vault.
fn from_vault(up: &Up, vault: &Simulator) -> [String; 2] {
    let secret_id = up.file("secret-id", SECRET_ID);
    std::fs::set_permissions(secret_id, std::fs::Permissions::from_mode(0o600)).unwrap();
    let text = format!(
        "journal = \"leases\"\n\
         [environment]\ndefault = \"corp\"\nstaging = \"corp\"\n\
         [provider.corp]\nkind = \"vault\"\nurl = \"{}\"\nopen = [\"127.0.0.1/32\"]\n\
         login = {{ method = \"approle\", role_id = \"{ROLE_ID}\", secret_id_file = \"secret-id\" }}\n\
         [provider.corp.secret.DB]\nengine = \"dynamic\"\npath = \"{DATABASE}\"\nfield = \"password\"\n",
        vault.url
    );
    ["--credentials".to_owned(), up.file("credentials.toml", &text)]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_is_on_record_wherever_it_was_used_and_its_value_nowhere() {
    let vault = Simulator::start().await;
    let staging = Staging::with_secrets(|up| from_vault(up, &vault));
    staging.apply(
        "name: secret\nprofile: staging-standard\nsteps:\n\
         - { id: read, run: [/usr/bin/cat, /run/secrets/DB], effect: read, credentials: [DB] }\n",
    );
    let (code, run) = staging.start_run(&["secret", "--wait"]);
    assert_eq!(code, 0, "{:#?}", staging.steps(&run));
    let used = staging.attempts(&run)[0]["credentials_used"].clone();
    assert_eq!(used.as_array().unwrap().len(), 1, "{used}");
    let told = |field: &str| used[0][field].as_str().unwrap_or_else(|| panic!("no {field} in {used}")).to_owned();
    let (credential, request, lease) = (told("credential_id"), told("vault_request_id"), told("lease_id"));
    assert_eq!(credential, "corp/DB");
    let (fetched_at, revoked_at) = (used[0]["fetched_at"].as_i64(), used[0]["revoked_at"].as_i64());
    assert!(fetched_at > Some(0) && revoked_at >= fetched_at, "{used}");

    // The Vault has written the same down: one read, by the request that the run names, and its lease is over.
    vault.look(|world| {
        let reads: Vec<_> = world.audit.iter().filter(|line| line.path == DATABASE).collect();
        assert_eq!(reads.len(), 1, "nothing was read that is not on record: {reads:?}");
        assert_eq!((&reads[0].request_id, reads[0].status), (&request, 200));
        assert!(world.leases.contains_key(&lease) && world.open_leases().is_empty(), "{:?}", world.leases);
    });

    let listed = |up: &Up| up.run(&["audit", "list", "-o", "json"]).out;
    staging.until(|up| [&credential, &request, &lease].iter().all(|id| listed(up).contains(id.as_str())));
    let everything = [
        listed(&staging.up),
        staging.up.run(&["events", "-o", "json"]).out,
        staging.up.run(&["run", "logs", &run]).out,
        staging.get(&format!("/runs/{run}/steps")).to_string(),
        std::fs::read_to_string(staging.up.path("worker.log")).unwrap(),
    ];
    assert!(everything.iter().all(|text| !text.contains(VALUE) && !text.contains(SECRET_ID)));
    let read = staging.up.run(&["run", "logs", &run]).out;
    assert!(!read.trim().is_empty(), "what the command printed is there, without the value");
}
