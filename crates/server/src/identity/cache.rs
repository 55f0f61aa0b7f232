//! Keys that were just looked up. A busy key is asked about thousands of times a second, and the store only now and
//! then; a revoked one is refused at once all the same:
//!
//! - on the server that revoked it, because every such write empties the cache;
//! - on other servers, because an entry is not believed once another server has committed anything since it was read,
//!   except for a blink that bounds how often the store is asked; and never longer than [`TRUSTED`], should the
//!   wake-up channel be broken.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use interlock_core::json::Hash;
use interlock_core::time::{Millis, Timestamp};
use tokio::sync::watch;

use super::caller::Caller;

/// How long an entry counts while no commit of another server is announced.
pub const TRUSTED: Millis = Millis::from_secs(1);
/// How long it counts while other servers commit.
const BLINK: Millis = Millis(50);
const ENTRIES_MAX: usize = 10_000;

pub struct Entry {
    pub hash: Hash,
    pub caller: Caller,
    pub expires_at: Option<Timestamp>,
    pub requests_per_min: Option<u32>,
    pub touched_at: AtomicI64,
    loaded_at: Timestamp,
    wakes: u64,
}

pub struct Cache {
    entries: RwLock<HashMap<String, Arc<Entry>>>,
    /// Rises with every write on this server.
    cleared: AtomicU64,
    wakes: watch::Receiver<u64>,
}

/// What had been committed when a read began.
#[derive(Clone, Copy)]
pub struct CacheGeneration {
    wakes: u64,
    cleared: u64,
}

/// A key as it was read, before it becomes an entry.
pub struct Loaded {
    pub hash: Hash,
    pub caller: Caller,
    pub expires_at: Option<Timestamp>,
    pub requests_per_min: Option<u32>,
    pub touched_at: Option<Timestamp>,
}

impl Cache {
    pub fn new(wakes: watch::Receiver<u64>) -> Self {
        Self { entries: RwLock::default(), cleared: AtomicU64::new(0), wakes }
    }

    /// To be taken before a read: it says what the read may have missed.
    pub fn seen(&self) -> CacheGeneration {
        CacheGeneration { wakes: *self.wakes.borrow(), cleared: self.cleared.load(Ordering::Acquire) }
    }

    pub fn get(&self, lookup: &str, now: Timestamp) -> Option<Arc<Entry>> {
        let entry = self.entries.read().unwrap_or_else(PoisonError::into_inner).get(lookup).cloned()?;
        let trusted = if *self.wakes.borrow() == entry.wakes { TRUSTED } else { BLINK };
        (now.since(entry.loaded_at) < trusted).then_some(entry)
    }

    pub fn put(&self, lookup: &str, loaded: Loaded, now: Timestamp, seen: CacheGeneration) -> Arc<Entry> {
        let Loaded { hash, caller, expires_at, requests_per_min, touched_at } = loaded;
        let touched_at = AtomicI64::new(touched_at.map_or(0, |at| at.0));
        let entry = Entry { hash, caller, expires_at, requests_per_min, touched_at, loaded_at: now, wakes: seen.wakes };
        let entry = Arc::new(entry);
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if self.cleared.load(Ordering::Acquire) != seen.cleared {
            return entry;
        }
        if entries.len() >= ENTRIES_MAX {
            entries.clear();
        }
        if let Some(before) = entries.insert(lookup.to_owned(), Arc::clone(&entry)) {
            entry.touched_at.fetch_max(before.touched_at.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        entry
    }

    /// Rises whenever what was looked up before counts no more.
    pub fn changes(&self) -> u64 {
        self.cleared.load(Ordering::Acquire)
    }

    pub fn clear(&self) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        self.cleared.fetch_add(1, Ordering::AcqRel);
        entries.clear();
    }
}
