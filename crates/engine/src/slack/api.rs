//! Calls to Slack and PagerDuty on a tenant's behalf. Posts and pages are the connectors' own, which can find out what has
//! become of a call whose answer was lost; what a repeat of does no harm is called directly.

use std::sync::Arc;
use std::time::Duration;

use interlock_boxed::boxed;
use interlock_connectors::send::{Caller, Operation};
use interlock_connectors::{CallFacts, CallFailure, Connection, Connections, Probed, bound, find};
use interlock_core::ids::TenantId;
use interlock_core::text::visible::visible;
use interlock_core::time::{Millis, Timestamp};
use interlock_credentials::providers::fixed::FixedSecrets;
use interlock_credentials::{Clock, Credentials, StepCredentials, StepScope};
use interlock_outbound::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use interlock_outbound::{Call, Outbound, StatusCode};
use interlock_store::SlackRow;
use serde_json::{Value, json};

use crate::error::EngineError;
use crate::parts::Slack;

const TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_BYTES_MAX: usize = 256 << 10;
/// The longest pause that Slack's `Retry-After` is believed for.
const AWAY_MAX: Millis = Millis::from_hours(1);
const POST: &str = "slack.post";
const PAGE: &str = "pagerduty.event";
/// A connection has one secret.
const SECRET: &str = "SECRET";

/// Why a call failed that may be repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct SlackFailure {
    /// In Slack's word where it has one: `channel_not_found`.
    pub what: String,
    /// How long Slack asks the server to wait (`Retry-After`).
    pub away: Option<Millis>,
}

impl SlackFailure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), away: None }
    }
}

/// Where a message was posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    pub channel: String,
    pub ts: String,
}

/// A message to be posted.
#[derive(Debug, Clone)]
pub struct NewPost {
    pub channel: String,
    pub thread_ts: Option<String>,
    pub text: String,
    pub blocks: Vec<Value>,
}

/// What is known of a Slack user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlackProfile {
    pub team: Option<String>,
    /// Invited from outside, with less rights than a member; or a bot, or gone.
    pub is_guest: bool,
}

/// A tenant's way to Slack and PagerDuty.
pub struct SlackClient {
    tenant: TenantId,
    url: String,
    hooks_url: String,
    outbound: Outbound,
    posts: Caller,
    pages: Option<Caller>,
}

impl Slack {
    /// The way to Slack by a connection.
    pub fn client(&self, row: &SlackRow) -> Result<SlackClient, EngineError> {
        let outbound = self.0.outbound().cloned().ok_or(EngineError::OutboundClosed)?;
        let options = &self.0.0.options.notices;
        let token = self.open(row, &row.bot_token)?;
        let caller = |name: &str, url: &str, secret: &str| {
            let connection = Connection::new(name, url).with_secret(SECRET);
            let secrets = FixedSecrets([(SECRET.to_owned(), secret.to_owned())].into());
            let engine = self.0.clone();
            let credentials = Credentials::of_one(name, Arc::new(secrets), Clock::new(move || engine.now()));
            Caller::new(outbound.clone(), Connections::default().with(connection), credentials)
        };
        let key = row.pagerduty_key.as_deref().map(|sealed| self.open(row, sealed)).transpose()?;
        Ok(SlackClient {
            tenant: row.tenant,
            url: options.slack_url.clone(),
            hooks_url: options.slack_hooks_url.clone(),
            posts: caller("slack", &options.slack_url, &token),
            pages: key.map(|key| caller("pagerduty", &options.pagerduty_url, &key)),
            outbound,
        })
    }
}

impl SlackClient {
    fn secrets(&self, caller: &Caller) -> StepCredentials {
        caller.step(StepScope { tenant: self.tenant, environment: None })
    }

    /// Posts a message under a key by which it is found again.
    pub(crate) async fn post(&self, post: &NewPost, key: &str) -> Result<Posted, CallFailure> {
        let fields = fields(POST, post.fields())?;
        let connector = find(POST).expect("the connector exists");
        let operation = Operation { connector, fields: &fields, secrets: &self.secrets(&self.posts) };
        let output = self.posts.perform(operation, &facts(key, None), &|| true).await?;
        posted(&output)
    }

    /// What has become of a post whose answer was lost.
    pub(crate) async fn find_post(&self, post: &NewPost, key: &str, since: Timestamp) -> PostTrace {
        let Ok(fields) = fields(POST, post.fields()) else { return PostTrace::CannotTell("it cannot be read".into()) };
        let connector = find(POST).expect("the connector exists");
        let operation = Operation { connector, fields: &fields, secrets: &self.secrets(&self.posts) };
        match self.posts.probe(operation, &facts(key, Some(since))).await {
            Probed::Happened(output) => match posted(&output) {
                Ok(posted) => PostTrace::Posted(posted),
                Err(failure) => PostTrace::CannotTell(failure.message),
            },
            Probed::NoTrace => PostTrace::NoTrace,
            Probed::CannotTell(why) => PostTrace::CannotTell(why),
        }
    }

    /// Pages the person on call, or says that it is over. PagerDuty drops repeats by the key.
    pub(crate) async fn page(&self, event: Value) -> Result<(), CallFailure> {
        let Some(pages) = &self.pages else {
            return Err(CallFailure::refused("UNUSABLE", "the tenant has no routing key of PagerDuty"));
        };
        let fields = fields(PAGE, event)?;
        let connector = find(PAGE).expect("the connector exists");
        let operation = Operation { connector, fields: &fields, secrets: &self.secrets(pages) };
        pages.perform(operation, &CallFacts::default(), &|| true).await.map(drop)
    }

    /// Shows something else in a message's place.
    pub(crate) async fn update(&self, at: &Posted, text: &str, blocks: &[Value]) -> Result<(), SlackFailure> {
        let body = json!({ "channel": at.channel, "ts": at.ts, "text": text, "blocks": blocks });
        self.call("chat.update", body).await.map(drop)
    }

    /// Opens a dialog for the user who has just pressed a button.
    #[boxed]
    pub async fn open_view(&self, trigger_id: &str, view: Value) -> Result<(), SlackFailure> {
        self.call("views.open", json!({ "trigger_id": trigger_id, "view": view })).await.map(drop)
    }

    /// Tells one person something that no other person in the channel sees.
    #[boxed]
    pub async fn whisper(&self, to: &Whisper, text: &str) -> Result<(), SlackFailure> {
        if let Some(url) = to.response_url.as_deref().filter(|url| self.is_hook(url)) {
            let body = json!({ "response_type": "ephemeral", "replace_original": false, "text": text });
            self.send(Call::post(url, body.to_string()), false).await.map(drop)
        } else {
            let body = json!({ "channel": to.channel, "user": to.user, "text": text });
            self.call("chat.postEphemeral", body).await.map(drop)
        }
    }

    /// A payload's address is followed only where Slack's own are.
    fn is_hook(&self, url: &str) -> bool {
        url.strip_prefix(&self.hooks_url).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Whether a user is a member of the workspace, or a guest.
    #[boxed]
    pub async fn profile(&self, user: &str) -> Result<SlackProfile, SlackFailure> {
        if user.is_empty() || !user.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(SlackFailure::new("this is no id of a Slack user"));
        }
        // Slack takes no JSON where it is only asked.
        let call = Call::get(format!("{}/api/users.info?user={user}", self.url));
        let answer = checked("users.info", &self.send(call, true).await?)?;
        let user = &answer["user"];
        let is = |name: &str| user[name] == true;
        let is_guest = ["is_restricted", "is_ultra_restricted", "is_stranger", "is_bot", "deleted"].into_iter().any(is);
        Ok(SlackProfile { team: user["team_id"].as_str().map(str::to_owned), is_guest })
    }

    async fn call(&self, method: &str, body: Value) -> Result<Value, SlackFailure> {
        let call = Call::post(format!("{}/api/{method}", self.url), body.to_string());
        checked(method, &self.send(call, true).await?)
    }

    async fn send(&self, mut call: Call, with_token: bool) -> Result<Vec<u8>, SlackFailure> {
        if !call.body.is_empty() {
            call.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
        }
        if with_token {
            let token = self.secrets(&self.posts).get(SECRET).await;
            let token = token.map_err(|error| SlackFailure::new(error.to_string()))?;
            let bearer = HeaderValue::from_str(&format!("Bearer {}", token.reveal()));
            let mut bearer = bearer.map_err(|_| SlackFailure::new("the bot token cannot be sent in a header"))?;
            bearer.set_sensitive(true);
            call.headers.insert(AUTHORIZATION, bearer);
        }
        (call.timeout, call.redirects_max, call.answer_bytes_max) = (TIMEOUT, 0, ANSWER_BYTES_MAX);
        let answer = self.outbound.send(call).await.map_err(|error| SlackFailure::new(error.to_string()))?;
        if answer.status.is_success() {
            return Ok(answer.body);
        }
        let away = answer.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse::<u64>().ok());
        let away = away.filter(|_| answer.status == StatusCode::TOO_MANY_REQUESTS);
        let away = away.map(|seconds| Millis::from_secs(seconds.min(AWAY_MAX.0 / 1_000)));
        Err(SlackFailure { what: format!("Slack answered {}", answer.status.as_u16()), away })
    }
}

/// Slack answers errors with status 200 and `"ok": false`.
fn checked(method: &str, answer: &[u8]) -> Result<Value, SlackFailure> {
    let answer: Value = serde_json::from_slice(answer)
        .map_err(|_| SlackFailure::new(format!("Slack's answer to {method} is no JSON")))?;
    if answer["ok"] == true {
        return Ok(answer);
    }
    let said: String = answer["error"].as_str().unwrap_or("unknown_error").chars().take(80).collect();
    Err(SlackFailure::new(format!("Slack refuses {method}: {}", visible(&said))))
}

/// What is known of a post.
pub(crate) enum PostTrace {
    Posted(Posted),
    NoTrace,
    CannotTell(String),
}

/// The user who gets an ephemeral message, and the address that Slack has given for it.
#[derive(Debug, Clone)]
pub struct Whisper {
    pub channel: String,
    pub user: String,
    pub response_url: Option<String>,
}

impl NewPost {
    fn fields(&self) -> Value {
        let mut fields = json!({ "channel": self.channel, "text": self.text, "connection": "slack" });
        if let Some(thread) = &self.thread_ts {
            fields["thread_ts"] = json!(thread);
        }
        if !self.blocks.is_empty() {
            fields["blocks"] = json!(self.blocks);
        }
        fields
    }
}

fn fields(operation: &str, fields: Value) -> Result<interlock_connectors::Fields, CallFailure> {
    let connector = find(operation).expect("the connector exists");
    bound(connector, fields).map_err(|what| CallFailure::refused("UNUSABLE", what))
}

fn facts(key: &str, since: Option<Timestamp>) -> CallFacts {
    CallFacts { key: key.to_owned(), since, ..CallFacts::default() }
}

fn posted(output: &Value) -> Result<Posted, CallFailure> {
    match (output["channel"].as_str(), output["ts"].as_str()) {
        (Some(channel), Some(ts)) => Ok(Posted { channel: channel.to_owned(), ts: ts.to_owned() }),
        _ => Err(CallFailure::unreadable("Slack does not say where the message is")),
    }
}
