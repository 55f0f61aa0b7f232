//! A stand-in for Slack and PagerDuty. It holds every call against Slack's documented formats and limits; what breaks one is
//! refused with Slack's own word, and remembered.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::IntoResponse as _;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

pub const TOKEN: &str = "xoxb-stand-in-token";
pub const ROUTING_KEY: &str = "R0UTINGKEY";
pub const CHANNELS: [&str; 2] = ["C0OPS", "C0ESCALATION"];

/// One message in a channel.
#[derive(Debug, Clone, PartialEq)]
pub struct SlackMessage {
    pub channel: String,
    pub ts: String,
    pub thread: Option<String>,
    pub text: String,
    pub blocks: Vec<Value>,
    pub metadata: Value,
    pub updates: usize,
}

impl SlackMessage {
    /// All texts that people see.
    pub fn shown(&self) -> String {
        let mut texts = vec![self.text.clone()];
        for block in &self.blocks {
            texts.extend(block["text"]["text"].as_str().map(str::to_owned));
            let elements = block["elements"].as_array().into_iter().flatten();
            texts.extend(elements.filter_map(|element| element["text"].as_str()).map(str::to_owned));
        }
        texts.join("\n")
    }

    /// The value of a button, if it has it.
    pub fn button(&self, action: &str) -> Option<String> {
        let elements = self.blocks.iter().filter_map(|block| block["elements"].as_array()).flatten();
        let found =
            elements.filter(|element| element["type"] == "button").find(|element| element["action_id"] == action);
        found.map(|button| button["value"].as_str().unwrap().to_owned())
    }
}

/// What only one person sees.
#[derive(Debug, Clone, PartialEq)]
pub struct Whispered {
    pub user: Option<String>,
    pub text: String,
}

/// What a call's answer is to be instead of the true one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is not carried out.
    Status(u16),
    /// It is carried out, and the caller cannot tell from the answer.
    Lost,
}

#[derive(Default)]
pub struct StandInState {
    pub messages: Vec<SlackMessage>,
    pub whispered: Vec<Whispered>,
    pub views: Vec<Value>,
    /// PagerDuty's events, in their order.
    pub pages: Vec<Value>,
    /// Triggers that were handed out and not used.
    triggers: BTreeSet<String>,
    guests: BTreeSet<String>,
    /// Calls of a method that go wrong, the next one first.
    faults: BTreeMap<String, Vec<Fault>>,
    /// What was wrong with the calls.
    pub breaches: Vec<String>,
    pub calls: Vec<String>,
    /// Calls are answered only once this is over.
    stalled: bool,
    /// Calls that wait for that now.
    pub waiting: usize,
    count: u64,
}

#[derive(Clone, Default)]
pub struct StandIn(Arc<Mutex<StandInState>>);

type Reply = (u16, Value);

impl StandIn {
    pub fn held(&self) -> MutexGuard<'_, StandInState> {
        self.0.lock().unwrap()
    }

    pub async fn listen(&self) -> SocketAddr {
        let stand_in = self.clone();
        let take = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            let stand_in = stand_in.clone();
            async move {
                stand_in.stalls().await;
                let (status, body) = stand_in.answer(&method, &uri, &headers, &body);
                (StatusCode::from_u16(status).unwrap(), body.to_string()).into_response()
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(take)).await });
        at
    }

    pub fn fail(&self, method: &str, fault: Fault) {
        self.held().faults.entry(method.to_owned()).or_default().insert(0, fault);
    }

    /// From now on calls get no answer, until it is over.
    pub fn stall(&self, stalled: bool) {
        self.held().stalled = stalled;
    }

    async fn stalls(&self) {
        if !self.held().stalled {
            return;
        }
        self.held().waiting += 1;
        while self.held().stalled {
            sleep(Duration::from_millis(20)).await;
        }
        self.held().waiting -= 1;
    }

    pub fn make_guest(&self, user: &str) {
        self.held().guests.insert(user.to_owned());
    }

    /// A trigger for a press.
    pub fn trigger(&self) -> String {
        let mut held = self.held();
        held.count += 1;
        let trigger = format!("{}.trigger", held.count);
        held.triggers.insert(trigger.clone());
        trigger
    }

    /// The answer to a call.
    pub fn answer(&self, method: &Method, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Reply {
        let name = uri.path().strip_prefix("/api/").unwrap_or(uri.path()).to_owned();
        let mut held = self.held();
        held.calls.push(name.clone());
        let fault = held.faults.get_mut(&name).and_then(Vec::pop);
        if let Some(Fault::Status(status)) = fault {
            return (status, json!({}));
        }
        let call = Received { method, uri, headers, body };
        let reply = match held.carry_out(&name, &call) {
            Ok(reply) => (200, reply),
            Err(error) => {
                let shown = String::from_utf8_lossy(body).into_owned();
                held.breaches.push(format!("{name}: {error}: {shown}"));
                (200, json!({ "ok": false, "error": error }))
            }
        };
        if fault == Some(Fault::Lost) { (502, json!({})) } else { reply }
    }

    pub async fn wait_until(&self, what: &str, done: impl Fn(&StandInState) -> bool) {
        let waiting = async {
            while !done(&self.held()) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        if timeout(Duration::from_mins(2), waiting).await.is_err() {
            let held = self.held();
            panic!("{what} does not come: {:#?} {:#?} {:?}", held.messages, held.whispered, held.breaches);
        }
    }

    /// The first message of a channel, once it is there.
    pub async fn card(&self) -> SlackMessage {
        self.wait_until("a card", |held| held.messages.iter().any(|message| message.channel == CHANNELS[0])).await;
        self.held().messages.iter().find(|message| message.channel == CHANNELS[0]).unwrap().clone()
    }

    /// The card, once it shows this.
    pub async fn card_showing(&self, text: &str) -> SlackMessage {
        let shows = |message: &SlackMessage| message.channel == CHANNELS[0] && message.shown().contains(text);
        self.wait_until(text, |held| held.messages.iter().any(shows)).await;
        self.held().messages.iter().find(|message| shows(message)).unwrap().clone()
    }

    /// The card with the buttons for an approval, once it is there.
    pub async fn card_for(&self, approval: &str, action: &str) -> SlackMessage {
        let is_it = |message: &SlackMessage| {
            let value = message.button(action).unwrap_or_default();
            message.channel == CHANNELS[0] && value.split_once('.').is_some_and(|(about, _)| about == approval)
        };
        self.wait_until(approval, |held| held.messages.iter().any(is_it)).await;
        self.held().messages.iter().find(|message| is_it(message)).unwrap().clone()
    }

    pub async fn whisper(&self, number: usize) -> String {
        self.wait_until("a whisper", |held| held.whispered.len() > number).await;
        self.held().whispered[number].text.clone()
    }

    pub fn check(&self) {
        assert_eq!(self.held().breaches, Vec::<String>::new());
    }
}

struct Received<'a> {
    method: &'a Method,
    uri: &'a Uri,
    headers: &'a HeaderMap,
    body: &'a [u8],
}

impl Received<'_> {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    fn query(&self, name: &str) -> Option<String> {
        let pairs = self.uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
    }

    /// Methods that change something take JSON with its charset.
    fn json(&self) -> Result<Value, &'static str> {
        if self.method != Method::POST || self.header("content-type") != "application/json; charset=utf-8" {
            return Err("invalid_post_type");
        }
        serde_json::from_slice(self.body).map_err(|_| "invalid_json")
    }
}

impl StandInState {
    fn carry_out(&mut self, name: &str, call: &Received<'_>) -> Result<Value, &'static str> {
        if name == "/v2/enqueue" {
            return self.page(call);
        }
        if let Some(user) = name.strip_prefix("/response/") {
            return self.respond(user, call);
        }
        if call.header("authorization") != format!("Bearer {TOKEN}") {
            return Err("invalid_auth");
        }
        match name {
            "chat.postMessage" => self.post(&call.json()?),
            "chat.update" => self.update(&call.json()?),
            "chat.postEphemeral" => self.whispers(&call.json()?),
            "views.open" => self.open(&call.json()?),
            "users.info" => self.user(call),
            "conversations.history" | "conversations.replies" => Ok(self.history(call)),
            _ => Err("unknown_method"),
        }
    }

    fn post(&mut self, body: &Value) -> Result<Value, &'static str> {
        only(body, &["channel", "text", "blocks", "thread_ts", "metadata"])?;
        let channel = channel(body)?;
        let (text, blocks) = content(body)?;
        self.count += 1;
        let ts = format!("1720000000.{:06}", self.count);
        let thread = body["thread_ts"].as_str().map(str::to_owned);
        if let Some(thread) = &thread {
            let known = |message: &SlackMessage| message.channel == channel && message.ts == *thread;
            self.messages.iter().find(|message| known(message)).ok_or("thread_not_found")?;
        }
        let metadata = body["metadata"].clone();
        if !metadata["event_type"].is_string() || !metadata["event_payload"].is_object() {
            return Err("invalid_metadata_format");
        }
        let message =
            SlackMessage { channel: channel.clone(), ts: ts.clone(), thread, text, blocks, metadata, updates: 0 };
        self.messages.push(message);
        Ok(json!({ "ok": true, "channel": channel, "ts": ts, "message": {} }))
    }

    fn update(&mut self, body: &Value) -> Result<Value, &'static str> {
        only(body, &["channel", "ts", "text", "blocks"])?;
        let channel = channel(body)?;
        let (text, blocks) = content(body)?;
        let ts = body["ts"].as_str().ok_or("no_ts")?;
        let found = self.messages.iter_mut().find(|message| message.channel == channel && message.ts == ts);
        let message = found.ok_or("message_not_found")?;
        (message.text, message.blocks, message.updates) = (text, blocks, message.updates + 1);
        Ok(json!({ "ok": true, "channel": channel, "ts": ts }))
    }

    fn whispers(&mut self, body: &Value) -> Result<Value, &'static str> {
        only(body, &["channel", "user", "text"])?;
        channel(body)?;
        let (text, _) = content(body)?;
        let user = Some(body["user"].as_str().ok_or("user_not_in_channel")?.to_owned());
        self.whispered.push(Whispered { user, text });
        Ok(json!({ "ok": true, "message_ts": "1.1" }))
    }

    /// An answer by the address that came with a press. It needs no token, and gets none.
    fn respond(&mut self, user: &str, call: &Received<'_>) -> Result<Value, &'static str> {
        if !call.header("authorization").is_empty() {
            return Err("the token goes to no other address");
        }
        let body = call.json()?;
        only(&body, &["response_type", "replace_original", "text"])?;
        if body["response_type"] != "ephemeral" || body["replace_original"] != false {
            return Err("everybody would see it");
        }
        let (text, _) = content(&body)?;
        self.whispered.push(Whispered { user: Some(user.to_owned()), text });
        Ok(json!({ "ok": true }))
    }

    fn open(&mut self, body: &Value) -> Result<Value, &'static str> {
        only(body, &["trigger_id", "view"])?;
        let trigger = body["trigger_id"].as_str().ok_or("invalid_arguments")?;
        if !self.triggers.remove(trigger) {
            return Err("expired_trigger_id");
        }
        let view = &body["view"];
        only(view, &["type", "callback_id", "private_metadata", "title", "submit", "close", "blocks"])?;
        for name in ["title", "submit", "close"] {
            plain(&view[name], 24)?;
        }
        let short = |name: &str, max| view[name].as_str().is_some_and(|text| text.chars().count() <= max);
        if view["type"] != "modal" || !short("callback_id", 255) || !short("private_metadata", 3_000) {
            return Err("invalid_view");
        }
        blocks(&view["blocks"], 100)?;
        self.views.push(view.clone());
        Ok(json!({ "ok": true, "view": { "id": "V1" } }))
    }

    /// It takes no JSON.
    fn user(&mut self, call: &Received<'_>) -> Result<Value, &'static str> {
        let user = call.query("user").ok_or("user_not_found")?;
        if call.method != Method::GET {
            return Err("invalid_post_type");
        }
        let guest = self.guests.contains(&user);
        Ok(json!({ "ok": true, "user": {
            "id": user, "team_id": "T0TEAM", "deleted": false, "is_bot": false, "is_restricted": guest,
            "is_ultra_restricted": false,
        } }))
    }

    fn history(&self, call: &Received<'_>) -> Value {
        let (channel, thread) = (call.query("channel"), call.query("ts"));
        let fits = |message: &&SlackMessage| {
            Some(&message.channel) == channel.as_ref() && (thread.is_none() || message.thread == thread)
        };
        let shown = |message: &SlackMessage| json!({ "ts": message.ts, "metadata": message.metadata });
        let messages: Vec<Value> = self.messages.iter().filter(fits).map(shown).collect();
        json!({ "ok": true, "messages": messages, "has_more": false })
    }

    /// PagerDuty's Events API v2.
    fn page(&mut self, call: &Received<'_>) -> Result<Value, &'static str> {
        let body: Value = serde_json::from_slice(call.body).map_err(|_| "invalid_json")?;
        only(&body, &["routing_key", "event_action", "dedup_key", "payload"])?;
        if body["routing_key"] != ROUTING_KEY || body["dedup_key"].as_str().is_none_or(|key| key.len() > 255) {
            return Err("invalid event");
        }
        let payload = &body["payload"];
        let trigger = body["event_action"] == "trigger";
        let summary = payload["summary"].as_str().is_some_and(|text| text.chars().count() <= 1_024);
        let severity = ["critical", "error", "warning", "info"].iter().any(|known| payload["severity"] == *known);
        if trigger && !(summary && severity && payload["source"].is_string()) {
            return Err("invalid payload");
        }
        self.pages.push(body.clone());
        Ok(json!({ "status": "success", "message": "Event processed", "dedup_key": body["dedup_key"] }))
    }
}

/// Nothing but these fields.
fn only(value: &Value, names: &[&str]) -> Result<(), &'static str> {
    let fields = value.as_object().ok_or("invalid_arguments")?;
    if fields.keys().all(|name| names.contains(&name.as_str())) {
        Ok(())
    } else {
        Err("invalid_arguments: unknown field")
    }
}

fn channel(body: &Value) -> Result<String, &'static str> {
    let channel = body["channel"].as_str().filter(|channel| CHANNELS.contains(channel));
    channel.map(str::to_owned).ok_or("channel_not_found")
}

/// Text and blocks of a message.
fn content(body: &Value) -> Result<(String, Vec<Value>), &'static str> {
    let text = body["text"].as_str().filter(|text| !text.is_empty()).ok_or("no_text")?;
    if text.chars().count() > 4_000 {
        return Err("msg_too_long");
    }
    mrkdwn(text)?;
    let list = match &body["blocks"] {
        Value::Null => Vec::new(),
        list => blocks(list, 50)?,
    };
    Ok((text.to_owned(), list))
}

fn blocks(list: &Value, max: usize) -> Result<Vec<Value>, &'static str> {
    let list = list.as_array().ok_or("invalid_blocks_format")?;
    if list.is_empty() || list.len() > max {
        return Err("invalid_blocks: too many");
    }
    let mut ids = BTreeSet::new();
    let mut total = 0;
    for block in list {
        total += block["text"]["text"].as_str().map_or(0, str::len);
        if let Some(id) = block["block_id"].as_str()
            && (id.len() > 255 || !ids.insert(id))
        {
            return Err("invalid_blocks: block_id");
        }
        check_block(block)?;
    }
    if total > 50_000 { Err("msg_blocks_too_long") } else { Ok(list.clone()) }
}

fn check_block(block: &Value) -> Result<(), &'static str> {
    match block["type"].as_str() {
        Some("header") => {
            only(block, &["type", "block_id", "text"])?;
            plain(&block["text"], 150)
        }
        Some("section") => {
            only(block, &["type", "block_id", "text", "expand"])?;
            text(&block["text"], 3_000)
        }
        Some("context") => {
            only(block, &["type", "block_id", "elements"])?;
            let elements = block["elements"].as_array().filter(|list| (1..=10).contains(&list.len()));
            elements.ok_or("invalid_blocks: context")?.iter().try_for_each(|element| text(element, 2_000))
        }
        Some("actions") => {
            only(block, &["type", "block_id", "elements"])?;
            let elements = block["elements"].as_array().filter(|list| (1..=25).contains(&list.len()));
            let elements = elements.ok_or("invalid_blocks: actions")?;
            let ids: BTreeSet<_> = elements.iter().map(|element| element["action_id"].to_string()).collect();
            if ids.len() != elements.len() {
                return Err("invalid_blocks: action_id");
            }
            elements.iter().try_for_each(button)
        }
        Some("input") => {
            only(block, &["type", "block_id", "label", "element"])?;
            plain(&block["label"], 2_000)?;
            let element = &block["element"];
            only(element, &["type", "action_id", "multiline", "min_length", "max_length"])?;
            let max = element["max_length"].as_u64().is_some_and(|max| (1..=3_000).contains(&max));
            if element["type"] == "plain_text_input" && max { Ok(()) } else { Err("invalid_blocks: input") }
        }
        _ => Err("invalid_blocks: type"),
    }
}

fn button(button: &Value) -> Result<(), &'static str> {
    only(button, &["type", "action_id", "text", "style", "value"])?;
    plain(&button["text"], 75)?;
    let short = |name: &str, max| button[name].as_str().is_some_and(|text| !text.is_empty() && text.len() <= max);
    let style = button["style"] == "primary" || button["style"] == "danger";
    if button["type"] == "button" && short("action_id", 255) && short("value", 2_000) && style {
        Ok(())
    } else {
        Err("invalid_blocks: button")
    }
}

fn text(object: &Value, max: usize) -> Result<(), &'static str> {
    if object["type"] != "mrkdwn" {
        return plain(object, max);
    }
    only(object, &["type", "text", "verbatim"])?;
    let text = object["text"].as_str().unwrap_or_default();
    if !(1..=max).contains(&text.encode_utf16().count()) {
        return Err("invalid_blocks: text length");
    }
    mrkdwn(text)
}

fn plain(object: &Value, max: usize) -> Result<(), &'static str> {
    only(object, &["type", "text", "emoji"])?;
    let length = object["text"].as_str().unwrap_or_default().encode_utf16().count();
    if object["type"] == "plain_text" && (1..=max).contains(&length) {
        Ok(())
    } else {
        Err("invalid_blocks: plain_text")
    }
}

/// A control sequence is an address of ours; everything else is escaped.
fn mrkdwn(text: &str) -> Result<(), &'static str> {
    for part in text.split('<').skip(1) {
        let link = part.split_once('>').and_then(|(link, _)| link.split_once('|'));
        if link.is_none_or(|(url, _)| !url.starts_with("http")) {
            return Err("text of others is not escaped");
        }
    }
    Ok(())
}
