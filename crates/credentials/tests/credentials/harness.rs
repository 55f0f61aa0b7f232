//! A worker's credentials against a simulated Vault.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use interlock_core::ids::TenantId;
use interlock_core::time::Timestamp;
use interlock_credentials::vault::{Login, Vault, VaultOptions, VaultSecret};
use interlock_credentials::{
    Clock, Credentials, CredentialsOptions, EntryKind, LeaseJournal, SecretProvider, StepCredentials, StepScope, limits,
};
use interlock_outbound::{Outbound, OutboundOptions};
use uuid::Uuid;

use crate::simulator::{DATABASE, ROLE_ID, SECRET_ID, Simulator};

pub const TENANT: TenantId = TenantId(Uuid::from_u128(7));

/// A clock that goes on by a millisecond at each look.
pub fn clock() -> Clock {
    let now = AtomicI64::new(1_000);
    Clock::new(move || Timestamp(now.fetch_add(1, Ordering::Relaxed)))
}

/// A folder of this test's own, gone with it.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("interlock-credentials-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// A file that only its owner may read.
    pub fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    pub fn journals(&self) -> PathBuf {
        self.0.join("leases")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn app_role(folder: &Folder) -> Login {
    let secret_id_file = folder.put("secret-id", &format!("{SECRET_ID}\n"));
    Login::AppRole { mount: "approle".to_owned(), role_id: ROLE_ID.to_owned(), secret_id_file, wrapped: false }
}

pub fn secret(path: &str, kind: EntryKind, field: &str) -> VaultSecret {
    VaultSecret { path: path.to_owned(), kind, field: field.to_owned() }
}

/// A client of the simulator, which waits for an answer as long as a client may.
pub fn vault(simulator: &Simulator, login: Login) -> Vault {
    vault_with_timeout(simulator, login, limits::CALL_TIMEOUT_MAX)
}

fn vault_with_timeout(simulator: &Simulator, login: Login, timeout: Duration) -> Vault {
    let open = vec!["127.0.0.1/32".parse().unwrap()];
    Vault::new(VaultOptions {
        name: "corp".to_owned(),
        url: simulator.url.clone(),
        namespace: Some("team".to_owned()),
        login,
        secrets: BTreeMap::from([
            ("TOKEN".to_owned(), secret("secret/data/app", EntryKind::Versioned, "token")),
            ("OLD".to_owned(), secret("kv/app", EntryKind::Plain, "token")),
            ("TENANTS".to_owned(), secret("secret/data/{tenant}/app", EntryKind::Versioned, "token")),
            ("NO_FIELD".to_owned(), secret("secret/data/app", EntryKind::Versioned, "nothing")),
            ("DB_USER".to_owned(), secret(DATABASE, EntryKind::Leased, "username")),
            ("DB_PASSWORD".to_owned(), secret(DATABASE, EntryKind::Leased, "password")),
        ]),
        timeout,
        outbound: Outbound::new(OutboundOptions { open, ..OutboundOptions::default() }).unwrap(),
        clock: clock(),
    })
}

/// A worker with this provider, and a journal in the folder.
pub fn worker(provider: impl SecretProvider + 'static, journals: &Path) -> Credentials {
    let provider: Arc<dyn SecretProvider> = Arc::new(provider);
    Credentials::new(CredentialsOptions {
        providers: [("corp".to_owned(), provider)].into(),
        environments: [("default".to_owned(), "corp".to_owned())].into(),
        environment: "default".to_owned(),
        journal: Some(LeaseJournal::open(journals).unwrap()),
        clock: clock(),
    })
}

pub fn step(credentials: &Credentials) -> StepCredentials {
    credentials.step(StepScope { tenant: TENANT, environment: None })
}

/// A Vault with a secret, and a worker that may read it.
pub async fn vault_and_worker() -> (Simulator, Credentials, Folder) {
    vault_and_worker_with_timeout(limits::CALL_TIMEOUT_MAX).await
}

/// The same, and the worker waits for the Vault's answers for this long.
pub async fn vault_and_worker_with_timeout(timeout: Duration) -> (Simulator, Credentials, Folder) {
    let simulator = Simulator::start().await;
    simulator
        .world()
        .kv
        .insert("secret/data/app".to_owned(), serde_json::json!({ "token": "kv-s3cr3t", "port": 5432 }));
    let folder = Folder::new();
    let credentials = worker(vault_with_timeout(&simulator, app_role(&folder), timeout), &folder.journals());
    (simulator, credentials, folder)
}
