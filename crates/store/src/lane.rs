//! The lane: waits for one submission, drains whatever has piled up behind it (no timer: idle means commit at once,
//! busy means large groups), commits the group, answers every caller. The database's part is behind [`Committer`].

use std::collections::{HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use interlock_core::planted::{Bug, is_planted};
use interlock_core::text::panic::message_of;
use interlock_core::time::Timestamp;
use tokio::sync::mpsc;

use crate::blocked::Blocked;
use crate::circuit_breaker::CircuitBreaker;
use crate::error::{DbError, SubmitError};
use crate::faults::Faults;
use crate::feed::entries::Entry;
use crate::submit::{Item, Lock, Outcome};

/// Writes a group in one transaction.
pub(crate) trait Committer {
    /// Answers with one outcome per item. `again`: an earlier try of the same group number was lost on its way, and
    /// may have been committed. An error means that nothing is known to have been committed.
    async fn commit(&mut self, group: &Group, again: bool) -> Result<Vec<Outcome>, DbError>;
}

/// The items of one commit.
pub(crate) struct Group {
    pub no: u64,
    pub items: Vec<Item>,
    /// What its first items waited for, which were put back before because of another transaction's lock.
    pub put_back: Vec<Lock>,
    /// The instant of the lane's last group.
    pub not_before: Timestamp,
}

impl Group {
    /// The newest instant of its change sets. It never falls, so that the last group of a lane has the newest one.
    pub fn at(&self) -> Timestamp {
        let sets = self.items.iter().filter_map(|item| match item {
            Item::Set(set, _) => Some(set.change.at),
            Item::Op(..) => None,
        });
        sets.max().unwrap_or_default().max(self.not_before)
    }
}

/// Appends what a set has committed to a group's list.
pub(crate) fn entry_of(change: &interlock_core::run::change::ChangeSet) -> Entry {
    let first_seq = change.journal.first().map_or(0, |row| row.first_seq);
    Entry { tenant: change.tenant, run: change.run, first_seq, seq: change.version() }
}

/// What lanes count, for metrics.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub committed: AtomicU64,
    /// The change sets among them.
    pub sets: AtomicU64,
    /// Those among them that went by a priority lane.
    pub priority_sets: AtomicU64,
    pub refused: AtomicU64,
    pub groups: AtomicU64,
    pub last_commit_at: AtomicI64,
    pub breaker: CircuitBreaker,
}

pub(crate) struct Lane<C> {
    pub committer: C,
    pub queue: mpsc::Receiver<Item>,
    pub group_max: usize,
    pub counters: Arc<Counters>,
    pub faults: Option<Arc<dyn Faults>>,
}

/// How often a lane lets others run before it commits what it has.
const LOOKS_MAX: u32 = 32;
const BACKOFF_MIN: Duration = Duration::from_millis(5);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

impl<C: Committer> Lane<C> {
    /// Runs until every sender is gone and the queue is empty. After a panic no lane of this store is given anything more:
    /// what a committer knows of the database, and what the callers of its last group have in memory, cannot be trusted.
    /// What other lanes hold by then they still commit. Only a new process can go on ([`SubmitError::is_final`]).
    pub async fn run(self) {
        let counters = Arc::clone(&self.counters);
        if let Err(panic) = AssertUnwindSafe(self.serve()).catch_unwind().await {
            let panic = message_of(&*panic);
            tracing::error!(panic, "a commit lane has panicked; this server commits nothing more: restart it");
            counters.breaker.lane_panicked(panic);
        }
    }

    async fn serve(mut self) {
        let mut held = VecDeque::new();
        let mut blocked = Blocked::default();
        let mut no = 0;
        let mut not_before = Timestamp::default();
        let mut expected = 0;
        while let Some((items, put_back)) = self.gather(&mut held, &mut blocked, expected).await {
            no += 1;
            expected = items.len().max(expected / 2);
            let group = Group { no, items, put_back, not_before };
            let outcomes = self.commit(&group).await;
            let at = group.at();
            not_before = at;
            self.counters.last_commit_at.fetch_max(at.0, Ordering::Relaxed);
            self.counters.groups.fetch_add(1, Ordering::Relaxed);
            // Counted before the callers are answered, so that a caller with an answer finds it counted.
            let count = |wanted: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| wanted(outcome)).count() as u64;
            let refused = count(|outcome| matches!(outcome, Outcome::Refused(_) | Outcome::Corrupt(_)));
            let waiting = count(|outcome| matches!(outcome, Outcome::Blocked(_)));
            let sets = count(|outcome| matches!(outcome, Outcome::Committed));
            self.counters.refused.fetch_add(refused, Ordering::Relaxed);
            self.counters.committed.fetch_add(outcomes.len() as u64 - refused - waiting, Ordering::Relaxed);
            self.counters.sets.fetch_add(sets, Ordering::Relaxed);
            let mut put_back = Vec::new();
            for (item, outcome) in group.items.into_iter().zip(outcomes) {
                match outcome {
                    Outcome::Blocked(_) if is_planted(Bug::BlockedIsAnswered) => answer(item, Outcome::Committed),
                    Outcome::Blocked(lock) => put_back.push((item, lock)),
                    outcome => answer(item, outcome),
                }
            }
            blocked.put_back(put_back);
        }
    }

    /// The next group: at most one set per run, and per key that a guard looks at; a second one is held for the next.
    /// What waits for another transaction's lock comes first, once it is due; the answer says what those waited for.
    ///
    /// Callers that were answered with the last group come back with the next change set, but not all at the same
    /// instant. A group that began with the first of them would make all others wait for it, so it lets those come that
    /// are about to, until there are half as many as `expected`: the other half gathers while these are committed.
    /// Where little is going on none are expected.
    async fn gather(
        &mut self,
        held: &mut VecDeque<Item>,
        blocked: &mut Blocked,
        expected: usize,
    ) -> Option<(Vec<Item>, Vec<Lock>)> {
        let mut items = Vec::new();
        let mut keys = HashSet::new();
        let mut put_back = Vec::new();
        while items.is_empty() {
            let earlier = std::mem::take(held);
            for (item, lock) in blocked.take_due(self.group_max) {
                take(item, &mut items, &mut keys, held);
                put_back.push(lock);
                // One that is held behind another waits for the next group.
                put_back.truncate(items.len());
            }
            for item in earlier {
                self.admit(item, &mut items, &mut keys, held, blocked);
            }
            if items.is_empty() {
                match self.next(blocked).await {
                    Next::Item(item) => self.admit(item, &mut items, &mut keys, held, blocked),
                    Next::Due => {}
                    Next::Closed => return None,
                }
            }
        }
        let mut looks = 0;
        loop {
            while items.len() < self.group_max && held.len() < self.group_max {
                match self.queue.try_recv() {
                    Ok(item) => self.admit(item, &mut items, &mut keys, held, blocked),
                    Err(_) => break,
                }
            }
            if looks == LOOKS_MAX || items.len() + held.len() >= expected.min(self.group_max) / 2 {
                return Some((items, put_back));
            }
            looks += 1;
            tokio::task::yield_now().await;
        }
    }

    /// Waits for a submission, or until what is blocked is due again. Closed only once nothing is blocked.
    async fn next(&mut self, blocked: &Blocked) -> Next {
        let Some(at) = blocked.retry_at() else {
            return self.queue.recv().await.map_or(Next::Closed, Next::Item);
        };
        match tokio::time::timeout_at(at, self.queue.recv()).await {
            Ok(Some(item)) => Next::Item(item),
            Ok(None) => {
                tokio::time::sleep_until(at).await;
                Next::Due
            }
            Err(_) => Next::Due,
        }
    }

    /// Takes an item into the group, unless it has to wait behind one that is blocked. As many wait as fit into the queue;
    /// of a tenant whose lock is held for that long no more are taken.
    fn admit(
        &self,
        item: Item,
        items: &mut Vec<Item>,
        keys: &mut HashSet<u64>,
        held: &mut VecDeque<Item>,
        blocked: &mut Blocked,
    ) {
        if !blocked.covers(&item) {
            take(item, items, keys, held);
        } else if blocked.len() < self.queue.max_capacity() {
            blocked.push(item);
        } else {
            refuse_as_busy(item);
        }
    }

    /// Tries until the group's fate is known: what was taken into a lane is answered, however long the database is
    /// away.
    async fn commit(&mut self, group: &Group) -> Vec<Outcome> {
        // An outage is told once, and once when it is over; conflicts come and go.
        let (mut again, mut outage) = (false, false);
        let mut backoff = BACKOFF_MIN;
        let outcomes = loop {
            match self.try_commit(group, again).await {
                Ok(outcomes) => break outcomes,
                Err(error) if error.is_transient() => {
                    again = true;
                    let passing = matches!(error, DbError::Conflict(_) | DbError::Locked(_));
                    if passing || outage {
                        tracing::debug!(group = group.no, %error, "commit failed, trying again");
                    } else {
                        tracing::warn!(group = group.no, %error, "commit failed; it is tried again until it is done");
                    }
                    if !passing {
                        outage = true;
                        self.counters.breaker.failed(&error);
                        tokio::time::sleep(backoff).await;
                        backoff = (backoff * 2).min(BACKOFF_MAX);
                    }
                }
                Err(error) => {
                    tracing::error!(group = group.no, %error, "commit refused");
                    if let DbError::Restored(restored) = error {
                        self.counters.breaker.restored(restored);
                    }
                    break group.items.iter().map(|_| Outcome::Corrupt(error.to_string())).collect();
                }
            }
        };
        // Whatever its fate, the database has answered. The circuit breaker refuses new submissions, so only this lane
        // notices.
        if again {
            self.counters.breaker.over();
        }
        if outage {
            tracing::warn!(group = group.no, "the database takes commits again");
        }
        outcomes
    }

    async fn try_commit(&mut self, group: &Group, again: bool) -> Result<Vec<Outcome>, DbError> {
        if let Some(faults) = &self.faults {
            faults.before_commit(group.no).await.happens().await?;
        }
        let outcomes = self.committer.commit(group, again).await?;
        if let Some(faults) = &self.faults {
            faults.after_commit(group.no).await.happens().await?;
        }
        Ok(outcomes)
    }
}

/// What a lane that has nothing to do waits for.
enum Next {
    Item(Item),
    /// What is blocked is to be tried again.
    Due,
    Closed,
}

fn refuse_as_busy(item: Item) {
    match item {
        Item::Set(_, reply) => drop(reply.send(Err(SubmitError::Busy))),
        Item::Op(_, reply) => drop(reply.send(Err(SubmitError::Busy))),
    }
}

fn take(item: Item, items: &mut Vec<Item>, keys: &mut HashSet<u64>, held: &mut VecDeque<Item>) {
    let Item::Set(set, _) = &item else {
        items.push(item);
        return;
    };
    if set.keys.iter().any(|key| keys.contains(key)) && !is_planted(Bug::TwoSetsOfOneRun) {
        // Its keys count as well, so that a third one does not overtake it.
        keys.extend(&set.keys);
        held.push_back(item);
    } else {
        keys.extend(&set.keys);
        items.push(item);
    }
}

/// Blocked items do not come here: they are put back.
fn answer(item: Item, outcome: Outcome) {
    // A submitter that has stopped waiting does not need an answer.
    match item {
        Item::Set(set, reply) => {
            let _ = reply.send(match outcome {
                Outcome::Committed | Outcome::Answer(_) => Ok(set.change),
                Outcome::Refused(refusal) => Err(SubmitError::Refused(refusal)),
                Outcome::Corrupt(what) => Err(SubmitError::Corrupt(what)),
                Outcome::Blocked(_) => Err(SubmitError::Busy),
            });
        }
        Item::Op(_, reply) => {
            let _ = reply.send(match outcome {
                Outcome::Answer(answer) => Ok(answer),
                Outcome::Committed => Ok(Arc::new(())),
                Outcome::Refused(refusal) => Err(SubmitError::Refused(refusal)),
                Outcome::Corrupt(what) => Err(SubmitError::Corrupt(what)),
                Outcome::Blocked(_) => Err(SubmitError::Busy),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use interlock_core::ids::{ServerId, TenantId};
    use uuid::Uuid;

    use crate::db::Db;
    use crate::error::{DbError, SubmitError};
    use crate::{Options, PutTenant, Store, StoreUrl, Tenant, Write};

    /// A write on which the code has a bug.
    struct Panics;

    impl Write for Panics {
        type Answer = ();
        crate::write::boxed!();

        async fn apply<D: Db>(&self, _: &D) -> Result<(), DbError> {
            panic!("a bug in a write")
        }
    }

    async fn open(url: &StoreUrl) -> Store {
        Store::open(url, Options::new(ServerId(Uuid::from_u128(1)))).await.unwrap()
    }

    fn tenant(number: u128) -> PutTenant {
        PutTenant(Tenant::new(TenantId(Uuid::from_u128(number)), format!("tenant-{number}"), super::Timestamp(1)))
    }

    /// Nothing is committed after it by any lane; and a store that is opened anew goes on from what was committed.
    async fn a_panic_ends_all_commits(url: StoreUrl) {
        let store = open(&url).await;
        store.write(tenant(1)).await.unwrap();
        assert!(store.takes_commits().is_ok());
        let under_way = store.write(Panics).await;
        assert!(under_way.is_err(), "{under_way:?}");
        // The caller is told as the lane unwinds; that it has ended is noted just after.
        let refused = tokio::time::timeout(Duration::from_mins(1), async {
            loop {
                match store.takes_commits() {
                    Err(refused) => break refused,
                    Ok(()) => tokio::task::yield_now().await,
                }
            }
        })
        .await
        .expect("the store says that it commits nothing more");
        assert!(refused.is_final(), "{refused}");
        assert!(matches!(&refused, SubmitError::LanePanicked(panic) if panic == "a bug in a write"), "{refused}");
        let later = store.write(tenant(2)).await;
        assert!(matches!(later, Err(SubmitError::LanePanicked(_))), "{later:?}");
        // On PostgreSQL this write goes through another lane, which has not panicked.
        let elsewhere = store.keep_lanes(super::Timestamp(2)).await;
        assert!(matches!(elsewhere, Err(SubmitError::LanePanicked(_))), "{elsewhere:?}");
        store.close().await;
        let again = open(&url).await;
        again.write(tenant(3)).await.unwrap();
        let names: Vec<_> = again.tenants().await.unwrap().into_iter().map(|tenant| tenant.name).collect();
        assert_eq!(names, ["tenant-1", "tenant-3"]);
        again.close().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_lane_of_a_sqlite_file_that_panics_ends_all_commits() {
        let folder = std::env::temp_dir().join(format!("interlock-lane-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        a_panic_ends_all_commits(StoreUrl::Sqlite(folder.join("store.db"))).await;
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_lane_of_postgres_that_panics_ends_all_commits() {
        let server = std::env::var("INTERLOCK_TEST_POSTGRES")
            .expect("INTERLOCK_TEST_POSTGRES is not set: run `make test`, or scripts/with-postgres");
        let name = format!("lane_panics_{}", std::process::id());
        let (client, connection) = tokio_postgres::connect(&server, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        a_panic_ends_all_commits(StoreUrl::Postgres(server.replace("/postgres?", &format!("/{name}?")))).await;
    }
}
