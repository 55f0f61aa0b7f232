//! How the answer to every one of the operator's directives looks: where the run stands.

use axum::Json;
use interlock_engine::commands::{RunStatus, VotesNeeded};
use interlock_protocol::runs;

pub fn answer(standing: RunStatus) -> Json<runs::Standing> {
    let needs = standing.needs.map(|needs| {
        let VotesNeeded { approval, approved, needed } = needs;
        runs::VotesNeeded { approval, approved, needed }
    });
    Json(runs::Standing { run_id: standing.run, state: standing.state, version: standing.version, needs })
}
