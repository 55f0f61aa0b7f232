//! `GET /runs/{run}/evidence`: the signed bundle about an ended run.

use axum::extract::State;
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use interlock_core::json::Json as Bundle;
use interlock_protocol::audit::path;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::api_error::ApiError;
use crate::query::Params;
use crate::request::NamedRun;
use crate::state::AppState;

/// How a bundle is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceFormat {
    /// The DSSE envelope, which can be verified.
    #[default]
    Dsse,
    /// A page for people.
    Html,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EvidenceParams {
    /// `dsse`, the envelope, or `html`, a page for people.
    #[serde(default)]
    #[param(inline)]
    format: EvidenceFormat,
    /// 0 for the bundle itself, from 1 on its addenda; the newest where omitted.
    number: Option<u32>,
}

/// The evidence of a run
///
/// An in-toto statement in a DSSE envelope: what the run did, and the proof that the audit log says so. Runs with
/// approvals or effects have theirs within seconds of their end; for others it is made when it is first asked for.
#[utoipa::path(
    get,
    path = path::EVIDENCE,
    tag = "audit",
    params(NamedRun, EvidenceParams),
    responses(
        (
            status = 200,
            description = "The bundle, or with `format=html` a page that shows it.",
            content((Bundle = "application/json"), (String = "text/html"))
        ),
        (status = 409, description = "The run has not ended, or its evidence is too long for one bundle."),
        (status = 503, description = "The end of the run is not in the audit log yet; ask again in a second."),
    ),
)]
pub async fn evidence(
    State(state): State<AppState>,
    NamedRun { tenant, run }: NamedRun,
    Params(params): Params<EvidenceParams>,
) -> Result<Response, ApiError> {
    let evidence = state.audit().evidence(tenant, run, params.number).await?;
    let sha256 = (HeaderName::from_static("interlock-sha256"), evidence.sha256.to_string());
    Ok(match params.format {
        EvidenceFormat::Dsse => {
            let kind = (header::CONTENT_TYPE, "application/json".to_owned());
            ([kind, sha256], evidence.bundle.as_str().to_owned()).into_response()
        }
        EvidenceFormat::Html => {
            let kind = (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned());
            let policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox".to_owned();
            ([kind, sha256, (header::CONTENT_SECURITY_POLICY, policy)], evidence.page()?).into_response()
        }
    })
}
