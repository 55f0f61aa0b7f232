//! Row-level security, for reads on behalf of a request: what stands between tenants beside the statements themselves.
//!
//! Every statement names its tenant already. These reads also run as a role that sees no row of a tenant but the one
//! its session is set to, so that a statement which forgot to would find nothing instead of everything. The owner of
//! the tables, as whom the engine works, is not held up by it: policies cost it nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use interlock_core::ids::TenantId;
use tokio::sync::Mutex;

use super::connect::{PgDb, Target, connect_to_read};
use crate::db::Db as _;
use crate::error::{DbError, OpenError, ReadError};
use crate::meta;
use crate::sql::Stmt;
use crate::value::{Row, Value, args};

/// Makes the role, and gives every table that has a `tenant_id` its policy, views included from PostgreSQL 15 on (older
/// ones read views as their owner). Changes only what is not so yet: a start like any other takes no lock. Where the user
/// may not make roles, [`check`] refuses to open the store.
const ENABLE: &str = "DO $enable$
DECLARE
    item record;
    found boolean;
BEGIN
    SELECT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'interlock_reader') INTO found;
    IF NOT found THEN
        BEGIN
            CREATE ROLE interlock_reader NOLOGIN;
        EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN NULL;
        END;
        SELECT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'interlock_reader') INTO found;
    END IF;
    FOR item IN
        SELECT c.relname, c.relrowsecurity FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
        AND NOT c.relrowsecurity
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', item.relname);
        EXECUTE format('CREATE POLICY tenant_wall ON %I USING (tenant_id = decode(coalesce(current_setting(''interlock.tenant'', true), ''''), ''hex''))', item.relname);
    END LOOP;
    IF NOT found THEN
        RETURN;
    END IF;
    IF NOT has_schema_privilege('interlock_reader', current_schema(), 'USAGE') THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO interlock_reader', current_schema());
    END IF;
    FOR item IN
        SELECT c.oid, c.relname, c.relkind FROM pg_class c
        WHERE c.relnamespace = current_schema()::regnamespace AND NOT c.relispartition
        AND (c.relkind = 'v' OR c.relkind IN ('r', 'p') AND c.relrowsecurity)
        AND NOT has_table_privilege('interlock_reader', c.oid, 'SELECT')
    LOOP
        IF item.relkind = 'v' AND current_setting('server_version_num')::int >= 150000 THEN
            EXECUTE format('ALTER VIEW %I SET (security_invoker = true)', item.relname);
        END IF;
        EXECUTE format('GRANT SELECT ON %I TO interlock_reader', item.relname);
    END LOOP;
    IF NOT pg_has_role(current_user, 'interlock_reader', 'MEMBER') THEN
        BEGIN
            EXECUTE format('GRANT interlock_reader TO %I', current_user);
        EXCEPTION WHEN insufficient_privilege THEN NULL;
        END;
    END IF;
END
$enable$";

pub(crate) async fn enable(db: &PgDb) -> Result<(), DbError> {
    db.batch(ENABLE).await
}

/// Whether reads can run behind it. Asked when the store is opened, so that it fails then and not at a request.
pub(crate) async fn check(db: &PgDb, target: &Target) -> Result<(), OpenError> {
    if target.row_security_optional {
        return Ok(());
    }
    let usable = db.batch("SAVEPOINT reader; SET LOCAL ROLE interlock_reader; ROLLBACK TO reader").await;
    usable.map_err(|error| OpenError::RowSecurity { what: error.to_string() })
}

/// Reads under row security. A connection belongs to one read at a time: the tenant is a setting of its session.
pub(crate) struct ScopedReads {
    target: Target,
    slots: Vec<Mutex<Option<PgDb>>>,
    turn: AtomicUsize,
    timeout: Duration,
}

impl ScopedReads {
    pub fn new(target: Target, readers: usize, timeout: Duration) -> Self {
        let slots = (0..readers.max(1)).map(|_| Mutex::default()).collect();
        Self { target, slots, turn: AtomicUsize::new(0), timeout }
    }

    pub async fn rows_many(
        &self,
        tenant: TenantId,
        queries: Vec<(&'static Stmt, Vec<Value>)>,
    ) -> Result<Vec<Vec<Row>>, ReadError> {
        if queries.is_empty() {
            return Ok(Vec::new());
        }
        let read = async {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.slots.len();
            let mut slot = self.slots[turn].lock().await;
            let alive = slot.take().filter(|db| !db.is_closed());
            let db = match alive {
                Some(db) => db,
                None => self.connect().await?,
            };
            let db = slot.insert(db);
            // Not in one go with the queries: until this is answered, the session is set to the tenant of the read
            // before.
            let hex: String = tenant.0.simple().to_string();
            db.query(&meta::sql::SET_TENANT, args![hex]).await?;
            db.query_many(queries).await
        };
        match tokio::time::timeout(self.timeout, read).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(ReadError::Unavailable(format!("no answer within {:?}", self.timeout))),
        }
    }

    async fn connect(&self) -> Result<PgDb, DbError> {
        let db = connect_to_read(&self.target, self.timeout).await?;
        match db.batch("SET ROLE interlock_reader").await {
            Err(error) if self.target.row_security_optional => {
                tracing::warn!(%error, "row security is off, as the store's address allows");
            }
            other => other?,
        }
        Ok(db)
    }
}
