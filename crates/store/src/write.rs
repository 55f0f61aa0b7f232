//! Small writes that belong to no run. Each is a type with an answer of its own, and stands with its noun. They go through
//! the same lanes and groups as change sets, where they travel as [`BoxedWrite`]s.

use std::any::Any;
use std::sync::Arc;

use futures::future::BoxFuture;
use interlock_core::ids::TenantId;

use crate::audit::{AuditNote, add_note};
use crate::db::Db;
use crate::error::DbError;
use crate::idempotency::FinishIdempotency;
use crate::postgres::connect::PgDb;
use crate::sql::Stmt;
use crate::sqlite::{SqliteDb, ready};
use crate::value::Value;

/// A small write, carried out by [`crate::Store::write`]. Only the store has any.
pub trait Write: Sized + Send + Sync + 'static {
    /// What became of it.
    type Answer: Clone + Send + Sync + 'static;
    const LANE: WriteLane = WriteLane::Runs;

    /// Carries it out inside a lane's transaction. Written once for both databases.
    fn apply<D: Db>(&self, db: &D) -> impl Future<Output = Result<Self::Answer, DbError>>;

    /// As the lanes carry it: `boxed!()`.
    fn boxed(self) -> BoxedWrite;
}

/// A write on one tenant's rows.
pub trait TenantWrite: Write {
    fn tenant(&self) -> TenantId;
}

/// Which lane a write goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteLane {
    /// Together with change sets.
    Runs,
    /// With the store's own maintenance, which holds up no other commit.
    Upkeep,
    /// With worker sessions and the server's own signs of life.
    Sessions,
    /// With what steps write while they run, which may be much.
    Output,
}

/// What became of an insert that needs its key to be free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    Stored,
    /// The key or the name is taken.
    Duplicate,
}

/// What became of a change of something that has to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    Done,
    /// It is not there, or another was faster.
    Gone,
}

/// An answer that says whether the write has done what it was asked for.
pub trait Done {
    fn is_done(&self) -> bool;
}

impl Done for Stored {
    fn is_done(&self) -> bool {
        *self == Self::Stored
    }
}

/// What is asked for without a condition is done.
impl Done for () {
    fn is_done(&self) -> bool {
        true
    }
}

impl Done for Changed {
    fn is_done(&self) -> bool {
        *self == Self::Done
    }
}

/// A count of rows: something was done unless it is none.
impl Done for u64 {
    fn is_done(&self) -> bool {
        *self > 0
    }
}

/// The answer of any write.
pub(crate) type AnyAnswer = Arc<dyn Any + Send + Sync>;

/// A write of any type.
pub struct BoxedWrite(Box<dyn Erased>);

trait Erased: Send + Sync {
    fn on_sqlite(&self, db: &SqliteDb<'_>) -> Result<AnyAnswer, DbError>;
    fn on_postgres<'a>(&'a self, db: &'a PgDb) -> BoxFuture<'a, Result<AnyAnswer, DbError>>;
    fn as_any(&self) -> &dyn Any;
}

/// A write with its way through PostgreSQL, a future that may move between threads: only for a type that is known can the
/// compiler tell, so every write makes it itself (`boxed!()`).
struct Typed<W> {
    write: W,
    on_postgres: OnPostgres<W>,
}

pub(crate) type OnPostgres<W> = for<'a> fn(&'a W, &'a PgDb) -> BoxFuture<'a, Result<AnyAnswer, DbError>>;

impl<W: Write> Erased for Typed<W> {
    fn on_sqlite(&self, db: &SqliteDb<'_>) -> Result<AnyAnswer, DbError> {
        Ok(Arc::new(ready(self.write.apply(db))?))
    }

    fn on_postgres<'a>(&'a self, db: &'a PgDb) -> BoxFuture<'a, Result<AnyAnswer, DbError>> {
        (self.on_postgres)(&self.write, db)
    }

    fn as_any(&self) -> &dyn Any {
        &self.write
    }
}

/// What is committed with a write that does what it was asked for. Where it does not, nothing of it is.
#[derive(Debug, Clone, Default)]
pub struct AttachedWrites {
    /// The answer to the request under a key that asked for it: a repeat gets it.
    pub answer: Option<FinishIdempotency>,
    /// What audit logs tell of it.
    pub notes: Vec<AuditNote>,
}

impl AttachedWrites {
    pub(crate) fn is_nothing(&self) -> bool {
        self.answer.is_none() && self.notes.is_empty()
    }

    async fn apply<D: Db>(&self, db: &D) -> Result<(), DbError> {
        if let Some(answer) = &self.answer {
            answer.apply(db).await?;
        }
        for note in &self.notes {
            add_note(db, note).await?;
        }
        Ok(())
    }
}

struct WithAlong {
    write: BoxedWrite,
    along: AttachedWrites,
    is_done: fn(&AnyAnswer) -> bool,
}

impl Erased for WithAlong {
    fn on_sqlite(&self, db: &SqliteDb<'_>) -> Result<AnyAnswer, DbError> {
        let answer = self.write.on_sqlite(db)?;
        if (self.is_done)(&answer) {
            ready(self.along.apply(db))?;
        }
        Ok(answer)
    }

    fn on_postgres<'a>(&'a self, db: &'a PgDb) -> BoxFuture<'a, Result<AnyAnswer, DbError>> {
        Box::pin(async move {
            let answer = self.write.on_postgres(db).await?;
            if (self.is_done)(&answer) {
                self.along.apply(db).await?;
            }
            Ok(answer)
        })
    }

    fn as_any(&self) -> &dyn Any {
        self.write.0.as_any()
    }
}

impl BoxedWrite {
    /// The same write, with what belongs to it in one commit.
    pub(crate) fn with<A: Done + 'static>(self, along: AttachedWrites) -> Self {
        let is_done = |answer: &AnyAnswer| answer.downcast_ref::<A>().is_some_and(Done::is_done);
        Self(Box::new(WithAlong { write: self, along, is_done }))
    }

    pub(crate) fn new<W: Write>(write: W, on_postgres: OnPostgres<W>) -> Self {
        Self(Box::new(Typed { write, on_postgres }))
    }

    pub(crate) fn on_sqlite(&self, db: &SqliteDb<'_>) -> Result<AnyAnswer, DbError> {
        self.0.on_sqlite(db)
    }

    pub(crate) async fn on_postgres(&self, db: &PgDb) -> Result<AnyAnswer, DbError> {
        self.0.on_postgres(db).await
    }

    /// The write itself, if it is of this type.
    pub(crate) fn downcast<W: Write>(&self) -> Option<&W> {
        self.0.as_any().downcast_ref()
    }
}

/// [`Write::boxed`], the same for all.
macro_rules! boxed {
    () => {
        fn boxed(self) -> $crate::write::BoxedWrite {
            $crate::write::BoxedWrite::new(self, |write, db| {
                Box::pin(async move { Ok(std::sync::Arc::new(write.apply(db).await?) as $crate::write::AnyAnswer) })
            })
        }
    };
}
pub(crate) use boxed;

/// Says where writes name their tenant.
macro_rules! of_tenant {
    ($($write:ident.$($path:tt).+;)+) => {
        $(impl $crate::write::TenantWrite for $write {
            fn tenant(&self) -> interlock_core::ids::TenantId {
                self.$($path).+
            }
        })+
    };
}
pub(crate) use of_tenant;

/// Executes an insert that does nothing where the key is taken.
pub(crate) async fn stored<D: Db>(db: &D, stmt: &'static Stmt, values: Vec<Value>) -> Result<Stored, DbError> {
    Ok(if db.execute(stmt, values).await? == 1 { Stored::Stored } else { Stored::Duplicate })
}

/// Executes a change of one row.
pub(crate) async fn changed<D: Db>(db: &D, stmt: &'static Stmt, values: Vec<Value>) -> Result<Changed, DbError> {
    Ok(if db.execute(stmt, values).await? == 1 { Changed::Done } else { Changed::Gone })
}

/// A list, as it stands in a row.
/// A value as its JSON text.
pub(crate) fn json_text<T: serde::Serialize>(value: &T) -> Result<String, DbError> {
    serde_json::to_string(value).map_err(|error| DbError::Other(error.to_string()))
}

pub(crate) fn json_list<T: serde::Serialize>(items: &[T]) -> Result<String, DbError> {
    serde_json::to_string(items).map_err(|error| DbError::Other(error.to_string()))
}
