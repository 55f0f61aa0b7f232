//! How the answer to every one of the operator's directives looks: where the run stands.

use axum::Json;
use interlock_engine::commands::Standing;
use interlock_protocol::runs;

pub fn answer(standing: Standing) -> Json<runs::Standing> {
    Json(runs::Standing { run_id: standing.run, state: standing.state, version: standing.version })
}
