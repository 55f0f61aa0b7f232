//! `GET /runs/{run}/receipts`: the run's effects on other systems.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use interlock_core::ids::RunId;
use interlock_core::run::event::Event;
use interlock_core::run::receipt::Receipt;
use interlock_protocol::runs::{ReceiptList, limits, path};
use interlock_store::TenantStore;

use crate::api_error::ApiError;
use crate::request::NamedRun;
use crate::state::AppState;

/// Events of one run that are read at most; the newest.
const EVENTS_MAX: u64 = 5_000;

/// The run's effects: what was asked of other systems, and what they answered
#[utoipa::path(
    get,
    path = path::RECEIPTS,
    tag = "runs",
    params(NamedRun),
    responses((status = 200, description = "Receipts in the order of their intents.", body = ReceiptList)),
)]
pub async fn receipts(
    State(state): State<AppState>,
    NamedRun { tenant, run }: NamedRun,
) -> Result<Json<ReceiptList>, ApiError> {
    let store = state.for_tenant(tenant);
    let rows = store.receipts(run).await?;
    let overview = store.run_overview(run).await?.ok_or_else(|| ApiError::unknown_run(run))?;
    let receipts: Vec<Receipt> = rows.into_iter().map(|row| row.receipt).collect();
    let mut bundles = if receipts.iter().all(|receipt| receipt.bundle.is_some()) {
        BTreeMap::new()
    } else {
        bundles(&store, run, (overview.version, receipts.len())).await?
    };
    let kept = receipts.iter().filter_map(|receipt| Some((receipt.id.to_string(), receipt.bundle?.0.to_string())));
    bundles.extend(kept);
    Ok(Json(ReceiptList { receipts, bundles }))
}

/// Which bundle allowed each effect, read off the run's events: for receipts of earlier releases, which do not say so themselves.
async fn bundles(
    store: &TenantStore,
    run: RunId,
    (version, wanted): (u64, usize),
) -> Result<BTreeMap<String, String>, ApiError> {
    let mut found = BTreeMap::new();
    let mut since = version.saturating_sub(EVENTS_MAX);
    loop {
        let events = store.events(run, since, limits::PAGE_MAX).await?;
        let Some(last) = events.last() else { return Ok(found) };
        since = last.seq;
        for record in &events {
            if let Ok(Event::ReceiptRecorded { receipt, bundle: Some(bundle), .. }) = record.event.decode() {
                found.insert(receipt.to_string(), bundle.0.to_string());
            }
        }
        if found.len() >= wanted {
            return Ok(found);
        }
    }
}
