//! Keys that a server makes by itself: the first one of a new store, for automation, and the one that lets the command
//! line and a worker on the same machine in without being told.
//!
//! Both are written to their file first and to the store after that. Whatever happens in between, the next start finds
//! the file and finishes: the store never has a key whose text is lost.

use std::path::Path;

use interlock_core::ids::{KeyId, TenantId};
use interlock_core::json::Hash;
use interlock_core::tenant::identity::{Role, Roles};
use interlock_engine::audit::{Actor, AuditEvent};
use interlock_engine::{Engine, EngineError};
use interlock_store::{AddKey, KeyRow};

use super::key::{self, KeyText};
use super::keys::{self, NewKey};
use super::note;
use super::secret::{ServerSecret, write_once};

#[derive(Debug, thiserror::Error)]
pub enum FirstKeyError {
    #[error("cannot use the key file {path}: {what}")]
    File { path: String, what: String },
    #[error(transparent)]
    Store(#[from] EngineError),
}

/// Writes the first admin's key to `path`, if the store has never had a key. Answers whether it did.
pub async fn bootstrap(
    engine: &Engine,
    secret: &ServerSecret,
    tenant: TenantId,
    path: &Path,
) -> Result<bool, FirstKeyError> {
    if engine.installation().has_had_a_key().await.map_err(EngineError::from)? {
        return Ok(false);
    }
    let text = in_file(path)?;
    let mut new = NewKey::new(tenant, "bootstrap", admin());
    new.installation = true;
    let key = new.row((engine.fresh_id(), engine.now()), secret, &text, None);
    let note = engine.note_of(tenant, created(&key));
    Ok(engine.installation().add_first_key(key, note).await.map_err(EngineError::from)?)
}

/// Sees to it that `path` holds a key of this store which may do everything, for those who may read the file.
pub async fn local(
    engine: &Engine,
    secret: &ServerSecret,
    tenant: TenantId,
    path: &Path,
) -> Result<KeyText, FirstKeyError> {
    for _ in 0..2 {
        let text = in_file(path)?;
        let hash = text.hash(secret);
        let rows = engine.sign_in().find_keys(text.lookup()).await.map_err(EngineError::from)?;
        match rows.iter().find(|row| key::same(row.hash, hash)) {
            Some(row) if row.revoked_at.is_none() => return Ok(text),
            // An admin has revoked it: make another one.
            Some(_) => remove(path)?,
            None => {
                let mut new = NewKey::new(tenant, "local", admin().with(Role::Worker));
                new.installation = true;
                let mut key = new.row((engine.fresh_id(), engine.now()), secret, &text, None);
                key.id = id_of(hash);
                key.client = key.id.to_string();
                let what = created(&key);
                note::write_noted(engine, tenant, AddKey(key), what).await.map_err(EngineError::from)?;
                return Ok(text);
            }
        }
    }
    Err(failed(path, "it holds a revoked key again and again; is another server using it?"))
}

/// The server makes them by itself.
fn created(key: &KeyRow) -> AuditEvent {
    keys::created(key, &Actor::system())
}

/// Two servers that start at the same moment with the same file make one key.
fn id_of(hash: Hash) -> KeyId {
    let mut bytes = [0; 16];
    bytes[6..].copy_from_slice(&hash.0[..10]);
    KeyId::from_bytes(bytes)
}

fn admin() -> Roles {
    [Role::Admin].into_iter().collect()
}

/// The key in this file, made if it is not there.
fn in_file(path: &Path) -> Result<KeyText, FirstKeyError> {
    let text = write_once(path, KeyText::random().reveal()).map_err(|error| failed(path, &error.to_string()))?;
    check_private(path)?;
    KeyText::parse(text.trim()).ok_or_else(|| failed(path, "it holds something else than a key; move it away"))
}

/// Refuses a key file that other users of the machine may have read or put there.
fn check_private(path: &Path) -> Result<(), FirstKeyError> {
    use std::os::unix::fs::MetadataExt as _;

    let found = std::fs::symlink_metadata(path).map_err(|error| failed(path, &error.to_string()))?;
    let own = rustix::process::geteuid().as_raw();
    let wrong = if !found.file_type().is_file() {
        "it is no plain file, but perhaps a link to somewhere else"
    } else if found.uid() != own {
        "it belongs to another user of this machine, who knows the key"
    } else if found.mode() & 0o077 != 0 {
        "others may read or write it; the key is known"
    } else {
        return Ok(());
    };
    Err(failed(
        path,
        &format!("{wrong}. Remove it, and a new key is made (0600, owned by the user that runs the server)"),
    ))
}

fn remove(path: &Path) -> Result<(), FirstKeyError> {
    std::fs::remove_file(path).map_err(|error| failed(path, &error.to_string()))
}

fn failed(path: &Path, what: &str) -> FirstKeyError {
    FirstKeyError::File { path: path.display().to_string(), what: what.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_key_file_that_others_can_read_or_point_elsewhere_is_refused() {
        let folder = std::env::temp_dir().join(format!("interlock-first-key-{}", std::process::id()));
        let path = folder.join("admin.key");
        let made = in_file(&path).unwrap();
        assert!(in_file(&path).unwrap() == made, "its own file is read again");
        for mode in [0o640, 0o604, 0o620] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let refused = in_file(&path).err().unwrap().to_string();
            assert!(refused.contains("others may read") && refused.contains("Remove it"), "{refused}");
            assert!(!refused.contains(made.reveal()));
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let link = folder.join("link.key");
        symlink(&path, &link).unwrap();
        assert!(in_file(&link).err().unwrap().to_string().contains("no plain file"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
