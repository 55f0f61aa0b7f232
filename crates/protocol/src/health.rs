//! What the health checks answer.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok` for a process that answers, `ready` for one that takes requests, `degraded` for one that takes them and
    /// cannot do all of its work.
    pub status: String,
    /// What it cannot do. The server's log says more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}
