//! Payloads beside a backup: the objects that a copy of the database refers to, copied into a folder next to it and
//! brought back from there. Every object is held against its hash on its way, and a few of them are in memory at once.

use futures::StreamExt as _;
use interlock_core::ids::TenantId;
use interlock_store::Store;

use super::survey::{AT_ONCE, FoundObject, NAMED_MAX, Progress, Survey, SurveyError, walk};
use super::{Objects, PayloadError, Reference};

/// Copies every object that `copy` (a copy of the database) refers to. `live` is the database itself, which goes on
/// meanwhile: it is asked whether an object that is missing is missed, or has gone with its run since.
pub async fn back_up(
    copy: &Store,
    live: &Store,
    from: &Objects,
    to: &Objects,
    heard: impl FnMut(Progress),
) -> Result<Survey, SurveyError> {
    let one = async |tenant: TenantId, reference: Reference| {
        let json = match from.get(tenant, &reference).await {
            Err(PayloadError::Missing { sha256 }) if !is_needed(live, tenant, &reference).await? => {
                tracing::debug!(%sha256, "a payload went with its run while it was to be copied");
                return Ok(FoundObject::Gone);
            }
            found => found?,
        };
        to.put(tenant, &reference, &json).await.map(|()| FoundObject::Whole)
    };
    walk(copy, one, heard).await
}

async fn is_needed(live: &Store, tenant: TenantId, reference: &Reference) -> Result<bool, PayloadError> {
    let needed = live.payload_is_needed(tenant, reference.sha256).await;
    needed.map_err(|error| PayloadError::Unavailable { what: error.to_string() })
}

/// What came back.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BroughtBack {
    /// Objects that were written.
    pub objects: u64,
    pub bytes: u64,
    /// Objects that were there already, whole.
    pub kept: u64,
    /// The first of those that are not what their name says, and were left out.
    pub damaged: Vec<String>,
    pub damaged_total: u64,
}

/// Copies every object of a backup's folder to where payloads are kept. May be repeated: what is there and whole stays.
pub async fn bring_back(
    from: &Objects,
    to: &Objects,
    mut heard: impl FnMut(Progress),
) -> Result<BroughtBack, PayloadError> {
    let mut brought = BroughtBack::default();
    let one = async |tenant: TenantId, reference: Reference| {
        let json = from.get(tenant, &reference).await?;
        match to.get(tenant, &reference).await {
            Ok(_) => Ok(false),
            Err(error) if error.is_transient() => Err(error),
            Err(_) => to.replace(tenant, &reference, &json).await.map(|()| true),
        }
    };
    let mut copies = from
        .list()
        .map(|found| {
            let copied = found.as_ref().ok().and_then(|found| found.object).map(|(tenant, object)| one(tenant, object));
            async move {
                let found = found?;
                let outcome = match copied {
                    Some(copied) => Some(copied.await),
                    None => None,
                };
                Ok::<_, PayloadError>((found, outcome))
            }
        })
        .buffer_unordered(AT_ONCE);
    let mut seen = 0;
    while let Some(copied) = copies.next().await {
        let (found, outcome) = copied?;
        match outcome {
            Some(Ok(true)) => {
                brought.objects += 1;
                brought.bytes += found.bytes;
            }
            Some(Ok(false)) => brought.kept += 1,
            Some(Err(error)) if error.is_transient() => return Err(error),
            Some(Err(_)) | None => {
                brought.damaged_total += 1;
                if brought.damaged.len() < NAMED_MAX {
                    brought.damaged.push(found.name);
                }
            }
        }
        seen += 1;
        heard(Progress { references: seen, bytes: brought.bytes });
    }
    Ok(brought)
}
