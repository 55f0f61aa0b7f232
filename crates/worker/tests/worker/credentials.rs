//! Credentials of steps: a lease ends with its step, however that ends, and a step without its credential sends nothing.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use interlock_core::ids::TenantId;
use interlock_core::time::Timestamp;
use interlock_credentials::{
    Cause, Clock, Credentials, CredentialsOptions, Description, Entry, EntryKind, Fetched, Lease, LeaseJournal,
    Location, SecretBuf, SecretProvider,
};
use interlock_protocol::agent::ReportedOutcome;

use crate::connectors::{Target, message, posted, start_with, step};
use crate::fake::Fake;
use crate::harness::vault_and_worker;

/// Makes a token for each step, or refuses to.
#[derive(Clone, Default)]
struct Leasing {
    fetched: Arc<AtomicU32>,
    revoked: Arc<Mutex<Vec<String>>>,
    sealed: bool,
}

impl SecretProvider for Leasing {
    fn locate(&self, _: TenantId, name: &str) -> Result<Location, Cause> {
        let entry = Entry { path: format!("creds/{name}"), kind: EntryKind::Leased };
        Ok(Location { entry, field: "token".to_owned() })
    }

    fn fetch<'a>(&'a self, entry: &'a Entry) -> BoxFuture<'a, Result<Fetched, Cause>> {
        Box::pin(async {
            if self.sealed {
                return Err(Cause::Sealed);
            }
            let number = self.fetched.fetch_add(1, Ordering::Relaxed);
            let lease =
                Lease { id: format!("{}/{number}", entry.path), duration: Duration::from_mins(1), renewable: true };
            let fields = [("token".to_owned(), SecretBuf::new("tok-0123456789")?)].into();
            Ok(Fetched { fields, lease: Some(lease), request_id: Some(format!("request-{number}")) })
        })
    }

    fn renew<'a>(&'a self, id: &'a str, span: Duration) -> BoxFuture<'a, Result<Lease, Cause>> {
        let lease = Lease { id: id.to_owned(), duration: span, renewable: true };
        Box::pin(std::future::ready(Ok(lease)))
    }

    fn revoke<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Cause>> {
        self.revoked.lock().unwrap().push(id.to_owned());
        Box::pin(std::future::ready(Ok(())))
    }

    fn describe(&self) -> BoxFuture<'_, Description> {
        let (name, at) = ("vault".to_owned(), "nowhere".to_owned());
        let description = Description { name, kind: "test", at, reachable: true, detail: String::new() };
        Box::pin(std::future::ready(description))
    }
}

fn credentials(provider: &Leasing) -> (Credentials, PathBuf) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("interlock-worker-leases-{}-{number}", std::process::id()));
    let provider: Arc<dyn SecretProvider> = Arc::new(provider.clone());
    let credentials = Credentials::new(CredentialsOptions {
        providers: [("vault".to_owned(), provider)].into(),
        environments: [("default".to_owned(), "vault".to_owned())].into(),
        environment: "default".to_owned(),
        journal: Some(LeaseJournal::open(&folder).unwrap()),
        clock: Clock::new(|| Timestamp(0)),
    });
    (credentials, folder)
}

#[tokio::test(start_paused = true)]
async fn a_lease_ends_with_its_step_whether_that_succeeds_or_fails() {
    for answer in [posted(), (403, serde_json::json!({ "ok": false, "error": "not_allowed" }))] {
        let (fake, provider) = (Fake::new(), Leasing::default());
        let target = Target::new(move |_, _| Some(answer.clone()));
        let (credentials, folder) = credentials(&provider);
        let running = start_with(&fake, &target, credentials.clone());
        fake.run_one(step(&fake, "slack.post", &message())).await;
        assert_eq!(*provider.revoked.lock().unwrap(), ["creds/TOKEN/0"], "when the step is reported, it is revoked");
        let used = fake.state().reports[0].credentials.clone();
        let told: Vec<_> = used
            .iter()
            .map(|used| (used.credential_id.as_str(), used.vault_request_id.as_deref(), used.lease_id.as_deref()))
            .collect();
        assert_eq!(told, [("vault/TOKEN", Some("request-0"), Some("creds/TOKEN/0"))], "the report says what was used");
        assert!(used[0].revoked_at.is_some() && !format!("{used:?}").contains("tok-0123456789"), "{used:?}");
        running.stop().await;
        drop(credentials);
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_whose_credential_cannot_be_had_sends_nothing_and_says_why() {
    let (fake, provider) = (Fake::new(), Leasing { sealed: true, ..Leasing::default() });
    let target = Target::new(|_, _| Some(posted()));
    let (credentials, folder) = credentials(&provider);
    let running = start_with(&fake, &target, credentials);
    let outcome = fake.run_one(step(&fake, "slack.post", &message())).await;
    let ReportedOutcome::Retry { error, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(error.code, "CREDENTIAL_SEALED");
    assert!(error.message.contains("`TOKEN`") && error.message.contains("sealed"), "{error}");
    running.stop().await;
    assert!(target.asked().is_empty());
    assert!(fake.state().reports[0].credentials.is_empty(), "none was had");
    assert!(!fake.state().outcomes[0].happened, "certainly not: the step may be tried again");
    std::fs::remove_dir_all(folder).unwrap();
}

/// What a report names joins with what the Vault has written down itself.
#[tokio::test]
async fn what_a_report_names_is_found_in_the_vaults_audit_log() {
    let (simulator, credentials, _folder) = vault_and_worker().await;
    let (fake, target) = (Fake::new(), Target::new(|_, _| Some(posted())));
    let running = start_with(&fake, &target, credentials);
    fake.run_one(step(&fake, "slack.post", &message())).await;
    let used = fake.state().reports[0].credentials.clone();
    assert_eq!(used.len(), 1, "{used:?}");
    let reads: Vec<_> = {
        let world = simulator.world();
        world.audit.iter().filter(|line| line.path.starts_with("secret/")).cloned().collect()
    };
    assert_eq!(reads.len(), 1, "nothing was read that is not reported: {reads:?}");
    assert_eq!((used[0].vault_request_id.as_ref(), reads[0].status), (Some(&reads[0].request_id), 200));
    running.stop().await;
}
