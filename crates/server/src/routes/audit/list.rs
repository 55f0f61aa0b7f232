//! `GET /audit`: entries of the tenant's log.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::RunId;
use interlock_core::json::Json as RawJson;
use interlock_core::tenant::identity::Permission;
use interlock_core::time::Timestamp;
use interlock_engine::audit::read::{AuditFilter, AuditQuery};
use interlock_protocol::audit::{AuditPageView, LeafSpanView, limits, path};
use interlock_protocol::live::EventOrder;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::Params;
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AuditParams {
    /// Which of the tenant's logs; the present one where omitted.
    log: Option<u64>,
    /// The entry to begin with.
    from: Option<u64>,
    limit: Option<usize>,
    /// `oldest` first, which is the log's own order, or `newest`.
    #[serde(default)]
    #[param(inline)]
    order: EventOrder,
    /// Entries about this run.
    run: Option<RunId>,
    /// Entries with this event: a name, or its first words (`approval` finds `approval.voted`).
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Entries by this person.
    actor: Option<String>,
    /// Entries about this thing: a key, a person's account …
    subject: Option<String>,
    /// Not before this instant, in milliseconds since 1970.
    since: Option<Timestamp>,
    /// Before this instant.
    until: Option<Timestamp>,
}

/// The audit log
///
/// The details of entries about runs are shown to every caller who may read; those about people and keys to admins
/// only. The log verifies either way.
#[utoipa::path(
    get,
    path = path::AUDIT,
    tag = "audit",
    params(AuditParams),
    responses(
        (status = 200, description = "A page of entries.", body = AuditPageView),
        (status = 404, description = "There is no such log."),
    ),
)]
pub async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<AuditParams>,
) -> Result<Json<AuditPageView>, ApiError> {
    let AuditParams { log, from, limit, order, run, kind, actor, subject, since, until } = params;
    let query = AuditQuery {
        number: log,
        newest_first: order == EventOrder::Newest,
        from,
        limit: limit.unwrap_or(limits::PAGE_DEFAULT).clamp(1, limits::PAGE_MAX),
        filter: AuditFilter { run, kind, actor, subject, since, until },
    };
    let sees_people = caller.may(Permission::Administer);
    let mut page = state.audit().entries(caller.tenant, &query).await?;
    if query.filter.actor.is_some() && !sees_people {
        // To find them by their person would tell what they stand for.
        page.entries.retain(|logged| logged.entry.body.run.is_some());
    }
    let mut entries = Vec::with_capacity(page.entries.len());
    for mut logged in page.entries {
        if logged.entry.body.run.is_none() && !sees_people {
            logged.opened = None;
        }
        entries.push(RawJson::of(&logged).map_err(|error| ApiError::invalid(error.to_string()))?);
    }
    let leaves = page.leaves.map(|span| LeafSpanView {
        first: span.first,
        hashes: span.hashes.iter().map(|hash| hash.0.to_string()).collect(),
    });
    Ok(Json(AuditPageView {
        log: page.number,
        origin: page.origin,
        size: page.size,
        entries,
        leaves,
        checkpoints: page.checkpoints,
        next: page.next,
    }))
}
