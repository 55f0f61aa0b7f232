//! PostgreSQL: a few lanes, runs hashed to them, one pipelined transaction per group.

mod bulk;
pub(crate) mod commit;
pub(crate) mod connect;
mod inspect;
mod limited;
mod listen;
mod locked;
mod ours;
pub(crate) mod reads;
pub(crate) mod restored;
pub(crate) mod row_security;
pub(crate) mod service;
mod timeline;
mod tls;

use tokio::sync::watch;

use crate::db::Db as _;
use crate::error::{DbError, OpenError};
use crate::meta;
use crate::migrate;
use crate::options::Options;
use connect::{Role, Target, connect};

/// What opening gives to the store.
pub(crate) struct PostgresParts {
    pub reads: reads::PgReads,
    pub scoped_reads: row_security::ScopedReads,
    pub committers: Vec<commit::PgCommitter>,
    pub wakes: watch::Receiver<u64>,
}

/// The key of the advisory lock that servers starting at the same moment take while they migrate.
const MIGRATION_LOCK: i64 = 0x0049_4e54_4552_4c4b;

pub(crate) async fn open(address: &str, options: &Options) -> Result<PostgresParts, OpenError> {
    let target = Target::parse(address)?;
    let unreachable = |error: DbError| OpenError::Connect { what: error.to_string() };
    let db = connect(&target, Role::Reader, None).await.map_err(unreachable)?;
    ours::check(&db, address).await?;
    db.batch("BEGIN").await?;
    db.batch(&format!("SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")).await?;
    // An error leaves the transaction to the connection's end.
    migrate::run(&db, migrate::POSTGRES, options.migrate).await?;
    if options.migrate {
        row_security::enable(&db).await?;
        row_security::check(&db, &target).await?;
        // Before the first commit: rows that come before their week was made would keep it out.
        for mut row in db.query(&meta::sql::SERVER_TIME, vec![]).await? {
            meta::partitions::ensure(&db, row.time("now")?).await?;
        }
    }
    let mut lanes = Vec::new();
    // Four more than asked for: sealing and sweeping have a lane of their own, and hold up no other commit; quiet
    // tenants have one, the priority lane, where no large group holds up their commits; and so have worker sessions,
    // and output.
    for _ in 0..options.lanes.max(1) + 4 {
        lanes.push(crate::store::prepare(&db, options.server).await?);
    }
    db.batch("COMMIT").await?;
    if options.migrate {
        // The servers may have been away when it failed over.
        timeline::check(&db).await?;
    }
    drop(db);

    let announcer = listen::announcer(target.clone(), options.server);
    let mut committers = Vec::new();
    for lane in lanes {
        let committer = commit::PgCommitter::new(target.clone(), lane, announcer.clone());
        committers.push(committer.await.map_err(unreachable)?);
    }
    let wakes = listen::listen(target.clone(), options.server);
    let scoped_reads = row_security::ScopedReads::new(target.clone(), options.readers, options.read_timeout);
    let reads = reads::PgReads::new(target, options.readers, options.read_timeout);
    Ok(PostgresParts { reads, scoped_reads, committers, wakes })
}
