//! The objects: a folder, or a bucket that speaks S3. What is written is on disk before it counts as written, and what
//! is read is what was written, or an error.

use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use interlock_core::ids::TenantId;
use interlock_core::json::HashHex;
use interlock_core::json::{Hash, Json};
use interlock_core::time::Timestamp;
use interlock_outbound::Outbound;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, RetryConfig};
use tokio::time::timeout;

use super::outbound::Guarded;
use super::{PayloadError, Reference, staging};

/// How long one call may take, and all its retries together.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
const RETRIES_MAX: usize = 3;

/// A place for payloads. Cheap to clone.
#[derive(Clone)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: String,
    /// None where they are not in a folder.
    folder: Option<Arc<FilePath>>,
}

/// An object of the store.
pub(super) struct ListedObject {
    pub name: String,
    pub bytes: u64,
    /// What its name says it is; none if that is no name of a payload.
    pub object: Option<(TenantId, Reference)>,
}

/// Why a place cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("`{place}` is no place for payloads: give a folder, or `s3://BUCKET/PREFIX`")]
    Invalid { place: String },
    #[error("payloads cannot be kept in {place}: {what}")]
    Unusable { place: String, what: String },
}

impl Objects {
    /// A folder (made if it is not there), or `s3://BUCKET/PREFIX`. Calls to a bucket obey the rules for all calls to
    /// the outside; its credentials, region and endpoint come from the environment (`AWS_…`).
    pub fn open(place: &str, outbound: &Outbound) -> Result<Self, PlaceError> {
        match place.split_once("://") {
            None if place.is_empty() => Err(PlaceError::Invalid { place: place.to_owned() }),
            None => Self::folder(FilePath::new(place)),
            Some(("s3", rest)) => Self::bucket(rest, std::env::vars(), outbound),
            Some(_) => Err(PlaceError::Invalid { place: place.to_owned() }),
        }
    }

    pub fn folder(path: &FilePath) -> Result<Self, PlaceError> {
        let unusable = |what: String| PlaceError::Unusable { place: path.display().to_string(), what };
        // Payloads are as private as the rows that refer to them, wherever the folder is.
        let mut folder = std::fs::DirBuilder::new();
        folder.recursive(true).mode(0o700).create(path).map_err(|error| unusable(error.to_string()))?;
        let mode = std::fs::metadata(path).map_err(|error| unusable(error.to_string()))?.permissions().mode();
        if mode & 0o077 != 0 {
            let private = std::fs::Permissions::from_mode(0o700);
            if let Err(error) = std::fs::set_permissions(path, private) {
                return Err(unusable(format!(
                    "others may read it, and that cannot be changed ({error}); chmod 700 it"
                )));
            }
            tracing::warn!(folder = %path.display(), "others could read the folder of payloads; it is its owner's alone now");
        }
        let store = LocalFileSystem::new_with_prefix(path).map_err(|error| unusable(error.to_string()))?;
        Ok(Self { store: Arc::new(store.with_fsync(true)), prefix: String::new(), folder: Some(path.into()) })
    }

    /// In this process, and gone with it: for a database that is, too.
    pub fn memory() -> Self {
        Self { store: Arc::new(InMemory::new()), prefix: String::new(), folder: None }
    }

    /// `BUCKET/PREFIX`, with settings under the names of their variables (`AWS_REGION`); others are passed over.
    pub fn bucket(
        rest: &str,
        settings: impl IntoIterator<Item = (String, String)>,
        outbound: &Outbound,
    ) -> Result<Self, PlaceError> {
        let place = || format!("s3://{rest}");
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(PlaceError::Invalid { place: place() });
        }
        let mut builder = AmazonS3Builder::new();
        for (name, value) in settings.into_iter().filter(|(name, _)| name.starts_with("AWS_")) {
            if let Ok(key) = name.to_ascii_lowercase().parse() {
                builder = builder.with_config(key, value);
            }
        }
        for key in [AmazonS3ConfigKey::AccessKeyId, AmazonS3ConfigKey::SecretAccessKey] {
            if builder.get_config_value(&key).is_none() {
                // Else the machine's own would be asked for, at an address that is closed.
                let what = format!("set {}", key.as_ref().to_ascii_uppercase());
                return Err(PlaceError::Unusable { place: place(), what });
            }
        }
        let retry = RetryConfig { max_retries: RETRIES_MAX, retry_timeout: CALL_TIMEOUT, ..RetryConfig::default() };
        let store = builder
            .with_bucket_name(bucket)
            .with_retry(retry)
            .with_http_connector(Guarded::new(outbound.clone()))
            .build();
        let unusable = |error: Error| PlaceError::Unusable { place: place(), what: error.to_string() };
        let prefix = prefix.trim_matches('/');
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        Ok(Self { store: Arc::new(store.map_err(unusable)?), prefix, folder: None })
    }

    /// Named by the tenant and the hash: the same payload of one tenant is one object, and no tenant shares with another.
    fn path(&self, tenant: TenantId, sha256: Hash) -> Path {
        let hash = sha256.to_string();
        Path::from(format!("{}{}/{}/{hash}", self.prefix, tenant.0.simple(), &hash[..2]))
    }

    /// Writes a payload, unless it is there.
    pub(super) async fn put(&self, tenant: TenantId, reference: &Reference, json: &Json) -> Result<(), PayloadError> {
        let path = self.path(tenant, reference.sha256);
        let payload = PutPayload::from(json.as_str().as_bytes().to_vec());
        let new = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match within(self.store.put_opts(&path, payload, new)).await? {
            Ok(_) => Ok(()),
            Err(Error::AlreadyExists { .. }) if self.length(&path).await? == Some(reference.bytes) => Ok(()),
            // What stands there is not what its name says.
            Err(Error::AlreadyExists { .. }) => self.replace(tenant, reference, json).await,
            Err(error) => Err(unavailable(error)),
        }
    }

    /// Writes a payload over whatever is there.
    pub(super) async fn replace(
        &self,
        tenant: TenantId,
        reference: &Reference,
        json: &Json,
    ) -> Result<(), PayloadError> {
        let payload = PutPayload::from(json.as_str().as_bytes().to_vec());
        let path = self.path(tenant, reference.sha256);
        within(self.store.put(&path, payload)).await?.map(|_| ()).map_err(unavailable)
    }

    async fn length(&self, path: &Path) -> Result<Option<u64>, PayloadError> {
        match within(self.store.head(path)).await? {
            Ok(found) => Ok(Some(found.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(unavailable(error)),
        }
    }

    /// Whether a payload is there, as far as its length tells.
    pub(super) async fn check(&self, tenant: TenantId, reference: &Reference) -> Result<(), PayloadError> {
        let Reference { sha256, bytes } = *reference;
        match self.length(&self.path(tenant, sha256)).await? {
            Some(length) if length == bytes => Ok(()),
            Some(_) => Err(PayloadError::Altered { sha256 }),
            None => Err(PayloadError::Missing { sha256 }),
        }
    }

    /// Everything that is there, by its name.
    pub(super) fn list(&self) -> impl Stream<Item = Result<ListedObject, PayloadError>> + '_ {
        let prefix = Some(self.prefix.trim_end_matches('/')).filter(|prefix| !prefix.is_empty()).map(Path::from);
        self.store.list(prefix.as_ref()).map(|found| {
            let found = found.map_err(unavailable)?;
            let name = found.location.as_ref().strip_prefix(&self.prefix).unwrap_or(found.location.as_ref());
            Ok(ListedObject { name: name.to_owned(), bytes: found.size, object: read_name(name, found.size) })
        })
    }

    /// A payload, exactly as it was put there.
    pub(super) async fn get(&self, tenant: TenantId, reference: &Reference) -> Result<Json, PayloadError> {
        let Reference { sha256, bytes } = *reference;
        let path = self.path(tenant, sha256);
        let read = async {
            let found = self.store.get(&path).await?;
            // A longer one is not read to its end to find that out.
            if found.meta.size == bytes { found.bytes().await.map(Some) } else { Ok(None) }
        };
        match within(read).await? {
            Ok(Some(found)) if Hash::of(&found) == sha256 => match std::str::from_utf8(&found) {
                Ok(text) => Ok(Json::trusted(text)),
                Err(_) => Err(PayloadError::Altered { sha256 }),
            },
            Ok(_) => Err(PayloadError::Altered { sha256 }),
            Err(Error::NotFound { .. }) => Err(PayloadError::Missing { sha256 }),
            Err(error) => Err(unavailable(error)),
        }
    }

    /// Removes what writes that broke off before this instant have left in the folder.
    pub(super) async fn remove_staging(&self, before: Timestamp) -> Result<u64, PayloadError> {
        let Some(folder) = self.folder.clone() else { return Ok(0) };
        let removed = tokio::task::spawn_blocking(move || staging::remove(&folder, before)).await;
        let failed = |what: String| PayloadError::Unavailable { what };
        removed.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))
    }

    /// Removes a payload; one that is not there is removed already.
    pub(super) async fn delete(&self, tenant: TenantId, sha256: Hash) -> Result<(), PayloadError> {
        match within(self.store.delete(&self.path(tenant, sha256))).await? {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(unavailable(error)),
        }
    }
}

fn read_name(name: &str, bytes: u64) -> Option<(TenantId, Reference)> {
    let mut parts = name.split('/');
    let (tenant, first, hash) = (parts.next()?, parts.next()?, parts.next()?);
    let tenant = TenantId(uuid::Uuid::try_parse(tenant).ok()?);
    let HashHex(sha256) = serde_json::from_value(hash.into()).ok()?;
    let is_named_so = parts.next().is_none() && hash.starts_with(first);
    is_named_so.then_some((tenant, Reference { sha256, bytes }))
}

async fn within<T>(call: impl Future<Output = T>) -> Result<T, PayloadError> {
    let late = |_| PayloadError::Unavailable { what: format!("it did not answer within {} s", CALL_TIMEOUT.as_secs()) };
    timeout(CALL_TIMEOUT, call).await.map_err(late)
}

fn unavailable(error: Error) -> PayloadError {
    PayloadError::Unavailable { what: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_payloads_is_its_owners_alone() {
        let folder = std::env::temp_dir().join(format!("interlock-payloads-{}", std::process::id()));
        let mode = || std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777;
        Objects::folder(&folder).unwrap();
        assert_eq!(mode(), 0o700);
        // A folder that was made before is closed, too.
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        Objects::folder(&folder).unwrap();
        assert_eq!(mode(), 0o700);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
