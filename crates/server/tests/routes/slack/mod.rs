//! Approvals in Slack: cards, presses, links and the ladder, against a stand-in that is as strict as Slack says it is.

mod cards;
mod ladder;
mod links;
mod presses;
mod settings;
mod stand_in;

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, header};
use hmac::{Hmac, KeyInit as _, Mac as _};
use interlock_core::ids::{ApprovalId, ServerId, SlackId, TenantId};
use interlock_core::json::Hash;
use interlock_core::time::{Millis, Timestamp};
pub use interlock_core::trigger::webhook::slack_interaction::APPROVE;
use interlock_core::trigger::webhook::slack_interaction::{REJECT, REJECT_DIALOG};
use interlock_engine::slack::NoticeOptions;
use interlock_engine::slack::settings::SlackSettings;
use interlock_engine::vault::{SecretOf, Vault};
use interlock_engine::{Engine, EngineOptions};
use interlock_outbound::{Outbound, OutboundOptions};
use interlock_store::{
    AddSlackLinkRequest, LinkSlackUser, NoFaults, Options, PutSlack, Secrets, SlackLinkRequestRow, SlackLinkRow,
    SlackRow, SlackUser, Store,
};
use serde_json::{Value, json};
use sha2::Sha256;
pub use stand_in::SlackMessage;
use stand_in::{CHANNELS, ROUTING_KEY, StandIn, TOKEN};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::approvals::Person;
use crate::harness::{self, Api, ApiResponse};

const TEAM: &str = "T0TEAM";
const SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
const DAYS_AGO: Millis = Millis::from_hours(48);

/// A tenant's connection that is told nothing, and a person who is linked: for tests that are about other things.
pub async fn connected(api: &Api, tenant: TenantId, person: &str) -> SlackId {
    let id = SlackId(api.engine.fresh_id());
    let row = SlackRow { fed_to: 1 << 60, ..connection(tenant, id, api.engine.now() - DAYS_AGO) };
    api.engine.store().write(PutSlack(row)).await.unwrap();
    link(api, tenant, person, "U0LINKED", api.engine.now() - DAYS_AGO).await;
    id
}

fn connection(tenant: TenantId, id: SlackId, at: Timestamp) -> SlackRow {
    let vault = Vault::new(&[7; 32]);
    let sealed = |secret: &str| vault.seal(SecretOf { tenant, of: id.0 }, secret);
    SlackRow {
        tenant,
        id,
        team: TEAM.into(),
        enterprise: None,
        channel: CHANNELS[0].into(),
        escalation_channel: Some(CHANNELS[1].into()),
        bot_token: sealed(TOKEN),
        secrets: Secrets { current: sealed(SECRET), previous: None },
        pagerduty_key: Some(sealed(ROUTING_KEY)),
        rung_prod: Millis::from_mins(10),
        rung_other: Millis::from_mins(30),
        fed_to: 0,
        fed_at: at,
        created_at: at,
        created_by: None,
        secret_at: at,
        secret_by: None,
    }
}

/// Links a person to a Slack user, since an instant.
async fn link(api: &Api, tenant: TenantId, person: &str, user: &str, at: Timestamp) {
    let who = SlackUser { enterprise: String::new(), team: TEAM.into(), user: user.into() };
    let token_hash = Hash::of(format!("{tenant}{person}").as_bytes());
    let expires_at = at + Millis::from_mins(10);
    let slack_name = person.to_owned();
    let request = SlackLinkRequestRow { tenant, token_hash, who: who.clone(), slack_name, created_at: at, expires_at };
    api.engine.store().write(AddSlackLinkRequest(request)).await.unwrap();
    let link = SlackLinkRow { tenant, who, person: person.into(), linked_at: at, linked_by: person.into() };
    api.engine.store().write(LinkSlackUser { token_hash, link }).await.unwrap();
}

/// A server whose Slack is the stand-in, over sockets.
pub struct Slacked {
    pub api: Api,
    pub slack: StandIn,
    id: SlackId,
    at: String,
}

fn options(options: &mut EngineOptions, at: &str) {
    let open = OutboundOptions { open: vec!["127.0.0.1".parse().unwrap()], ..OutboundOptions::default() };
    options.outbound = Some(Outbound::new(open).unwrap());
    options.notices = NoticeOptions {
        slack_url: at.to_owned(),
        slack_hooks_url: at.to_owned(),
        pagerduty_url: at.to_owned(),
        public_url: Some("https://interlock.example.org".to_owned()),
    };
}

impl Slacked {
    /// On SQLite, connected days ago.
    pub async fn new() -> Self {
        static DATABASES: AtomicU64 = AtomicU64::new(0);
        let slack = StandIn::default();
        let at = format!("http://{}", slack.listen().await);
        let database = format!("slack-{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let engine = harness::engine_of(&database, Arc::new(NoFaults), |changed| options(changed, &at)).await;
        Self::of(engine, database, slack, at).await
    }

    pub async fn on_postgres(name: &str) -> Self {
        let slack = StandIn::default();
        let at = format!("http://{}", slack.listen().await);
        let mut equipped = harness::equipped();
        options(&mut equipped, &at);
        let store =
            Store::open(&harness::postgres(name).await, Options::new(ServerId(equipped.ids.fresh()))).await.unwrap();
        let engine = Engine::open(store, equipped).await.unwrap();
        Self::of(engine, name.to_owned(), slack, at).await
    }

    async fn of(engine: Engine, database: String, slack: StandIn, at: String) -> Self {
        let tenants = [1, 2].map(|number| TenantId(Uuid::from_u128(number)));
        for (tenant, name) in tenants.into_iter().zip(["one", "two"]) {
            engine.tenants().put(interlock_store::Tenant::new(tenant, name, engine.now())).await.unwrap();
        }
        let id = SlackId(engine.fresh_id());
        let row = connection(tenants[0], id, engine.now() - DAYS_AGO);
        engine.store().write(PutSlack(row)).await.unwrap();
        Self { api: Api::of(engine, tenants, database).await, slack, id, at }
    }

    /// A person who may approve, is signed in, and was linked days ago.
    async fn person(&self, name: &str, user: &str) -> Person<'_> {
        let person = Person::new(&self.api, name, json!(["approver"]), json!([])).await;
        link(&self.api, self.api.tenant, name, user, self.api.engine.now() - DAYS_AGO).await;
        person
    }

    /// Links a person who has an account, days ago.
    pub async fn link_long_ago(&self, name: &str, user: &str) {
        link(&self.api, self.api.tenant, name, user, self.api.engine.now() - DAYS_AGO).await;
    }

    /// Links a person of the other tenant, in that tenant.
    pub async fn link_elsewhere(&self, name: &str, user: &str) {
        link(&self.api, self.api.other_tenant, name, user, self.api.engine.now() - DAYS_AGO).await;
    }

    /// A run that waits for so many people.
    async fn gated(&self, quorum: u32) -> String {
        self.api.post("/runs", json!({ "plan": crate::approvals::gate(quorum, json!([])) })).await.text("run_id")
    }

    async fn run_state(&self, run: &str) -> String {
        self.api.get(&format!("/runs/{run}")).await.text("state")
    }

    /// What Slack sends when a user presses a button of a message.
    fn press(&self, user: &str, action: &str, message: &SlackMessage) -> Value {
        json!({
            "type": "block_actions",
            "api_app_id": "A1",
            "token": "legacy",
            "user": { "id": user, "username": user.to_lowercase(), "name": user.to_lowercase(), "team_id": TEAM },
            "team": { "id": TEAM, "domain": "example" },
            "enterprise": null,
            "is_enterprise_install": false,
            "container": {
                "type": "message", "message_ts": message.ts, "channel_id": message.channel, "is_ephemeral": false,
            },
            "channel": { "id": message.channel, "name": "ops" },
            "message": { "type": "message", "ts": message.ts, "text": message.text, "blocks": message.blocks },
            "trigger_id": self.slack.trigger(),
            "response_url": format!("{}/response/{user}", self.at),
            "actions": [{
                "action_id": action, "block_id": "interlock_decide", "type": "button", "action_ts": "1.1",
                "value": message.button(action).unwrap_or_else(|| "none".to_owned()),
            }],
        })
    }

    /// What Slack sends when a user sends a dialog off.
    fn dialog(user: &str, metadata: &Value, comment: Value) -> Value {
        json!({
            "type": "view_submission",
            "user": { "id": user, "username": user.to_lowercase(), "team_id": TEAM },
            "team": { "id": TEAM, "domain": "example" },
            "enterprise": null,
            "view": {
                "id": "V1", "type": "modal", "callback_id": REJECT_DIALOG, "private_metadata": metadata,
                "state": { "values": { "comment": { "text": { "type": "plain_text_input", "value": comment } } } },
            },
        })
    }

    async fn send(&self, payload: &Value) -> ApiResponse {
        self.send_signed(payload, SECRET, self.api.engine.now()).await
    }

    async fn send_signed(&self, payload: &Value, secret: &str, at: Timestamp) -> ApiResponse {
        self.send_to(self.id, payload, secret, at).await
    }

    async fn send_to(&self, id: SlackId, payload: &Value, secret: &str, at: Timestamp) -> ApiResponse {
        let (body, seconds) = (form(payload), (at.0 / 1_000).to_string());
        let signature = signed(secret, &seconds, &body);
        let request = Request::post(format!("/api/v1/slack/interactions/{id}"))
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header("x-slack-request-timestamp", seconds)
            .header("x-slack-signature", signature);
        self.api.ask(request.body(Body::from(body)).unwrap()).await
    }

    /// The first card, once the server knows where it is.
    async fn card(&self) -> SlackMessage {
        self.noted(self.slack.card().await).await
    }

    /// The same card, once the server has noted where it is: Slack has it a moment before.
    pub async fn noted(&self, card: SlackMessage) -> SlackMessage {
        let value = card.button(APPROVE).expect("it is still to be decided");
        let approval: ApprovalId = value.split_once('.').unwrap().0.parse().unwrap();
        let noting = async {
            loop {
                let notices = self.api.engine.store().notices(self.api.tenant, approval).await.unwrap();
                if notices.iter().any(|notice| notice.ts.as_deref() == Some(card.ts.as_str())) {
                    return;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_mins(1), noting).await.expect("the server notes where its card is");
        card
    }

    /// Presses the button of one message with what the button of another one says.
    pub async fn pressed_with(&self, user: &str, action: &str, message: &SlackMessage, value: &str) {
        let mut press = self.press(user, action, message);
        press["actions"][0]["value"] = json!(value);
        assert_eq!(self.send(&press).await.status, 200);
    }

    /// Presses, and waits for nothing.
    pub async fn pressed(&self, user: &str, action: &str, message: &SlackMessage) {
        assert_eq!(self.send(&self.press(user, action, message)).await.status, 200);
    }

    pub async fn end(self) {
        self.slack.check();
        self.api.end().await;
    }
}

fn form(payload: &Value) -> String {
    let mut encoded = "payload=".to_owned();
    for byte in payload.to_string().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => encoded.push(char::from(byte)),
            byte => write!(encoded, "%{byte:02X}").unwrap(),
        }
    }
    encoded
}

fn signed(secret: &str, seconds: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("v0:{seconds}:{body}").as_bytes());
    mac.finalize().into_bytes().iter().fold("v0=".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// Settings as a request gives them.
fn settings() -> SlackSettings {
    SlackSettings {
        team: TEAM.into(),
        channel: CHANNELS[0].into(),
        bot_token: Some(TOKEN.into()),
        signing_secret: Some(SECRET.into()),
        ..SlackSettings::default()
    }
}
