//! What all of the operator's directives share: who asks, and how the run's standing is answered.

use axum::Json;
use interlock_core::change::Context;
use interlock_core::state::Initiator;
use interlock_engine::commands::Standing;
use interlock_protocol::runs;

/// Whoever holds the token is an operator. People get names when identities exist.
pub const OPERATOR: Context = Context { initiator: Initiator::Operator, person: None, metadata: None };

pub fn answer(standing: Standing) -> Json<runs::Standing> {
    Json(runs::Standing { run_id: standing.run, state: standing.state, version: standing.version })
}
