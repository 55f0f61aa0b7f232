//! [`Store`]: opening, submitting, closing. Reads and writes stand with their nouns.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use interlock_boxed::boxed;
use interlock_core::ids::{RunId, ServerId, TenantId};
use interlock_core::run::change::ChangeSet;
use interlock_core::time::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};

use crate::copying;
use crate::db::Db;
use crate::error::{CorruptRow, DbError, OpenError, ReadError, Restored, SubmitError};
use crate::lane::{Committer, Counters, Lane};
use crate::meta::{self, KeepLanes};
use crate::migrate;
use crate::options::{Mode, Options, StoreUrl};
use crate::payloads;
use crate::postgres::reads::PgReads;
use crate::postgres::row_security::ScopedReads;
use crate::postgres::service::{self, InService};
use crate::runs::PlanCache;
use crate::sql::Stmt;
use crate::sqlite::commit::{CommittedRows, SqliteCommitter, Writer};
use crate::sqlite::file::{DatabaseFile, FileLock};
use crate::sqlite::reads::{Pool, SqliteReads};
use crate::sqlite::{self, SqliteDb, ready};
use crate::submit::{Item, Prepared};
use crate::unreadable::Unreadable;
use crate::value::{Row, Value, args};
use crate::write::{AttachedWrites, BoxedWrite, Done, Write, WriteLane};

/// A database that holds runs. Cheap to clone; the last clone that goes away lets its lanes finish.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
    /// Reads through this clone are on behalf of one tenant.
    tenant: Option<TenantId>,
}

pub(crate) struct Inner {
    /// One queue per lane. Taken out when the store closes.
    lanes: Mutex<Vec<mpsc::Sender<Item>>>,
    ways: LaneRoles,
    tasks: Mutex<Vec<LaneTask>>,
    server: ServerId,
    /// The ids of its lanes in the database.
    lane_ids: Vec<i64>,
    pub reads: Reads,
    pub plans: PlanCache,
    pub unreadable: Unreadable,
    pub counters: Arc<Counters>,
    wakes: watch::Receiver<u64>,
    /// Released when the store is closed, or when its last clone goes away.
    lock: Mutex<Option<FileLock>>,
    /// The same for a server on PostgreSQL.
    service: Mutex<Option<InService>>,
}

pub(crate) enum Reads {
    Sqlite(SqliteReads),
    Postgres(Box<PgReads>, Box<ScopedReads>),
}

/// Which lane is for what.
#[derive(Clone, Copy, Default)]
struct LaneRoles {
    /// The last one that takes runs; their ids tell which.
    runs_to: usize,
    /// The one past all others' groups; the same as a run's own where there is only one.
    priority: usize,
    /// The one for maintenance.
    upkeep: usize,
    /// The one for worker sessions and the server's own signs of life: it takes no tenant's lock, so that no worker or
    /// server is taken for dead because a tenant's row is locked.
    sessions: usize,
    /// The one for what steps write: a flood of it holds up no other commit.
    output: usize,
}

enum LaneTask {
    Thread(std::thread::JoinHandle<()>),
    Task(tokio::task::JoinHandle<()>),
}

/// Refuses to make an empty store where a restore was interrupted: it would be in that one's way.
fn check_no_restore(path: &Path) -> Result<(), OpenError> {
    let Some(copy) = copying::unfinished(path).filter(|_| !path.exists()) else { return Ok(()) };
    let what = format!(
        "a restore of it was begun and has not ended: there is {}. Run the same `interlock db restore` again; for a new and \
         empty store, remove that file first",
        copy.display()
    );
    Err(copying::unusable(path, what))
}

impl Store {
    #[boxed]
    pub async fn open(url: &StoreUrl, options: Options) -> Result<Self, OpenError> {
        match url {
            StoreUrl::Sqlite(path) => {
                if matches!(options.mode, Mode::Inline(_)) {
                    return Err(OpenError::InvalidUrl { url: format!("{url} in inline mode: use memory") });
                }
                sqlite::file::check_finished(path)?;
                check_no_restore(path)?;
                let path = path.clone();
                let (lock, writer, lane) = tokio::task::spawn_blocking({
                    let (path, options) = (path.clone(), options.clone());
                    move || {
                        let lock = sqlite::file::lock(&path)?;
                        let connection = sqlite::file::connect(&path)?;
                        let lane = prepare_sqlite(&connection, &options)?;
                        let writer = Writer::Own(connection, Box::new(DatabaseFile::at(&path)?));
                        Ok::<_, OpenError>((lock, writer, lane))
                    }
                })
                .await
                .map_err(|error| OpenError::Database(DbError::Other(error.to_string())))??;
                let reads = SqliteReads::File(Arc::new(Pool::new(path, options.readers, options.read_timeout)));
                let (_, wakes) = watch::channel(0);
                let mut parts = Parts::new(&options, Reads::Sqlite(reads), wakes, Some(lock));
                parts.sqlite_lane(writer, lane, &options)?;
                Ok(parts.finish())
            }
            StoreUrl::SqliteMemory(name) => {
                let memory = sqlite::memory::open(name)?;
                let register = || {
                    let connection = memory.connection.lock().unwrap_or_else(PoisonError::into_inner);
                    prepare_sqlite(&connection, &options)
                };
                let (lane, priority_lane) = (register()?, options.priority_lane.then(register).transpose()?);
                let (wake, wakes) = watch::channel(0);
                memory.listen(options.server, wake);
                let reads = match &options.mode {
                    Mode::Threaded => SqliteReads::Memory(Arc::clone(&memory)),
                    Mode::Inline(faults) => SqliteReads::Inline(Arc::clone(&memory), Arc::clone(faults)),
                };
                let mut parts = Parts::new(&options, Reads::Sqlite(reads), wakes, None);
                parts.sqlite_lane(Writer::Shared(Arc::clone(&memory)), lane, &options)?;
                if let Some(lane) = priority_lane {
                    parts.ways.priority = parts.lanes.len();
                    parts.sqlite_lane(Writer::Shared(memory), lane, &options)?;
                }
                Ok(parts.finish())
            }
            StoreUrl::Postgres(address) => {
                let opened = crate::postgres::open(address, &options).await?;
                let reads = Reads::Postgres(Box::new(opened.reads), Box::new(opened.scoped_reads));
                let mut parts = Parts::new(&options, reads, opened.wakes, None);
                for committer in opened.committers {
                    parts.lane_ids.push(committer.lane());
                    parts.task_lane(committer, &options);
                }
                // As many as were asked for, and those for one purpose each.
                let last = parts.lanes.len() - 1;
                parts.ways = LaneRoles {
                    runs_to: last - 4,
                    priority: last - 3,
                    upkeep: last - 2,
                    sessions: last - 1,
                    output: last,
                };
                Ok(parts.finish())
            }
        }
    }

    /// Opens a store only to look at it, also while a server has it: SQLite's lock is left alone, nothing can be
    /// submitted, and a schema that is not this binary's is refused.
    #[boxed]
    pub async fn open_to_read(url: &StoreUrl, options: Options) -> Result<Self, OpenError> {
        let StoreUrl::Sqlite(path) = url else {
            return Self::open(url, Options { migrate: false, ..options }).await;
        };
        sqlite::file::check_finished(path)?;
        Self::open_file_to_read(path, options).await
    }

    /// The same for a file, also for one that has not got its name yet.
    pub(crate) async fn open_file_to_read(path: &Path, options: Options) -> Result<Self, OpenError> {
        let checked = path.to_owned();
        tokio::task::spawn_blocking(move || {
            let connection = sqlite::file::connect_to_read(&checked)?;
            ready(migrate::run(&SqliteDb(&connection), migrate::SQLITE, false))
        })
        .await
        .map_err(|error| OpenError::Database(DbError::Other(error.to_string())))??;
        let pool = Pool::to_read(path.to_owned(), options.readers, options.read_timeout);
        let reads = SqliteReads::File(Arc::new(pool));
        let (_, wakes) = watch::channel(0);
        Ok(Parts::new(&options, Reads::Sqlite(reads), wakes, None).finish())
    }

    /// Says that a server is at work on this database until the store is closed, so that no restore gets under it. Refused
    /// while a restore is under way. A file has its lock for that.
    #[boxed]
    pub async fn enter_service(&self) -> Result<(), OpenError> {
        let Reads::Postgres(reads, _) = &self.inner.reads else { return Ok(()) };
        if self.in_service().is_some() {
            return Ok(());
        }
        let entered = service::enter(reads.target()).await?;
        *self.in_service() = Some(entered);
        Ok(())
    }

    fn in_service(&self) -> MutexGuard<'_, Option<InService>> {
        self.inner.service.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until everything that was submitted is committed and answered, then lets go of the database.
    #[boxed]
    pub async fn close(self) {
        self.inner.lanes.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let tasks = std::mem::take(&mut *self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        for task in tasks {
            match task {
                // The thread ends once the queue is empty; its last commit is a few milliseconds away.
                LaneTask::Thread(thread) => {
                    let _ = tokio::task::spawn_blocking(move || thread.join()).await;
                }
                LaneTask::Task(task) => {
                    let _ = task.await;
                }
            }
        }
        let service = self.in_service().take();
        if let Some(service) = service {
            service.leave().await;
        }
        self.inner.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Ends at once, as a crash would: what is queued is neither committed nor answered. For simulation.
    pub fn kill(&self) {
        self.inner.lanes.lock().unwrap_or_else(PoisonError::into_inner).clear();
        for task in &*self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner) {
            if let LaneTask::Task(task) = task {
                task.abort();
            }
        }
    }

    /// Commits a change set, or says which guard refused it. Waits for a place in the queue.
    #[boxed]
    pub async fn submit(&self, change: Box<ChangeSet>) -> Result<Box<ChangeSet>, SubmitError> {
        let lane = self.lane(change.run)?;
        Self::submit_to(lane, change).await
    }

    /// Like [`Store::submit`], for the little that a tenant writes while others write much: on PostgreSQL it does not wait
    /// for their groups.
    #[boxed]
    pub async fn submit_priority(&self, change: Box<ChangeSet>) -> Result<Box<ChangeSet>, SubmitError> {
        let lane = self.lane_at(|ways| ways.priority)?;
        let committed = Self::submit_to(lane, change).await?;
        if self.inner.ways.priority > self.inner.ways.runs_to {
            self.inner.counters.priority_sets.fetch_add(1, Ordering::Relaxed);
        }
        Ok(committed)
    }

    async fn submit_to(lane: mpsc::Sender<Item>, change: Box<ChangeSet>) -> Result<Box<ChangeSet>, SubmitError> {
        let prepared = Box::new(Prepared::new(change)?);
        let (reply, answer) = oneshot::channel();
        lane.send(Item::Set(prepared, reply)).await.map_err(|_| SubmitError::Closed)?;
        drop(lane);
        answer.await.map_err(|_| SubmitError::Closed)?
    }

    /// Like [`Store::submit`], but a full queue is an answer.
    #[boxed]
    pub async fn try_submit(&self, change: Box<ChangeSet>) -> Result<Box<ChangeSet>, SubmitError> {
        let lane = self.lane(change.run)?;
        let prepared = Box::new(Prepared::new(change)?);
        let (reply, answer) = oneshot::channel();
        lane.try_send(Item::Set(prepared, reply)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SubmitError::Busy,
            mpsc::error::TrySendError::Closed(_) => SubmitError::Closed,
        })?;
        drop(lane);
        answer.await.map_err(|_| SubmitError::Closed)?
    }

    /// Commits a small write that belongs to no run, and answers what became of it.
    pub async fn write<W: Write>(&self, write: W) -> Result<W::Answer, SubmitError> {
        self.write_boxed::<W>(write.boxed()).await
    }

    /// The same, with what belongs to it in one commit, if the write does what it was asked for.
    pub async fn write_with<W: Write>(&self, write: W, along: AttachedWrites) -> Result<W::Answer, SubmitError>
    where
        W::Answer: Done,
    {
        let write = write.boxed();
        let write = if along.is_nothing() { write } else { write.with::<W::Answer>(along) };
        self.write_boxed::<W>(write).await
    }

    async fn write_boxed<W: Write>(&self, write: BoxedWrite) -> Result<W::Answer, SubmitError> {
        let lane = self.lane_at(|ways| match W::LANE {
            WriteLane::Runs => 0,
            WriteLane::Upkeep => ways.upkeep,
            WriteLane::Sessions => ways.sessions,
            WriteLane::Output => ways.output,
        })?;
        let (reply, answer) = oneshot::channel();
        lane.send(Item::Op(write, reply)).await.map_err(|_| SubmitError::Closed)?;
        drop(lane);
        let answer = answer.await.map_err(|_| SubmitError::Closed)??;
        let typed = answer.downcast_ref::<W::Answer>().cloned();
        typed.ok_or_else(|| SubmitError::Corrupt("the answer belongs to another write".into()))
    }

    /// Says that this server lives, so that no server sweeps its lanes.
    #[boxed]
    pub async fn keep_lanes(&self, now: Timestamp) -> Result<(), SubmitError> {
        let Inner { server, lane_ids, .. } = &*self.inner;
        self.write(KeepLanes { server: *server, lanes: lane_ids.clone(), now }).await
    }

    /// A run goes through the same lane, so that its sets keep their order where their submitters do not wait.
    fn lane(&self, run: RunId) -> Result<mpsc::Sender<Item>, SubmitError> {
        // The last bytes of a UUIDv7 are random.
        let tail = u64::from_be_bytes(*run.as_bytes().last_chunk().expect("an id has 16 bytes"));
        self.lane_at(|ways| (tail % (ways.runs_to as u64 + 1)) as usize)
    }

    fn lane_at(&self, choose: impl FnOnce(LaneRoles) -> usize) -> Result<mpsc::Sender<Item>, SubmitError> {
        self.inner.counters.breaker.check()?;
        let lanes = self.inner.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if lanes.is_empty() {
            return Err(SubmitError::Closed);
        }
        Ok(lanes[choose(self.inner.ways)].clone())
    }

    /// Refuses where commits have been failing for a while, with what the database says.
    pub fn takes_commits(&self) -> Result<(), SubmitError> {
        self.inner.counters.breaker.check()
    }

    /// Commits nothing more: the caller has found that the database was restored.
    pub fn refuse_restored(&self, restored: Restored) {
        self.inner.counters.breaker.restored(restored);
    }

    /// Rises when another server has committed something.
    pub fn remote_wakes(&self) -> watch::Receiver<u64> {
        self.inner.wakes.clone()
    }

    /// Whether other servers may work on the same database.
    pub fn is_shared(&self) -> bool {
        // The listener for other servers' commits, if there is one, holds the other end.
        self.inner.wakes.has_changed().is_ok()
    }

    /// How many change sets this store has committed since it was opened.
    pub fn sets_committed(&self) -> u64 {
        self.inner.counters.sets.load(Ordering::Relaxed)
    }

    /// How many of them went by a priority lane: none where there is no such lane.
    pub fn priority_sets_committed(&self) -> u64 {
        self.inner.counters.priority_sets.load(Ordering::Relaxed)
    }

    /// The newest instant of this store's own commits since it was opened.
    pub fn committed_until(&self) -> Timestamp {
        Timestamp(self.inner.counters.last_commit_at.load(Ordering::Relaxed))
    }

    pub(crate) fn queued(&self) -> u64 {
        let lanes = self.inner.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.iter().map(|lane| (lane.max_capacity() - lane.capacity()) as u64).sum()
    }

    /// The rows of one statement.
    pub(crate) async fn rows(&self, stmt: &'static Stmt, args: Vec<Value>) -> Result<Vec<Row>, ReadError> {
        let mut answers = self.rows_many(vec![(stmt, args)]).await?;
        Ok(answers.pop().unwrap_or_default())
    }

    /// The rows of several: on SQLite in one snapshot, on PostgreSQL pipelined.
    pub(crate) async fn rows_many(
        &self,
        queries: Vec<(&'static Stmt, Vec<Value>)>,
    ) -> Result<Vec<Vec<Row>>, ReadError> {
        match &self.inner.reads {
            Reads::Sqlite(reads) => {
                reads.with(move |db| queries.iter().map(|(stmt, args)| db.query_now(stmt, args)).collect()).await
            }
            Reads::Postgres(reads, scoped) => match self.tenant {
                Some(tenant) => scoped.rows_many(tenant, queries).await,
                None => reads.rows_many(queries).await,
            },
        }
    }

    /// The first row of a statement, read.
    pub(crate) async fn found<T>(
        &self,
        stmt: &'static Stmt,
        args: Vec<Value>,
        read: impl FnOnce(Row) -> Result<T, CorruptRow>,
    ) -> Result<Option<T>, ReadError> {
        Ok(self.rows(stmt, args).await?.into_iter().next().map(read).transpose()?)
    }

    /// All rows of a statement, read.
    pub(crate) async fn every<T>(
        &self,
        stmt: &'static Stmt,
        args: Vec<Value>,
        read: impl FnMut(Row) -> Result<T, CorruptRow>,
    ) -> Result<Vec<T>, ReadError> {
        Ok(self.rows(stmt, args).await?.into_iter().map(read).collect::<Result<_, _>>()?)
    }

    /// The same store, for reads on behalf of a tenant: on PostgreSQL the database itself then hides all other
    /// tenants' rows. Writes are not concerned.
    pub fn on_behalf_of(&self, tenant: TenantId) -> Self {
        Self { inner: Arc::clone(&self.inner), tenant: Some(tenant) }
    }

    /// The same store, for reads that are on no tenant's behalf.
    pub(crate) fn across_tenants(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), tenant: None }
    }
}

/// A store while it is being put together.
struct Parts {
    server: ServerId,
    lanes: Vec<mpsc::Sender<Item>>,
    lane_ids: Vec<i64>,
    ways: LaneRoles,
    tasks: Vec<LaneTask>,
    reads: Reads,
    counters: Arc<Counters>,
    wakes: watch::Receiver<u64>,
    lock: Option<FileLock>,
}

impl Parts {
    fn new(options: &Options, reads: Reads, wakes: watch::Receiver<u64>, lock: Option<FileLock>) -> Self {
        Self {
            server: options.server,
            lanes: Vec::new(),
            lane_ids: Vec::new(),
            ways: LaneRoles::default(),
            tasks: Vec::new(),
            reads,
            counters: Arc::default(),
            wakes,
            lock,
        }
    }

    fn lane<C: Committer>(&mut self, committer: C, options: &Options) -> Lane<C> {
        let (sender, queue) = mpsc::channel(options.queue_max.max(1));
        self.lanes.push(sender);
        let faults = match &options.mode {
            Mode::Inline(faults) => Some(Arc::clone(faults)),
            Mode::Threaded => None,
        };
        Lane { committer, queue, group_max: options.group_max.max(1), counters: Arc::clone(&self.counters), faults }
    }

    fn sqlite_lane(&mut self, writer: Writer, lane: i64, options: &Options) -> Result<(), OpenError> {
        self.lane_ids.push(lane);
        let committer =
            SqliteCommitter { writer, lane, server: options.server, known: CommittedRows::default(), last: None };
        if matches!(options.mode, Mode::Inline(_)) {
            self.task_lane(committer, options);
            return Ok(());
        }
        let lane = self.lane(committer, options);
        // The writer blocks in fsync, so it has a thread; the runtime on it only waits and sleeps.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| OpenError::Database(DbError::Other(error.to_string())))?;
        let thread = std::thread::Builder::new()
            .name("interlock-lane".into())
            .spawn(move || runtime.block_on(lane.run()))
            .map_err(|error| OpenError::Database(DbError::Other(error.to_string())))?;
        self.tasks.push(LaneTask::Thread(thread));
        Ok(())
    }

    fn task_lane<C>(&mut self, committer: C, options: &Options)
    where
        C: Committer + Send + 'static,
        Lane<C>: LaneFuture,
    {
        let lane = self.lane(committer, options);
        self.tasks.push(LaneTask::Task(tokio::spawn(lane.boxed())));
    }

    fn finish(self) -> Store {
        Store {
            tenant: None,
            inner: Arc::new(Inner {
                lanes: Mutex::new(self.lanes),
                ways: self.ways,
                tasks: Mutex::new(self.tasks),
                server: self.server,
                lane_ids: self.lane_ids,
                reads: self.reads,
                plans: PlanCache::default(),
                unreadable: Unreadable::default(),
                counters: self.counters,
                wakes: self.wakes,
                lock: Mutex::new(self.lock),
                service: Mutex::default(),
            }),
        }
    }
}

/// The lane's loop as a future that may move between threads, which only concrete committers can promise.
trait LaneFuture {
    fn boxed(self) -> futures::future::BoxFuture<'static, ()>;
}

impl LaneFuture for Lane<SqliteCommitter> {
    fn boxed(self) -> futures::future::BoxFuture<'static, ()> {
        Box::pin(self.run())
    }
}

impl LaneFuture for Lane<crate::postgres::commit::PgCommitter> {
    fn boxed(self) -> futures::future::BoxFuture<'static, ()> {
        Box::pin(self.run())
    }
}

/// Migrates and registers a lane; answers with the lane's id, which no earlier lane has had.
fn prepare_sqlite(connection: &rusqlite::Connection, options: &Options) -> Result<i64, OpenError> {
    let db = SqliteDb(connection);
    connection.execute_batch("BEGIN IMMEDIATE").map_err(DbError::from)?;
    let prepared = ready(async {
        migrate::run(&db, migrate::SQLITE, options.migrate).await?;
        prepare(&db, options.server).await
    });
    connection.execute_batch(if prepared.is_ok() { "COMMIT" } else { "ROLLBACK" }).map_err(DbError::from)?;
    prepared
}

/// The rows that every store needs, and a new lane.
pub(crate) async fn prepare<D: Db>(db: &D, server: ServerId) -> Result<i64, OpenError> {
    let mark = payloads::fresh_mark(server);
    for (key, value) in [("store_epoch", "1"), ("seal", ""), (payloads::MARK, &mark)] {
        if db.query(&meta::sql::META_GET, args![key]).await?.is_empty() {
            db.execute(&meta::sql::META_PUT, args![key, value]).await?;
        }
    }
    let mut rows = db.query(&meta::sql::LANE_INSERT, args![server, 0i64]).await?;
    let row = rows.first_mut().ok_or_else(|| DbError::Other("no lane was made".into()))?;
    Ok(row.int("lane_id")?)
}
