//! Ways into a Vault, and the token that a worker has while it works.
//!
//! One token serves all steps of a worker. It is renewed in its second half, replaced by a new login when that is refused,
//! and revoked when the worker stops. Leases end with the token that they were made with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracing::{debug, warn};
use zeroize::Zeroizing;

use super::answer::{Granted, field, granted};
use super::api::{Api, VaultCall};
use super::aws::AwsIdentity;
use crate::clock::Clock;
use crate::error::Cause;
use crate::limits;
use crate::memory::SecretBuf;
use crate::reading::{off_thread, read_guarded, read_private, value_of_file};

/// A token without an end is replaced after this long.
const TOKEN_AGE_MAX: Duration = Duration::from_hours(1);
/// A refused login is not tried again before: a Vault counts them, and locks callers out.
const REFUSED_PAUSE: Duration = Duration::from_secs(10);

/// A token that could not be renewed is tried again after this long.
const RENEW_PAUSE: Duration = Duration::from_secs(10);

/// How a worker proves who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    AppRole {
        /// Where the method is mounted: `approle`.
        mount: String,
        role_id: String,
        secret_id_file: PathBuf,
        /// The file holds a wrapping token, which can be exchanged once.
        wrapped: bool,
    },
    /// A signed token of the platform (Kubernetes, a cloud, a CI system), read anew for each login. Also serves
    /// `kubernetes`, `gcp` and `azure`, which take the same.
    Jwt {
        mount: String,
        role: String,
        jwt_file: PathBuf,
        /// What the method asks for besides: `azure` takes the names of the machine.
        fields: BTreeMap<String, String>,
    },
    /// A question to AWS who asks, signed with the worker's keys.
    Aws { mount: String, role: String, identity: AwsIdentity },
}

// Bodies that borrow what they send: a JSON value would hold a copy that is never wiped.

/// What files of a login hold.
const SECRET_ID: &str = "the secret id";
const SIGNED_TOKEN: &str = "the signed token";

#[derive(Serialize)]
struct AppRoleBody<'a> {
    role_id: &'a str,
    secret_id: &'a str,
}

#[derive(Serialize)]
struct JwtBody<'a> {
    role: &'a str,
    jwt: &'a str,
    #[serde(flatten)]
    fields: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
struct AwsBody<'a> {
    role: &'a str,
    iam_http_request_method: &'static str,
    iam_request_url: &'a str,
    iam_request_body: &'a str,
    iam_request_headers: &'a str,
}

#[derive(Serialize)]
struct WrappedBody<'a> {
    token: &'a str,
}

pub(super) struct Session {
    login: Login,
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    token: Option<Token>,
    refused: Option<(Cause, Instant)>,
    /// The wrapping token that was exchanged, and what for.
    unwrapped: Option<(SecretBuf, Arc<SecretBuf>)>,
}

struct Token {
    value: Arc<SecretBuf>,
    renewable: bool,
    renew_at: Instant,
    until: Instant,
}

impl Token {
    fn of(granted: Granted) -> Self {
        let good_for = if granted.duration.is_zero() { TOKEN_AGE_MAX } else { granted.duration };
        Self {
            value: Arc::new(granted.token),
            renewable: granted.renewable,
            renew_at: Clock::after(good_for / 2),
            // A call that begins now should end before the token does.
            until: Clock::after(good_for.saturating_sub(limits::CALL_TIMEOUT)),
        }
    }
}

impl Session {
    pub fn new(login: Login, clock: Clock) -> Self {
        Self { login, clock, state: Mutex::default() }
    }

    /// The worker's token: the one that it has, renewed or replaced where that is due.
    pub async fn token(&self, api: &Api) -> Result<Arc<SecretBuf>, Cause> {
        // Held over the calls: other callers that need a token wait for this one.
        let mut state = self.state.lock().await;
        if let Some(token) = state.token.as_ref().filter(|token| Clock::is_past(token.renew_at)) {
            // The token stays where it is until there is an answer: the caller may be dropped meanwhile.
            state.token = renewed(api, token).await;
        }
        if let Some(token) = &state.token {
            return Ok(Arc::clone(&token.value));
        }
        if let Some((cause, until)) = &state.refused
            && !Clock::is_past(*until)
        {
            return Err(cause.clone());
        }
        match self.sign_in(api, &mut state).await {
            Ok(granted) => {
                let token = Token::of(granted);
                let value = Arc::clone(&token.value);
                state.token = Some(token);
                state.refused = None;
                Ok(value)
            }
            Err(cause) => {
                if matches!(cause, Cause::LoginRefused(_)) {
                    state.refused = Some((cause.clone(), Clock::after(REFUSED_PAUSE)));
                }
                Err(cause)
            }
        }
    }

    /// Whether what a login takes from this machine can be read. Nothing of it is used: it may be good for one use only.
    pub async fn look(&self) -> Result<(), Cause> {
        match &self.login {
            Login::AppRole { secret_id_file, .. } => from_file(secret_id_file, SECRET_ID, read_guarded).await.map(drop),
            Login::Jwt { jwt_file, .. } => from_file(jwt_file, SIGNED_TOKEN, read_private).await.map(drop),
            Login::Aws { identity, .. } => identity.look().await,
        }
    }

    /// This token is dead.
    pub async fn forget(&self, dead: &Arc<SecretBuf>) {
        let mut state = self.state.lock().await;
        state.token.take_if(|token| Arc::ptr_eq(&token.value, dead));
    }

    pub async fn close(&self, api: &Api) {
        let Some(token) = self.state.lock().await.token.take() else { return };
        let revoke = VaultCall::post("auth/token/revoke-self", &json!({}));
        if let Err(cause) = api.send(&revoke, Some(&token.value)).await {
            warn!(%cause, "the worker's token could not be revoked; it ends by itself");
        }
    }

    async fn sign_in(&self, api: &Api, state: &mut State) -> Result<Granted, Cause> {
        match &self.login {
            Login::AppRole { mount, role_id, secret_id_file, wrapped } => {
                let secret_id = secret_id(api, state, mount, secret_id_file, *wrapped).await?;
                let path = format!("auth/{mount}/login");
                let body = AppRoleBody { role_id, secret_id: secret_id.reveal() };
                let call = VaultCall::post(&path, &body).hiding([&*secret_id]);
                let hint = "; the secret id may be used up or expired: put a new one into its file";
                granted_by(api, &call, hint).await
            }
            Login::Jwt { mount, role, jwt_file, fields } => {
                // The platform writes it anew all the time, in its own way, and it ends soon.
                let jwt = from_file(jwt_file, SIGNED_TOKEN, read_private).await?;
                let path = format!("auth/{mount}/login");
                let body = JwtBody { role, jwt: jwt.reveal(), fields };
                let call = VaultCall::post(&path, &body).hiding([&jwt]);
                granted_by(api, &call, "; the signed token may be expired, or made for another audience").await
            }
            Login::Aws { mount, role, identity } => {
                let signed = identity.sign(self.clock.now()).await?;
                let path = format!("auth/{mount}/login");
                let body = AwsBody {
                    role,
                    iam_http_request_method: "POST",
                    iam_request_url: &signed.url,
                    iam_request_body: &signed.body,
                    iam_request_headers: signed.headers.reveal(),
                };
                let secrets = [&signed.headers].into_iter().chain(&signed.session_token);
                let call = VaultCall::post(&path, &body).hiding(secrets);
                let hint = "; the role may be for another identity, the keys expired, this machine's clock wrong, or \
                            the Vault expects another server_id or region";
                granted_by(api, &call, hint).await
            }
        }
    }
}

/// The secret id, unwrapped where the file holds a wrapping token.
async fn secret_id(
    api: &Api,
    state: &mut State,
    mount: &str,
    file: &Path,
    wrapped: bool,
) -> Result<Arc<SecretBuf>, Cause> {
    let written = from_file(file, SECRET_ID, read_guarded).await?;
    if !wrapped {
        return Ok(Arc::new(written));
    }
    if let Some((_, secret_id)) = state.unwrapped.as_ref().filter(|(from, _)| from.reveal() == written.reveal()) {
        return Ok(Arc::clone(secret_id));
    }
    let secret_id = Arc::new(unwrap(api, mount, &written).await?);
    state.unwrapped = Some((written, Arc::clone(&secret_id)));
    Ok(secret_id)
}

/// The token with a new term; none where it cannot have one and its end is near.
async fn renewed(api: &Api, token: &Token) -> Option<Token> {
    if token.renewable {
        let renew = VaultCall::post("auth/token/renew-self", &json!({}));
        match api.send(&renew, Some(&token.value)).await.and_then(|answer| granted(&answer.body)) {
            Ok(granted) => return Some(Token::of(granted)),
            Err(cause) => debug!(%cause, "the worker's token could not be renewed"),
        }
    }
    let kept = || Token {
        value: Arc::clone(&token.value),
        renewable: token.renewable,
        renew_at: Clock::after(RENEW_PAUSE),
        until: token.until,
    };
    (!Clock::is_past(token.until)).then(kept)
}

async fn granted_by(api: &Api, call: &VaultCall<'_>, hint: &str) -> Result<Granted, Cause> {
    match api.send(call, None).await {
        Ok(answer) => granted(&answer.body),
        Err(Cause::NotThere(what)) => Err(Cause::LoginRefused(format!(": {what}{hint}"))),
        Err(Cause::Denied(what)) => Err(Cause::LoginRefused(format!("{what}{hint}"))),
        Err(cause) => Err(cause),
    }
}

/// Exchanges a wrapping token for the secret id inside, after making sure that one is inside: an attacker on the way
/// could have taken the real one and wrapped something else.
async fn unwrap(api: &Api, mount: &str, token: &SecretBuf) -> Result<SecretBuf, Cause> {
    let gone = |what: String| {
        Cause::LoginRefused(format!(
            ": {what}; the wrapping token was used already or has expired. If none of your workers has used it, another \
             party has: look into the Vault's audit log, and have a new secret id made"
        ))
    };
    let refused = |cause: Cause| match cause {
        Cause::NotThere(what) | Cause::Denied(what) => gone(what),
        cause => cause,
    };
    let lookup = VaultCall::post("sys/wrapping/lookup", &WrappedBody { token: token.reveal() }).hiding([token]);
    let answer = api.send(&lookup, None).await.map_err(refused)?;
    let made_by = field(&answer.body, "creation_path")?;
    let begins = format!("auth/{mount}/role/");
    if !(made_by.reveal().starts_with(&begins) && made_by.reveal().ends_with("/secret-id")) {
        let what = format!(": the wrapping token was not made by `{begins}ROLE/secret-id`; it is not used");
        return Err(Cause::LoginRefused(what));
    }
    let unwrap = VaultCall::post("sys/wrapping/unwrap", &json!({}));
    let answer = api.send(&unwrap, Some(token)).await.map_err(refused)?;
    field(&answer.body, "secret_id")
}

/// [`read_private`] or [`read_guarded`].
type ReadFile = fn(&Path, usize) -> std::io::Result<Zeroizing<Vec<u8>>>;

async fn from_file(path: &Path, what: &str, read: ReadFile) -> Result<SecretBuf, Cause> {
    let file = path.to_owned();
    let bytes = off_thread(move || read(&file, limits::SECRET_BYTES_MAX)).await;
    let unusable = |why: String| Cause::LoginRefused(format!(": {what} in {}: {why}", path.display()));
    let bytes = bytes.map_err(|error| unusable(error.to_string()))?;
    value_of_file(&bytes).map_err(|cause| unusable(cause.to_string()))
}
