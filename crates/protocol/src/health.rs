//! What the health checks answer.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok` for a process that answers, `ready` for one that takes requests.
    pub status: String,
}
