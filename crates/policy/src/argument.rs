//! What the functions of a policy are called with: read as what they expect, and bounded.

use regorus::Value;

use crate::limits;

/// Why a call has no result.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Failure {
    TooMuch(&'static str),
    /// The arguments do not fit.
    Argument,
}

pub(crate) fn text(value: &Value) -> Result<&str, Failure> {
    value.as_string().map(AsRef::as_ref).map_err(|_| Failure::Argument)
}

pub(crate) fn list(value: &Value) -> Result<Vec<Value>, Failure> {
    match value {
        Value::Array(items) => Ok(items.iter().cloned().collect()),
        Value::Set(items) => Ok(items.iter().cloned().collect()),
        _ => Err(Failure::Argument),
    }
}

pub(crate) fn within(length: usize) -> Result<(), Failure> {
    if length > limits::TEXT_BYTES_MAX {
        return Err(Failure::TooMuch("the text would be too long"));
    }
    Ok(())
}
