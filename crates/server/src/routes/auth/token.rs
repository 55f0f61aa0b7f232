//! `POST /auth/token`: a person's token for a command line, for a password or for a code from the page `/auth/cli`.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use interlock_protocol::identity::{NewToken, PersonToken, path};

use crate::api_error::ApiError;
use crate::connections::PeerAddress;
use crate::origin;
use crate::request::Body;
use crate::state::AppState;

/// Get a person's token
///
/// Sent like a key, it stands for the person, who may vote. It lasts as long as a visit; `POST /auth/logout` ends it.
#[utoipa::path(
    post,
    path = path::TOKEN,
    tag = "auth",
    request_body = NewToken,
    responses((status = 200, description = "The token.", body = PersonToken)),
)]
pub async fn token(
    State(state): State<AppState>,
    peer: PeerAddress,
    headers: HeaderMap,
    Body(new): Body<NewToken>,
) -> Result<Json<PersonToken>, ApiError> {
    // Another site's page is not to guess passwords from inside.
    origin::check_host(&state, &headers)?;
    origin::check_origin(&state, &headers)?;
    let identity = state.identity();
    let (user, proven_at) = match new {
        NewToken::Password(login) => {
            let tenant = state.tenant_named(login.tenant.as_deref()).await?;
            (identity.log_in(tenant, &login.name, login.password, peer).await?, state.now())
        }
        NewToken::Code { code, verifier } => identity.taken_over(&code, &verifier).await?,
    };
    identity.open_token(&user, proven_at).await.map(Json)
}
