//! [`UsedCredentials`]: what a step was given, still known when the step was dropped where it stood.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use interlock_core::time::Timestamp;
pub use interlock_core::work::credential::CredentialUsed;
use interlock_core::work::credential::{CREDENTIAL_ID_BYTES_MAX, CREDENTIALS_PER_REPORT_MAX};

/// The credentials that a step has used so far. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct UsedCredentials(Arc<Mutex<Vec<CredentialUsed>>>);

impl UsedCredentials {
    pub fn all(&self) -> Vec<CredentialUsed> {
        self.used().clone()
    }

    /// Whether it is the first time. Of those beyond what a report may name nothing is kept: a step that fetches so often
    /// renews the same secrets.
    pub(crate) fn add(&self, used: CredentialUsed) -> bool {
        let used = CredentialUsed {
            credential_id: cut(used.credential_id),
            vault_request_id: used.vault_request_id.map(cut),
            lease_id: used.lease_id.map(cut),
            ..used
        };
        let mut all = self.used();
        let is_new = !all.contains(&used);
        if is_new && all.len() < CREDENTIALS_PER_REPORT_MAX {
            all.push(used);
        }
        is_new
    }

    pub(crate) fn set_revoked(&self, lease_id: &str, revoked_at: Option<Timestamp>) {
        let (mut all, lease_id) = (self.used(), cut(lease_id.to_owned()));
        for used in all.iter_mut().filter(|used| used.lease_id.as_ref() == Some(&lease_id)) {
            used.revoked_at = revoked_at;
        }
    }

    /// The list is whole after every statement that changes it.
    fn used(&self) -> MutexGuard<'_, Vec<CredentialUsed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An id that a report may hold. A provider's longer one is found by its beginning.
fn cut(mut id: String) -> String {
    id.truncate(id.floor_char_boundary(CREDENTIAL_ID_BYTES_MAX));
    id
}
