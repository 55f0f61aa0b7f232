//! The secrets with which webhooks are signed.

use interlock_core::time::Timestamp;

use crate::error::CorruptRow;
use crate::value::{Row, Value, args};

/// A sealed secret, and the one before it while that one still counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secrets {
    pub current: String,
    pub previous: Option<(String, Timestamp)>,
}

pub(crate) fn secrets(row: &mut Row) -> Result<Secrets, CorruptRow> {
    let current = row.text("secret")?;
    let (previous, until) = (row.opt_text("previous_secret")?, row.opt_time("previous_until")?);
    Ok(Secrets { current, previous: previous.zip(until) })
}

pub(crate) fn secret_values(secrets: &Secrets) -> Vec<Value> {
    let (previous, until) = secrets.previous.as_ref().map(|(secret, until)| (secret, *until)).unzip();
    args![&secrets.current, previous, until]
}
