//! The directories of the runs that a session has as a whole. One is no other run's, and goes when the run does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use interlock_core::work::offer::RunRef;
use interlock_sandbox::{SecretValue, WorkFolder};

use crate::limits;

/// A run's directory, with the secrets of the steps that have used it. A step may leave a secret there: a later one must not
/// have it in its output either.
pub(crate) struct RunFolder {
    pub folder: WorkFolder,
    secrets: Mutex<Vec<SecretValue>>,
}

impl RunFolder {
    pub fn new(folder: WorkFolder) -> Self {
        Self { folder, secrets: Mutex::default() }
    }

    pub fn remember(&self, secret: &SecretValue) {
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        if !secrets.contains(secret) {
            secrets.push(secret.clone());
        }
    }

    pub fn secrets(&self) -> Vec<SecretValue> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Default)]
pub(crate) struct Workdirs(Mutex<BTreeMap<RunRef, Arc<RunFolder>>>);

impl Workdirs {
    /// The map is consistent after every statement that changes it, so a panic elsewhere cannot have broken it.
    fn map(&self) -> MutexGuard<'_, BTreeMap<RunRef, Arc<RunFolder>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a fresh directory for a run, in the place of one that it may have had before.
    pub fn keep(&self, at: RunRef, folder: RunFolder) {
        self.map().insert(at, Arc::new(folder));
    }

    pub fn get(&self, at: RunRef) -> Option<Arc<RunFolder>> {
        self.map().get(&at).cloned()
    }

    /// It is removed once no command uses it any more.
    pub fn let_go(&self, at: RunRef) {
        let folder = self.map().remove(&at);
        // Removing takes a while, and no caller has to wait for it.
        tokio::task::spawn_blocking(move || drop(folder));
    }

    pub fn listed(&self) -> Vec<RunRef> {
        self.map().keys().copied().collect()
    }

    pub fn has_room(&self) -> bool {
        self.map().len() < limits::WORKDIRS_MAX
    }
}
