//! The server's secret: the key of every hash that stands in for a credential in the store. It lives in a file beside
//! the data, never in the database, so a stolen database opens no door. All servers of one store share it.

use std::fmt;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit as _, Mac as _};
use interlock_core::json::Hash;
use interlock_engine::EngineError;
use interlock_engine::vault::Vault;
use interlock_evidence::SigningKey;
use interlock_store::Installation;
use sha2::Sha256;

use crate::private_file;

const SECRET_BYTES: usize = 32;
/// The store's note of which secret its hashes were made with.
const FINGERPRINT: &str = "secret_fingerprint";

#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("cannot use the server's secret {path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("the server's secret {path} is not {} hexadecimal digits; restore the file from a backup", SECRET_BYTES * 2)]
    Malformed { path: PathBuf },
    #[error(
        "{path} is not there, and the store's keys were made with it: copy the file `server.secret` from the data folder of the first server or from where it is kept with the backups, or name it with --secret-file"
    )]
    Missing { path: PathBuf },
    #[error(
        "this server's secret is not the one that the store's keys were made with: copy the file `server.secret` from the data folder of the first server, or name it with --secret-file"
    )]
    Foreign,
    #[error(transparent)]
    Store(#[from] EngineError),
}

#[derive(Clone)]
pub struct ServerSecret([u8; SECRET_BYTES]);

impl fmt::Debug for ServerSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerSecret(…)")
    }
}

impl ServerSecret {
    /// For one process only: nothing made with it is understood by another.
    pub fn random() -> Self {
        Self(random_bytes())
    }

    /// The secret in this file, made if it is not there. Servers that start at the same moment agree on one. Refused where
    /// others can get at the file.
    pub fn open(path: &Path) -> Result<Self, SecretError> {
        let failed = |source| SecretError::File { path: path.to_owned(), source };
        let fresh = hex(&random_bytes::<SECRET_BYTES>());
        write_once(path, &fresh).map_err(failed)?;
        let text = private_file::read(path).map_err(failed)?;
        let bytes = unhex(text.trim()).ok_or_else(|| SecretError::Malformed { path: path.to_owned() })?;
        Ok(Self(bytes))
    }

    /// The secret in this file, which has to be the store's. It is made only where the store has none yet.
    pub async fn open_for(store: &Installation, path: &Path) -> Result<Self, SecretError> {
        let kept = store.kept(FINGERPRINT).await.map_err(EngineError::from)?;
        if kept.is_some() && !path.exists() {
            return Err(SecretError::Missing { path: path.to_owned() });
        }
        let secret = Self::open(path)?;
        secret.claim(store).await?;
        Ok(secret)
    }

    /// Checks that the store's hashes were made with this secret. A new store belongs to the first secret that claims
    /// it.
    pub async fn claim(&self, store: &Installation) -> Result<(), SecretError> {
        let fingerprint = self.hash("fingerprint", b"").to_string();
        store.keep_once(FINGERPRINT, fingerprint.clone()).await.map_err(EngineError::from)?;
        let kept = store.kept(FINGERPRINT).await.map_err(EngineError::from)?;
        if kept.is_none_or(|kept| kept == fingerprint) { Ok(()) } else { Err(SecretError::Foreign) }
    }

    /// The key under which the store keeps other people's secrets.
    pub fn vault(&self) -> Vault {
        Vault::new(&self.hash("vault", b"").0)
    }

    /// The key that signs audit logs and evidence: as secret as this one, and the same on every server of the store.
    pub fn audit_key(&self) -> SigningKey {
        SigningKey::from_seed(&format!("interlock/{}", self.installation()), &self.hash("audit", b"").0)
    }

    /// A name for all servers of the store.
    pub fn installation(&self) -> String {
        self.hash("installation", b"").to_string()[..16].to_owned()
    }

    /// What tickets for the broker are sealed with: every server of the store opens those of the others.
    pub fn broker_key(&self) -> [u8; SECRET_BYTES] {
        self.hash("broker", b"").0
    }

    /// A keyed hash. `purpose` keeps hashes of one kind from passing as another.
    pub fn hash(&self, purpose: &str, text: &[u8]) -> Hash {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        mac.update(text);
        Hash(mac.finalize().into_bytes().into())
    }
}

/// The text of a file that is written at most once, in one piece and readable by its owner only. A second writer gets
/// what the first one wrote.
pub(super) fn write_once(path: &Path, text: &str) -> io::Result<String> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => return found,
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", hex(&random_bytes::<8>())));
    let draft = path.with_file_name(name);
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    // A link appears at once and whole, or not at all because another writer was first.
    let linked = std::fs::hard_link(&draft, path);
    std::fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => std::fs::read_to_string(path),
    }
}

pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Without randomness there are no secrets; nothing here can go on.
    getrandom::fill(&mut bytes).expect("the system has a source of randomness");
    bytes
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = fmt::Write::write_fmt(&mut text, format_args!("{byte:02x}"));
        text
    })
}

fn unhex(text: &str) -> Option<[u8; SECRET_BYTES]> {
    if text.len() != SECRET_BYTES * 2 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; SECRET_BYTES];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_secret_is_made_once_and_read_again() {
        let folder = std::env::temp_dir().join(format!("interlock-secret-{}", std::process::id()));
        let path = folder.join("deep/server.secret");
        let made: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| ServerSecret::open(&path).unwrap().0)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(made.iter().all(|secret| *secret == made[0]), "all openers agree");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no drafts stay behind");
        std::fs::write(&path, "short").unwrap();
        assert!(matches!(ServerSecret::open(&path), Err(SecretError::Malformed { .. })));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn hashes_depend_on_secret_and_purpose() {
        let (one, other) = (ServerSecret([1; 32]), ServerSecret([2; 32]));
        assert_eq!(one.hash("a", b"x"), one.hash("a", b"x"));
        assert_ne!(one.hash("a", b"x"), other.hash("a", b"x"));
        assert_ne!(one.hash("a", b"x"), one.hash("b", b"x"));
        assert_ne!(one.hash("a", b"bx"), one.hash("ab", b"x"));
        assert!(!format!("{one:?}").contains('1'));
    }
}
