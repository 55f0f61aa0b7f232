//! Connections to PostgreSQL, and the connection as a [`Db`] with its prepared statements.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use futures::future::join_all;
use interlock_core::planted::{Bug, is_planted};
use tokio::sync::mpsc;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};
use tokio_postgres::{AsyncMessage, Client, Config, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::tls;
use crate::db::Db;
use crate::error::{DbError, OpenError};
use crate::sql::{COMMITTER_SETTINGS, READER_SETTINGS, Stmt};
use crate::value::{Row, Value};

/// Where to connect to, and how: several hosts are allowed, and the one that takes writes is used.
#[derive(Clone)]
pub(crate) struct Target {
    config: Config,
    tls: MakeRustlsConnect,
    /// Where row security cannot be had, reads go without it.
    pub row_security_optional: bool,
}

impl Target {
    pub fn parse(address: &str) -> Result<Self, OpenError> {
        let tls::Configured { mut config, tls, row_security_optional } = tls::configure(address)?;
        if config.get_hosts().len() > 1 {
            config.target_session_attrs(tokio_postgres::config::TargetSessionAttrs::ReadWrite);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(std::time::Duration::from_secs(10));
        }
        if config.get_application_name().is_none() {
            config.application_name("interlock");
        }
        Ok(Self { config, tls, row_security_optional })
    }

    /// The same for a connection whose worth is that it stands: its end is noticed by who holds it also where no packet says so.
    pub fn kept_alive(&self) -> Self {
        let mut kept = self.clone();
        kept.config.keepalives_idle(KEEPALIVE_IDLE).keepalives_interval(KEEPALIVE_INTERVAL);
        kept.config
            .keepalives_retries(KEEPALIVE_RETRIES)
            .tcp_user_timeout(KEEPALIVE_IDLE + KEEPALIVE_INTERVAL * KEEPALIVE_RETRIES);
        kept
    }
}

const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;
/// The same on the database's side, which would keep the locks of a machine that is gone for two hours. It does nothing on a
/// socket of the same machine.
pub(crate) const KEPT_ALIVE: &str = "SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; SET tcp_user_timeout = '30s'";

/// One connection with the statements prepared on it.
pub(crate) struct PgDb {
    client: Client,
    statements: Mutex<HashMap<&'static str, Statement>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Committer,
    Reader,
}

/// Connects. Notifications go to `notices` as they come, where it is given.
pub(crate) async fn connect(
    target: &Target,
    role: Role,
    notices: Option<mpsc::UnboundedSender<String>>,
) -> Result<PgDb, DbError> {
    let (client, mut connection) = target.config.connect(target.tls.clone()).await?;
    tokio::spawn(async move {
        let messages = futures::stream::poll_fn(move |context| connection.poll_message(context));
        futures::pin_mut!(messages);
        while let Some(Ok(message)) = futures::StreamExt::next(&mut messages).await {
            if let (AsyncMessage::Notification(notification), Some(notices)) = (message, &notices) {
                let _ = notices.send(notification.payload().to_owned());
            }
        }
    });
    let settings = match role {
        Role::Committer => COMMITTER_SETTINGS,
        Role::Reader => READER_SETTINGS,
    };
    client.batch_execute(settings).await?;
    Ok(PgDb { client, statements: Mutex::default() })
}

/// A connection for reads, each of which the server itself ends when its time is over.
pub(crate) async fn connect_to_read(target: &Target, timeout: Duration) -> Result<PgDb, DbError> {
    let db = connect(target, Role::Reader, None).await?;
    db.batch(&format!("SET statement_timeout = {}", timeout.as_millis().max(1))).await?;
    Ok(db)
}

/// The statement as it would be with the bug that is planted, if any.
fn with_planted_bug(sql: &'static str) -> Cow<'static, str> {
    if is_planted(Bug::VersionNotGuarded) {
        Cow::Owned(sql.replace(" AND k.version = a.expected", "").replace(" AND l.version = u.expected", ""))
    } else if is_planted(Bug::LimitsNotLocked) {
        Cow::Owned(sql.replace("ORDER BY tenant_id FOR UPDATE", ""))
    } else if is_planted(Bug::GroupWrittenAgain) && sql.starts_with("INSERT INTO commit_groups") {
        Cow::Owned(format!("{sql} ON CONFLICT DO NOTHING"))
    } else if is_planted(Bug::SealedByInstant) {
        Cow::Owned(sql.replace("g.age DESC, ", ""))
    } else if is_planted(Bug::ReceiptNotGuarded)
        && let Some((put, _)) = sql.split_once(" AND CASE WHEN excluded.state = 'intent'")
    {
        Cow::Borrowed(put)
    } else {
        Cow::Borrowed(sql)
    }
}

impl PgDb {
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    pub async fn prepared(&self, stmt: &'static Stmt) -> Result<Statement, DbError> {
        let found = self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(stmt.name).cloned();
        if let Some(statement) = found {
            return Ok(statement);
        }
        let statement = self.client.prepare(&with_planted_bug(stmt.postgres)).await?;
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).insert(stmt.name, statement.clone());
        Ok(statement)
    }

    /// Executes with arguments of any kind, arrays included.
    pub async fn execute_raw(&self, stmt: &'static Stmt, args: &[&(dyn ToSql + Sync)]) -> Result<u64, DbError> {
        let statement = self.prepared(stmt).await?;
        Ok(self.client.execute(&statement, args).await?)
    }

    pub async fn query_raw(&self, stmt: &'static Stmt, args: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, DbError> {
        let statement = self.prepared(stmt).await?;
        let rows = self.client.query(&statement, args).await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            let mut values = Vec::with_capacity(row.len());
            for column in 0..row.len() {
                values.push(row.try_get::<_, Value>(column)?);
            }
            found.push(Row::new(stmt.table, values));
        }
        Ok(found)
    }

    /// Several queries in one round trip.
    pub async fn query_many(&self, queries: Vec<(&'static Stmt, Vec<Value>)>) -> Result<Vec<Vec<Row>>, DbError> {
        let answers = join_all(queries.into_iter().map(|(stmt, args)| self.query(stmt, args))).await;
        answers.into_iter().collect()
    }
}

impl Db for PgDb {
    async fn execute(&self, stmt: &'static Stmt, args: Vec<Value>) -> Result<u64, DbError> {
        let statement = self.prepared(stmt).await?;
        let args: Vec<&(dyn ToSql + Sync)> = args.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        Ok(self.client.execute(&statement, &args).await?)
    }

    async fn query(&self, stmt: &'static Stmt, args: Vec<Value>) -> Result<Vec<Row>, DbError> {
        let args: Vec<&(dyn ToSql + Sync)> = args.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        self.query_raw(stmt, &args).await
    }

    async fn batch(&self, sql: &str) -> Result<(), DbError> {
        Ok(self.client.batch_execute(sql).await?)
    }

    fn is_postgres(&self) -> bool {
        true
    }
}

impl ToSql for Value {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(value) => value.to_sql(ty, out),
            Self::Text(text) => text.to_sql(ty, out),
            Self::Blob(bytes) => bytes.to_sql(ty, out),
            Self::Id(id) => id.as_slice().to_sql(ty, out),
        }
    }

    accepts!(INT8, TEXT, BYTEA);

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Value {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(match *ty {
            Type::BYTEA => match raw.try_into() {
                Ok(id) => Self::Id(id),
                Err(_) => Self::Blob(raw.to_vec()),
            },
            Type::INT8 => Self::Int(i64::from_sql(ty, raw)?),
            Type::INT4 => Self::Int(i64::from(i32::from_sql(ty, raw)?)),
            // A sum of counts.
            Type::NUMERIC => return Err("a number without bound was not expected".into()),
            _ => Self::Text(String::from_sql(ty, raw)?),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self::Null)
    }

    fn accepts(ty: &Type) -> bool {
        matches!(*ty, Type::BYTEA | Type::INT8 | Type::INT4 | Type::TEXT | Type::VARCHAR | Type::NAME)
    }
}
