//! The palette of values both databases share, and rows read back with distrust: a value that is not what the schema
//! says is an error that names the table, the column and the row.

use interlock_core::ids::{
    ApprovalId, ChangeId, DecisionId, DelegationId, InboundId, JobId, KeyId, OutboundId, OutboxId, ReceiptId, RunId,
    ScheduleId, ServerId, SessionId, SignalId, SlackId, TenantId, UserId, WorkerIdentityId,
};
use interlock_core::json::{self, Hash, Json};
use interlock_core::time::Timestamp;

use crate::error::CorruptRow;

/// One value of a statement's arguments or of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Int(i64),
    Text(String),
    Blob(Vec<u8>),
    Id([u8; 16]),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}
impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Int(value as i64)
    }
}
impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::Int(value as i64)
    }
}
impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Int(i64::from(value))
    }
}
impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Int(i64::from(value))
    }
}
impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Int(i64::from(value))
    }
}
impl From<interlock_core::time::Millis> for Value {
    fn from(value: interlock_core::time::Millis) -> Self {
        Self::from(value.0)
    }
}
impl From<Timestamp> for Value {
    fn from(value: Timestamp) -> Self {
        Self::Int(value.0)
    }
}
impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::from(value.to_owned())
    }
}
impl From<&String> for Value {
    fn from(value: &String) -> Self {
        Self::from(value.clone())
    }
}
/// PostgreSQL keeps no NUL in a text, and would refuse the whole commit. What names something has none, because requests with
/// one are refused; a text that only tells, such as a message in which an output stands, is kept with a mark in its place.
impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(if value.contains(json::NUL) { value.replace(json::NUL, json::NUL_SHOWN) } else { value })
    }
}
impl From<&Json> for Value {
    fn from(value: &Json) -> Self {
        Self::Text(value.as_str().to_owned())
    }
}
impl From<Hash> for Value {
    fn from(value: Hash) -> Self {
        Self::Blob(value.0.to_vec())
    }
}
impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Self::Blob(value)
    }
}
impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

macro_rules! id_values {
    ($($id:ident),+) => {
        $(impl From<$id> for Value {
            fn from(value: $id) -> Self {
                Self::Id(*value.as_bytes())
            }
        })+
    };
}
id_values!(
    TenantId,
    RunId,
    SessionId,
    ApprovalId,
    DelegationId,
    ChangeId,
    ReceiptId,
    SignalId,
    OutboxId,
    ServerId,
    KeyId,
    WorkerIdentityId,
    UserId
);
id_values!(DecisionId, JobId, ScheduleId, SlackId, InboundId, OutboundId);

/// Arguments in the order of `$1…$n`.
macro_rules! args {
    ($($value:expr),* $(,)?) => { vec![$($crate::value::Value::from($value)),*] };
}
pub(crate) use args;

/// The smallest UUIDv7 that an instant can begin.
pub(crate) fn first_id_at(at: Timestamp) -> Value {
    let mut bytes = [0u8; 16];
    let millis = u64::try_from(at.0).unwrap_or(0);
    bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    Value::Id(bytes)
}

/// A row, read from left to right in the order of the statement's columns.
#[derive(Debug)]
pub struct Row {
    table: &'static str,
    values: std::vec::IntoIter<Value>,
    /// What the statement calls its columns, where that is checked.
    #[cfg(feature = "checked")]
    names: std::sync::Arc<[String]>,
    /// What the row is about, once an id has been read; for the error message.
    about: Option<[u8; 16]>,
}

impl Row {
    pub(crate) fn new(table: &'static str, values: Vec<Value>) -> Self {
        Self {
            table,
            values: values.into_iter(),
            #[cfg(feature = "checked")]
            names: std::sync::Arc::default(),
            about: None,
        }
    }

    /// Has every read checked against the names of the statement's columns: a reader in another order than its statement
    /// fails, by name, in every test that meets it.
    #[cfg(feature = "checked")]
    pub(crate) fn named(self, names: &std::sync::Arc<[String]>) -> Self {
        Self { names: std::sync::Arc::clone(names), ..self }
    }

    #[cfg(feature = "checked")]
    fn check_name(&self, column: &str) {
        let read = self.names.len().checked_sub(self.values.len()).and_then(|index| self.names.get(index));
        // An expression is called by its text.
        let is_name = |name: &&String| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if let Some(name) = read.filter(is_name) {
            assert_eq!(name, column, "a row of {} is read in another order than its statement's", self.table);
        }
    }

    pub(crate) fn corrupt(&self, column: &'static str, what: impl Into<String>) -> CorruptRow {
        let row = self.about.map_or_else(|| "?".to_owned(), |id| uuid::Uuid::from_bytes(id).simple().to_string());
        CorruptRow { table: self.table, column, row, what: what.into() }
    }

    fn take(&mut self, column: &str) -> Value {
        #[cfg(feature = "checked")]
        self.check_name(column);
        #[cfg(not(feature = "checked"))]
        let _ = column;
        self.values.next().unwrap_or(Value::Null)
    }

    pub fn opt_int(&mut self, column: &'static str) -> Result<Option<i64>, CorruptRow> {
        match self.take(column) {
            Value::Null => Ok(None),
            Value::Int(value) => Ok(Some(value)),
            other => Err(self.corrupt(column, format!("expected a number, found {}", kind(&other)))),
        }
    }

    pub fn int(&mut self, column: &'static str) -> Result<i64, CorruptRow> {
        self.opt_int(column)?.ok_or_else(|| self.corrupt(column, "is NULL"))
    }

    /// A number of a narrower type than the column's.
    pub fn num<T: TryFrom<i64>>(&mut self, column: &'static str) -> Result<T, CorruptRow> {
        let value = self.int(column)?;
        T::try_from(value).map_err(|_| self.corrupt(column, format!("{value} is out of range")))
    }

    pub fn opt_num<T: TryFrom<i64>>(&mut self, column: &'static str) -> Result<Option<T>, CorruptRow> {
        self.opt_int(column)?
            .map(|value| T::try_from(value).map_err(|_| self.corrupt(column, format!("{value} is out of range"))))
            .transpose()
    }

    pub fn time(&mut self, column: &'static str) -> Result<Timestamp, CorruptRow> {
        self.int(column).map(Timestamp)
    }

    pub fn opt_time(&mut self, column: &'static str) -> Result<Option<Timestamp>, CorruptRow> {
        Ok(self.opt_int(column)?.map(Timestamp))
    }

    pub fn flag(&mut self, column: &'static str) -> Result<bool, CorruptRow> {
        self.int(column).map(|value| value != 0)
    }

    pub fn opt_text(&mut self, column: &'static str) -> Result<Option<String>, CorruptRow> {
        match self.take(column) {
            Value::Null => Ok(None),
            Value::Text(value) => Ok(Some(value)),
            other => Err(self.corrupt(column, format!("expected text, found {}", kind(&other)))),
        }
    }

    pub fn text(&mut self, column: &'static str) -> Result<String, CorruptRow> {
        self.opt_text(column)?.ok_or_else(|| self.corrupt(column, "is NULL"))
    }

    /// A word of one of core's closed sets.
    pub fn name<T>(&mut self, column: &'static str) -> Result<T, CorruptRow>
    where
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        let text = self.text(column)?;
        text.parse().map_err(|error: T::Err| self.corrupt(column, error.to_string()))
    }

    pub fn opt_name<T>(&mut self, column: &'static str) -> Result<Option<T>, CorruptRow>
    where
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        self.opt_text(column)?
            .map(|text| text.parse().map_err(|error: T::Err| self.corrupt(column, error.to_string())))
            .transpose()
    }

    pub fn json(&mut self, column: &'static str) -> Result<Json, CorruptRow> {
        self.text(column).map(Json::trusted)
    }

    pub fn opt_json(&mut self, column: &'static str) -> Result<Option<Json>, CorruptRow> {
        Ok(self.opt_text(column)?.map(Json::trusted))
    }

    /// JSON text decoded into a type.
    pub fn decoded<T: serde::de::DeserializeOwned>(&mut self, column: &'static str) -> Result<T, CorruptRow> {
        self.opt_decoded(column)?.ok_or_else(|| self.corrupt(column, "is NULL"))
    }

    pub fn opt_decoded<T: serde::de::DeserializeOwned>(
        &mut self,
        column: &'static str,
    ) -> Result<Option<T>, CorruptRow> {
        self.opt_text(column)?
            .map(|text| serde_json::from_str(&text).map_err(|error| self.corrupt(column, error.to_string())))
            .transpose()
    }

    pub fn opt_blob(&mut self, column: &'static str) -> Result<Option<Vec<u8>>, CorruptRow> {
        match self.take(column) {
            Value::Null => Ok(None),
            Value::Blob(value) => Ok(Some(value)),
            Value::Id(id) => Ok(Some(id.to_vec())),
            other => Err(self.corrupt(column, format!("expected bytes, found {}", kind(&other)))),
        }
    }

    pub fn blob(&mut self, column: &'static str) -> Result<Vec<u8>, CorruptRow> {
        self.opt_blob(column)?.ok_or_else(|| self.corrupt(column, "is NULL"))
    }

    pub fn opt_id<T: From16>(&mut self, column: &'static str) -> Result<Option<T>, CorruptRow> {
        let bytes = match self.take(column) {
            Value::Null => return Ok(None),
            Value::Id(id) => id,
            Value::Blob(bytes) => {
                let len = bytes.len();
                bytes.try_into().map_err(|_| self.corrupt(column, format!("expected 16 bytes, found {len}")))?
            }
            other => return Err(self.corrupt(column, format!("expected an id, found {}", kind(&other)))),
        };
        self.about = Some(bytes);
        Ok(Some(T::from16(bytes)))
    }

    pub fn id<T: From16>(&mut self, column: &'static str) -> Result<T, CorruptRow> {
        self.opt_id(column)?.ok_or_else(|| self.corrupt(column, "is NULL"))
    }

    pub fn hash(&mut self, column: &'static str) -> Result<Hash, CorruptRow> {
        self.opt_hash(column)?.ok_or_else(|| self.corrupt(column, "is NULL"))
    }

    pub fn opt_hash(&mut self, column: &'static str) -> Result<Option<Hash>, CorruptRow> {
        let Some(bytes) = self.opt_blob(column)? else { return Ok(None) };
        let len = bytes.len();
        let hash = bytes.try_into().map(Hash);
        hash.map(Some).map_err(|_| self.corrupt(column, format!("expected 32 bytes, found {len}")))
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "NULL",
        Value::Int(_) => "a number",
        Value::Text(_) => "text",
        Value::Blob(_) | Value::Id(_) => "bytes",
    }
}

/// The ids that a row may hold.
pub trait From16 {
    fn from16(bytes: [u8; 16]) -> Self;
}

macro_rules! from16 {
    ($($id:ident),+) => {
        $(impl From16 for $id {
            fn from16(bytes: [u8; 16]) -> Self {
                Self::from_bytes(bytes)
            }
        })+
    };
}
from16!(TenantId, RunId, SessionId, ApprovalId, DelegationId, ReceiptId, SignalId, OutboxId, ServerId, KeyId, UserId);
from16!(ChangeId, WorkerIdentityId, DecisionId, JobId, ScheduleId, SlackId, InboundId, OutboundId);
