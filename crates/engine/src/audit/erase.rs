//! Which entries of a tenant's logs tell of a person. Erasing their details leaves the entries, and the logs verify as
//! before: what is hashed there are salted hashes, and the salts go with the details.

use interlock_boxed::boxed;
use interlock_core::ids::TenantId;
use interlock_evidence::EntryOpening;
use serde_json::Value;

use super::read::{AuditFilter, AuditQuery};
use crate::error::EngineError;
use crate::parts::Audit;

/// Entries that are looked at in one call.
const ENTRIES_LOOKED_AT_MAX: u64 = 4_000;
/// Entries that are read at a time.
const PAGE: usize = 500;

/// An entry's place in the tenant's logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPlace {
    pub number: u64,
    pub entry: u64,
}

impl LogPlace {
    /// Where the first log begins.
    pub const FIRST: Self = Self { number: 1, entry: 0 };
}

/// Entries that tell of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonEntries {
    /// The log that they are in.
    pub number: u64,
    pub entries: Vec<u64>,
    /// Where to look on; none where all was looked at.
    pub next: Option<LogPlace>,
}

impl Audit {
    /// The entries from a place on that tell of the person: as the actor, or by name in their details. Those whose
    /// details are erased already tell of no person.
    #[boxed]
    pub async fn telling_of(
        &self,
        tenant: TenantId,
        person: &str,
        from: LogPlace,
    ) -> Result<PersonEntries, EngineError> {
        let LogPlace { number, entry } = from;
        let newest = self.checkpoint(tenant, None).await?.0;
        let mut telling = PersonEntries { number, entries: Vec::new(), next: None };
        let mut next = Some(entry);
        while let Some(from) = next.filter(|next| *next < entry.saturating_add(ENTRIES_LOOKED_AT_MAX)) {
            let filter = AuditFilter::default();
            let query = AuditQuery { number: Some(number), newest_first: false, from: Some(from), limit: PAGE, filter };
            let page = self.entries(tenant, &query).await?;
            let told =
                page.entries.iter().filter(|logged| logged.opened.as_ref().is_some_and(|told| names(told, person)));
            telling.entries.extend(told.map(|logged| logged.entry.index));
            next = page.next;
        }
        let later = || (number < newest).then_some(LogPlace { number: number + 1, entry: 0 });
        telling.next = next.map(|entry| LogPlace { number, entry }).or_else(later);
        Ok(telling)
    }
}

fn names(opened: &EntryOpening, person: &str) -> bool {
    let details = || opened.details.as_ref().and_then(|text| serde_json::from_str::<Value>(text).ok());
    opened.actor.as_deref() == Some(person) || details().is_some_and(|details| mentions(&details, person))
}

/// Whether a text in it is the name.
fn mentions(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => text == name,
        Value::Array(values) => values.iter().any(|value| mentions(value, name)),
        Value::Object(fields) => fields.values().any(|value| mentions(value, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_is_found_as_a_whole_text_at_any_depth() {
        let details = json!({ "votes": [{ "person": "ada", "notes": "as adam said" }], "ada": 1 });
        assert!(mentions(&details, "ada"));
        assert!(!mentions(&details, "adam") && !mentions(&json!({ "ada": 1 }), "ada"));
    }
}
