//! One file with all secrets, encrypted with [age](https://age-encryption.org), for installations without a Vault.
//!
//! Inside is a JSON object of names and values; a worker that serves several tenants has names such as `TENANT/NAME`. The
//! identity (the private key) is a file of its own, so that the encrypted one can be copied and kept in version control.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use age::secrecy::ExposeSecret as _;
use age::x25519::Identity;
use futures::future::BoxFuture;
use interlock_core::ids::TenantId;
use rustix::fs::{FlockOperation, flock};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use crate::error::Cause;
use crate::fields::{Fields, parse};
use crate::limits;
use crate::memory::{SecretBuf, SecretMemoryError};
use crate::provider::{Description, Entry, Fetched, Lease, Location, SecretProvider, Tenancy, no_leases};
use crate::reading::{off_thread, read_private};

const PRIVATE: u32 = 0o600;

/// The two files, as `interlock secret` uses them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgeFile {
    pub file: PathBuf,
    /// The private key that opens it.
    pub identity: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum AgeFileError {
    #[error("{}: {error}", .path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("{} exists already; it is not overwritten", .0.display())]
    Exists(PathBuf),
    #[error("{} is not there; `interlock secret init` makes it", .0.display())]
    Missing(PathBuf),
    #[error("others can read {} (its mode is {mode:03o}); run: chmod 600 {}", .path.display(), .path.display())]
    Open { path: PathBuf, mode: u32 },
    #[error("{} holds no age identity (AGE-SECRET-KEY-1…)", .0.display())]
    NoIdentity(PathBuf),
    #[error("{} cannot be decrypted with {}: {why}", .file.display(), .identity.display())]
    Undecryptable { file: PathBuf, identity: PathBuf, why: String },
    #[error("{} cannot be encrypted: {why}", .file.display())]
    Unencryptable { file: PathBuf, why: String },
    /// The parser's own words might repeat what is inside.
    #[error("{} holds something else than a JSON object of names and texts", .0.display())]
    Malformed(PathBuf),
    #[error("{} would be longer than {max} bytes", .0.display(), max = limits::AGE_FILE_BYTES_MAX)]
    TooLong(PathBuf),
    #[error(transparent)]
    Memory(#[from] SecretMemoryError),
}

impl AgeFile {
    /// Makes an identity and an empty file, and answers with the public key.
    pub fn init(&self) -> Result<String, AgeFileError> {
        for path in [&self.file, &self.identity] {
            if path.exists() {
                return Err(AgeFileError::Exists(path.clone()));
            }
        }
        let identity = Identity::generate();
        let public = identity.to_public().to_string();
        let text = Zeroizing::new(format!(
            "# The key to {}. Keep it apart from that file.\n# public key: {public}\n{}\n",
            self.file.display(),
            identity.to_string().expose_secret()
        ));
        let at = |path: &Path| {
            let path = path.to_owned();
            move |error: io::Error| match error.kind() {
                io::ErrorKind::AlreadyExists => AgeFileError::Exists(path),
                _ => AgeFileError::File { path, error },
            }
        };
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(PRIVATE)
            .open(&self.identity)
            .map_err(at(&self.identity))?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(at(&self.identity))?;
        self.write(&identity, b"{}")?;
        Ok(public)
    }

    pub fn names(&self) -> Result<Vec<String>, AgeFileError> {
        let plain = self.decrypt(&self.read_identity()?)?;
        Ok(self.entries(&plain)?.into_keys().collect())
    }

    /// Whether it replaced one of that name.
    pub fn set(&self, name: &str, value: &SecretBuf) -> Result<bool, AgeFileError> {
        self.change(|entries, out| {
            let replaced = entries.remove(name).is_some();
            put_name(out, name);
            out.reserve(2 * value.reveal().len() + 2);
            // Writing to memory does not fail.
            let _ = serde_json::to_writer(&mut **out, value.reveal());
            replaced
        })
    }

    /// Whether there was one of that name.
    pub fn remove(&self, name: &str) -> Result<bool, AgeFileError> {
        self.change(|entries, _| entries.remove(name).is_some())
    }

    /// Writes the file anew: what `change` has written, and then the entries that it has left.
    fn change(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, &RawValue>, &mut Zeroizing<Vec<u8>>) -> bool,
    ) -> Result<bool, AgeFileError> {
        let identity = self.read_identity()?;
        // Two changes at once would lose one of them.
        let lock =
            File::open(&self.identity).map_err(|error| AgeFileError::File { path: self.identity.clone(), error })?;
        flock(&lock, FlockOperation::LockExclusive)
            .map_err(|error| AgeFileError::File { path: self.identity.clone(), error: error.into() })?;
        let plain = self.decrypt(&identity)?;
        let mut entries = self.entries(&plain)?;
        let room = plain.len() + 2 * limits::SECRET_BYTES_MAX;
        let mut out = Zeroizing::new(Vec::with_capacity(room));
        out.push(b'{');
        let changed = change(&mut entries, &mut out);
        for (name, value) in entries {
            put_name(&mut out, &name);
            out.extend_from_slice(value.get().as_bytes());
        }
        out.push(b'}');
        self.write(&identity, &out)?;
        Ok(changed)
    }

    fn entries<'a>(&self, plain: &'a [u8]) -> Result<BTreeMap<String, &'a RawValue>, AgeFileError> {
        serde_json::from_slice(plain).map_err(|_| AgeFileError::Malformed(self.file.clone()))
    }

    fn read_identity(&self) -> Result<Identity, AgeFileError> {
        let path = &self.identity;
        let at = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => AgeFileError::Missing(path.clone()),
            _ => AgeFileError::File { path: path.clone(), error },
        };
        let mode = fs::metadata(path).map_err(at)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(AgeFileError::Open { path: path.clone(), mode });
        }
        let bytes = read_private(path, limits::IDENTITY_BYTES_MAX).map_err(at)?;
        let text = std::str::from_utf8(&bytes).unwrap_or_default();
        let found = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
        found.and_then(|key| key.parse().ok()).ok_or_else(|| AgeFileError::NoIdentity(path.clone()))
    }

    fn decrypt(&self, identity: &Identity) -> Result<Zeroizing<Vec<u8>>, AgeFileError> {
        let cipher = match fs::metadata(&self.file).map(|file| file.len()) {
            Ok(len) if len > limits::AGE_FILE_BYTES_MAX as u64 => Err(AgeFileError::TooLong(self.file.clone())),
            Ok(_) => fs::read(&self.file).map_err(|error| AgeFileError::File { path: self.file.clone(), error }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(AgeFileError::Missing(self.file.clone())),
            Err(error) => Err(AgeFileError::File { path: self.file.clone(), error }),
        }?;
        let undecryptable =
            |why: String| AgeFileError::Undecryptable { file: self.file.clone(), identity: self.identity.clone(), why };
        let decryptor = age::Decryptor::new_buffered(&cipher[..]).map_err(|error| undecryptable(error.to_string()))?;
        let keys = std::iter::once(identity as &dyn age::Identity);
        let mut reader = decryptor.decrypt(keys).map_err(|error| undecryptable(error.to_string()))?;
        // What is inside is shorter than the file: the buffer is never moved, so no copy is left behind.
        let mut plain = Zeroizing::new(Vec::with_capacity(cipher.len()));
        reader.read_to_end(&mut plain).map_err(|error| undecryptable(error.to_string()))?;
        Ok(plain)
    }

    /// The file is there whole, or as it was before.
    fn write(&self, identity: &Identity, plain: &[u8]) -> Result<(), AgeFileError> {
        let unencryptable = |why: String| AgeFileError::Unencryptable { file: self.file.clone(), why };
        let cipher = age::encrypt(&identity.to_public(), plain).map_err(|error| unencryptable(error.to_string()))?;
        if cipher.len() > limits::AGE_FILE_BYTES_MAX {
            return Err(AgeFileError::TooLong(self.file.clone()));
        }
        let mut name = self.file.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let new = self.file.with_file_name(name);
        let written = (|| {
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(PRIVATE).open(&new)?;
            file.write_all(&cipher)?;
            file.sync_all()?;
            fs::rename(&new, &self.file)?;
            let folder = self.file.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        })();
        written.map_err(|error| {
            let _ = fs::remove_file(&new);
            AgeFileError::File { path: self.file.clone(), error }
        })
    }
}

/// A name with its colon, after a comma unless it is the first.
fn put_name(out: &mut Zeroizing<Vec<u8>>, name: &str) {
    if out.len() > 1 {
        out.push(b',');
    }
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(&mut **out, name);
    out.push(b':');
}

/// The encrypted file as a worker reads it: anew each time, so that a secret can be changed without a restart.
pub struct AgeSecrets {
    name: String,
    at: AgeFile,
    tenancy: Tenancy,
}

impl AgeSecrets {
    pub fn new(name: impl Into<String>, at: AgeFile, tenancy: Tenancy) -> Self {
        Self { name: name.into(), at, tenancy }
    }
}

impl AgeFile {
    fn value(&self, path: &str) -> Result<Fetched, Cause> {
        let unusable = |error: AgeFileError| Cause::NotThere(error.to_string());
        let identity = self.read_identity().map_err(unusable)?;
        let plain = self.decrypt(&identity).map_err(unusable)?;
        let malformed = |_| unusable(AgeFileError::Malformed(self.file.clone()));
        let mut found = parse(&plain, Fields::Only(path)).map_err(malformed)?;
        match found.remove(path) {
            Some(value) if value.reveal().is_empty() => Err(Cause::NotThere("it is empty".to_owned())),
            Some(value) => Ok(Fetched::of_value(value)),
            None => Err(Cause::NotThere(format!("there is no `{path}` in {}", self.file.display()))),
        }
    }
}

impl SecretProvider for AgeSecrets {
    fn locate(&self, tenant: TenantId, name: &str) -> Result<Location, Cause> {
        self.tenancy.locate(tenant, name)
    }

    fn fetch<'a>(&'a self, entry: &'a Entry) -> BoxFuture<'a, Result<Fetched, Cause>> {
        let (at, path) = (self.at.clone(), entry.path.clone());
        Box::pin(off_thread(move || at.value(&path)))
    }

    fn renew<'a>(&'a self, _: &'a str, _: Duration) -> BoxFuture<'a, Result<Lease, Cause>> {
        no_leases()
    }

    fn revoke<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), Cause>> {
        no_leases()
    }

    fn describe(&self) -> BoxFuture<'_, Description> {
        Box::pin(async {
            let at = self.at.clone();
            let names = off_thread(move || at.names()).await;
            Description {
                name: self.name.clone(),
                kind: "age",
                at: self.at.file.display().to_string(),
                reachable: names.is_ok(),
                detail: match names {
                    Ok(names) => format!("{} secrets", names.len()),
                    Err(error) => error.to_string(),
                },
            }
        })
    }
}
