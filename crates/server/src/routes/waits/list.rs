//! `GET /waits`: steps that wait for a signal, by its type and key.

use std::fmt::Write as _;

use axum::Json;
use axum::extract::State;
use interlock_core::json::NUL;
use interlock_core::time::Timestamp;
use interlock_protocol::runs::{WaitList, WaitView, limits, path};
use interlock_store::{ReadError, TenantStore, WaitFilter, WaitRow};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::Params;
use crate::request::{PAGE_DEFAULT, cut};
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WaitListParams {
    /// The signal's type.
    #[serde(rename = "type")]
    #[param(rename = "type")]
    signal: Option<String>,
    /// The signal's key; needs its type.
    key: Option<String>,
    limit: Option<usize>,
    /// `next_after` of the page before.
    after: Option<String>,
}

/// List the waits of runs
#[utoipa::path(
    get,
    path = path::WAITS,
    tag = "signals",
    params(WaitListParams),
    responses((status = 200, description = "A page of waits, by type, key and age.", body = WaitList)),
)]
pub async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<WaitListParams>,
) -> Result<Json<WaitList>, ApiError> {
    if params.key.is_some() && params.signal.is_none() {
        return Err(ApiError::malformed(
            "the query: `key` needs `type`: keys are looked up under the type of their signal",
        ));
    }
    let after = params.after.as_deref().map(from_cursor).transpose()?;
    let workspace = caller.workspace.as_deref().map(str::to_owned);
    let filter = WaitFilter { workspace, signal_type: params.signal, key: params.key };
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, limits::PAGE_MAX);
    let store = state.for_tenant(caller.tenant);
    let mut rows = store.list_waits(&filter, after.as_ref(), limit + 1).await?;
    let next_after = cut(&mut rows, limit, to_cursor);
    let mut waits = Vec::with_capacity(rows.len());
    for row in rows {
        let step = step_key(&store, &row).await?;
        waits.push(view(row, step));
    }
    Ok(Json(WaitList { waits, next_after }))
}

/// The key of the step that waits, from its run's plan: the runs of a workflow share one, which the store keeps in memory.
/// A run whose plan cannot be read leaves its wait without one.
async fn step_key(store: &TenantStore, wait: &WaitRow) -> Result<Option<String>, ApiError> {
    let Some(hash) = wait.plan else { return Ok(None) };
    match store.plan(hash).await {
        Ok(plan) => Ok(plan.step(wait.position).map(|step| step.key.clone())),
        Err(ReadError::Corrupt(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn view(row: WaitRow, step: Option<String>) -> WaitView {
    let WaitRow { run, position, signal_type, key, accept_from, opened_at, plan: _ } = row;
    WaitView { run_id: run, position, step, signal: signal_type, key, accept_from, opened_at }
}

/// Where a page ended: opaque to the client, so that it can change.
fn to_cursor(row: &WaitRow) -> String {
    let place = serde_json::json!([row.signal_type, row.key, row.opened_at.0, row.run]).to_string();
    place.bytes().fold(String::with_capacity(place.len() * 2), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn from_cursor(text: &str) -> Result<WaitRow, ApiError> {
    let invalid = || ApiError::malformed("the query: `after` is no `next_after` of an earlier page");
    let bytes = text.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).map_err(|_| invalid())?;
        u8::from_str_radix(pair, 16).map_err(|_| invalid())
    });
    let bytes = bytes.collect::<Result<Vec<u8>, _>>()?;
    let (signal_type, key, opened_at, run): (String, String, i64, _) =
        serde_json::from_slice(&bytes).map_err(|_| invalid())?;
    // No page has ended there, and PostgreSQL takes no such text.
    if signal_type.contains(NUL) || key.contains(NUL) {
        return Err(invalid());
    }
    Ok(WaitRow {
        run,
        plan: None,
        position: 0,
        signal_type,
        key,
        accept_from: Timestamp::default(),
        opened_at: Timestamp(opened_at),
    })
}

#[cfg(test)]
mod tests {
    use interlock_core::ids::RunId;

    use super::*;

    #[test]
    fn a_cursor_with_a_nul_is_none() {
        let run = RunId::from_bytes([7; 16]);
        for (signal, key) in [("go\0", "k"), ("go", "\0")] {
            let place = serde_json::json!([signal, key, 1, run]).to_string();
            let hex: Vec<String> = place.bytes().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(from_cursor(&hex.concat()).unwrap_err().status().as_u16(), 400);
        }
    }

    #[test]
    fn a_cursor_leads_back_to_its_place() {
        let row = WaitRow {
            run: RunId::from_bytes([7; 16]),
            plan: None,
            position: 0,
            signal_type: "größer".into(),
            key: "k\"1".into(),
            accept_from: Timestamp::default(),
            opened_at: Timestamp(9),
        };
        assert_eq!(from_cursor(&to_cursor(&row)).unwrap(), row);
        for broken in ["", "x", "zz", "5b5d", "é"] {
            assert!(from_cursor(broken).is_err(), "{broken}");
        }
    }
}
