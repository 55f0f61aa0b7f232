//! One file for each system.

pub mod email;
pub mod github;
pub mod http;
pub mod model;
pub mod pagerduty;
pub mod servicenow;
pub mod slack;

use crate::limits;
use crate::schema::{Field, Kind, Need};

/// Which connection a call goes through.
pub(crate) const fn connection(default: &'static str) -> Field {
    let about = "The connection that the worker is configured with.";
    Field::new("connection", Kind::Id(limits::SHORT_TEXT), Need::Default(default), about)
}
