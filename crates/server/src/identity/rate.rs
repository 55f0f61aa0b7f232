//! How often one client may ask: a bucket that fills steadily and holds ten seconds' worth.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use interlock_core::time::{Millis, Timestamp};

/// A bucket holds what comes in during this span.
const BURST: Millis = Millis::from_secs(10);
/// The least that a bucket holds, for limits of a few requests a minute.
const BURST_MIN: f64 = 5.0;
const CLIENTS_MAX: usize = 100_000;

#[derive(Default)]
pub struct Rates(Mutex<HashMap<Arc<str>, Bucket>>);

struct Bucket {
    tokens: f64,
    at: Timestamp,
}

impl Rates {
    /// Takes a place for one request, or says how long to wait for one.
    pub fn take(&self, client: &Arc<str>, per_min: u32, now: Timestamp) -> Result<(), Millis> {
        let per_ms = f64::from(per_min.max(1)) / 60_000.0;
        let full = (per_ms * BURST.0 as f64).max(BURST_MIN);
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= CLIENTS_MAX && !buckets.contains_key(client) {
            // A client that has been silent for long has a full bucket anyway.
            buckets.retain(|_, bucket| now.since(bucket.at) < BURST);
        }
        let bucket = buckets.entry(Arc::clone(client)).or_insert(Bucket { tokens: full, at: now });
        bucket.tokens = (bucket.tokens + now.since(bucket.at).0 as f64 * per_ms).min(full);
        bucket.at = bucket.at.max(now);
        if bucket.tokens >= 1.0 {
            bucket.tokens -= 1.0;
            return Ok(());
        }
        Err(Millis(((1.0 - bucket.tokens) / per_ms).ceil() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_then_the_rate_holds() {
        let rates = Rates::default();
        let client: Arc<str> = "a".into();
        let start = Timestamp(1_000_000);
        for _ in 0..10 {
            rates.take(&client, 60, start).unwrap();
        }
        assert_eq!(rates.take(&client, 60, start), Err(Millis(1_000)));
        rates.take(&"b".into(), 60, start).unwrap();
        rates.take(&client, 60, start + Millis(1_000)).unwrap();
        assert!(rates.take(&client, 60, start + Millis(1_500)).is_err());
        // A clock that goes back gives nothing away.
        assert!(rates.take(&client, 60, start).is_err());
    }

    #[test]
    fn a_small_limit_lets_a_few_through_at_once() {
        let rates = Rates::default();
        let client: Arc<str> = "a".into();
        let passed = (0..20).filter(|_| rates.take(&client, 1, Timestamp(0)).is_ok()).count();
        assert_eq!(passed, 5);
        assert_eq!(rates.take(&client, 1, Timestamp(0)), Err(Millis(60_000)));
    }
}
