//! All references of a store, one after the other: are the objects there, and are they what they should be?

use futures::StreamExt as _;
use interlock_core::ids::TenantId;
use interlock_store::{PayloadHolder, PayloadRecord, PayloadRow, ReadError, Store};

use super::{Objects, PayloadError, Reference};

/// References that are read at once.
const PAGE: usize = 256;
/// Objects that are looked at, or copied, at once: each may be held whole.
pub(super) const AT_ONCE: usize = 8;
/// References to lost objects that are named; the rest are counted.
pub const NAMED_MAX: usize = 100;

/// How much of an object is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Whether it is there, and how long it is.
    Length,
    /// All of it is read, and held against its hash.
    Whole,
}

/// How far a walk has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub references: u64,
    pub bytes: u64,
}

/// A reference to a payload that is missing or altered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostPayload {
    pub row: PayloadRow,
    pub holder: PayloadHolder,
    pub error: PayloadError,
}

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Objects that are as they should be.
    pub objects: u64,
    pub bytes: u64,
    /// The first of those that are not, by who refers to them.
    pub lost: Vec<LostPayload>,
    /// How many references that are in all.
    pub lost_total: u64,
    /// References to missing objects that no run, step or signal uses: what they were recorded for was never committed.
    pub unused: u64,
    /// Objects that went with the last run that needed them, while this was going on.
    pub gone: u64,
}

/// What became of an object that is not lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoundObject {
    Whole,
    Gone,
}

/// Why a walk broke off. Objects that are missing or altered do not break it off.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    #[error(transparent)]
    Store(#[from] ReadError),
    #[error(transparent)]
    Objects(#[from] PayloadError),
}

/// Holds every reference of a store against its object.
pub async fn survey(
    store: &Store,
    objects: &Objects,
    depth: Depth,
    heard: impl FnMut(Progress),
) -> Result<Survey, SurveyError> {
    let look = async |tenant: TenantId, reference: Reference| match depth {
        Depth::Length => objects.check(tenant, &reference).await.map(|()| FoundObject::Whole),
        Depth::Whole => objects.get(tenant, &reference).await.map(|_| FoundObject::Whole),
    };
    walk(store, look, heard).await
}

/// Does something with the object of every reference, once for each object. What is on its way in or out has no object
/// to speak of yet, or any more.
pub(super) async fn walk(
    store: &Store,
    look: impl AsyncFn(TenantId, Reference) -> Result<FoundObject, PayloadError>,
    mut heard: impl FnMut(Progress),
) -> Result<Survey, SurveyError> {
    let mut survey = Survey::default();
    let mut progress = Progress { references: 0, bytes: 0 };
    let mut after: Option<PayloadRow> = None;
    // The object that a page ended with; its other references may open the next one.
    let mut last: Option<(TenantId, Reference, Result<FoundObject, PayloadError>)> = None;
    loop {
        let page = store.payloads_after(after, PAGE).await?;
        let held = || page.iter().filter(|record| !record.sweeping && record.holder != PayloadHolder::NoOwner);
        let mut fresh: Vec<(TenantId, Reference)> = Vec::new();
        for record in held() {
            let object = object_of(record);
            let is_known = last.as_ref().is_some_and(|(tenant, reference, _)| (*tenant, *reference) == object);
            if !is_known && fresh.last() != Some(&object) {
                fresh.push(object);
            }
        }
        let mut looked: Vec<_> = futures::stream::iter(fresh)
            .map(|(tenant, reference)| {
                let outcome = look(tenant, reference);
                async move { (tenant, reference, outcome.await) }
            })
            .buffered(AT_ONCE)
            .collect()
            .await;
        for (_, reference, outcome) in &looked {
            match outcome {
                Ok(FoundObject::Gone) => survey.gone += 1,
                Ok(FoundObject::Whole) => {
                    survey.objects += 1;
                    survey.bytes += reference.bytes;
                }
                Err(error) if error.is_transient() => return Err(error.clone().into()),
                Err(_) => {}
            }
        }
        looked.extend(last.take());
        for record in held() {
            let (tenant, reference) = object_of(record);
            let found = looked.iter().find(|(of, about, _)| (*of, *about) == (tenant, reference));
            if let Some((_, _, Err(error))) = found {
                // Recorded before it was written, and then its owner was not changed: nothing is missed.
                if !store.payload_is_used(record.row).await? {
                    survey.unused += 1;
                    continue;
                }
                survey.lost_total += 1;
                if survey.lost.len() < NAMED_MAX {
                    survey.lost.push(LostPayload { row: record.row, holder: record.holder, error: error.clone() });
                }
            }
        }
        progress.references += page.len() as u64;
        progress.bytes = survey.bytes;
        heard(progress);
        let Some(end) = page.last().filter(|_| page.len() == PAGE) else { return Ok(survey) };
        after = Some(end.row);
        last = looked.into_iter().find(|(tenant, reference, _)| (*tenant, *reference) == object_of(end));
    }
}

fn object_of(record: &PayloadRecord) -> (TenantId, Reference) {
    (record.row.tenant, Reference { sha256: record.row.sha256, bytes: record.bytes })
}
