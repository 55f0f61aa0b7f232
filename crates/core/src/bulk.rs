//! One action on many runs.

use std::fmt;
use std::str::FromStr;

use crate::state::{UnknownName, names};

names!(
    /// What a bulk job does to each of its runs.
    BulkAction, "bulk action", {
        Cancel = "cancel",
        Retry = "retry",
        Resume = "resume",
    }
);
