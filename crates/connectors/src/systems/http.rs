//! Any HTTP API. What it does is not known here, so a repeat is as safe as its method says and no safer.

use interlock_core::plan::retry::ErrorClass;
use interlock_core::state::EffectClass;
use serde_json::{Map, Value, json};

use crate::connection::Connection;
use crate::connector::{CallFacts, Connector};
use crate::declaration::{Declaration, Reversal};
use crate::failure::{CallFailure, Sent};
use crate::fields::Fields;
use crate::limits;
use crate::request::{CallBody, HeaderContent, HttpCall, Request, Response, only};
use crate::schema::{Field, Kind, Need, secret_name};

/// `http.request`
#[derive(Debug)]
pub struct HttpRequest;

const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/// Who calls, where no connection says it.
const AUTH: &[Field] = &[
    Field::new("bearer", Kind::Secret, Need::Optional, "A token, sent as `Authorization: Bearer …`."),
    Field::new("user", Kind::Text(limits::SHORT_TEXT), Need::Optional, "A user's name, with `password`."),
    Field::new("password", Kind::Secret, Need::Optional, "The user's password."),
];

static DECLARATION: Declaration = Declaration {
    operation: "http.request",
    about: "Calls an HTTP API.",
    fields: &[
        Field::new(
            "url",
            Kind::Text(limits::URL_BYTES),
            Need::Required,
            "The address; with a `connection`, the path behind the connection's own, beginning with `/`.",
        ),
        Field::new("method", Kind::OneOf(METHODS), Need::Default("\"GET\""), "The method."),
        Field::new("headers", Kind::Headers, Need::Optional, "Headers; a value may be `${{ secrets.NAME }}`."),
        Field::new("auth", Kind::Record(AUTH), Need::Optional, "Who calls: `bearer`, or `user` and `password`."),
        Field::new(
            "json",
            Kind::Any { bytes: limits::JSON_BYTES, secrets: true },
            Need::Optional,
            "The body, sent as JSON; values in it may be `${{ secrets.NAME }}`.",
        ),
        Field::new("text", Kind::Text(limits::JSON_BYTES), Need::Optional, "The body, sent as plain text."),
        Field::new(
            "idempotency_header",
            Kind::Text(limits::SHORT_TEXT),
            Need::Optional,
            "The header in which the target expects a key, such as `Idempotency-Key`: it drops repeats with the same key.",
        ),
        Field::new(
            "timeout_s",
            Kind::Whole { min: 1, max: 30 },
            Need::Default("20"),
            "How many seconds the call may take.",
        ),
        Field::new(
            "connection",
            Kind::Id(limits::SHORT_TEXT),
            Need::Optional,
            "The connection that the worker is configured with; none for a whole address.",
        ),
    ],
    effect: EffectClass::Unsafe,
    key: "http:{method}:{host}:{request_hash}",
    reversal: Reversal::Irreversible("how a call is undone depends on the API: declare a `rollback`"),
    reads_before: false,
    probe: None,
};

/// What the client says of the connection and the message. A workflow that said otherwise could hide one request in another.
const OWN_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// By these some servers take a request for one of another method: a step that only reads, and is not judged, could delete.
const METHOD_HEADERS: &[&str] = &["x-http-method", "x-http-method-override", "x-method-override"];

/// Headers of an answer that a workflow may use. Others may hold cookies and tokens.
const SHOWN: &[&str] = &["content-type", "etag", "last-modified", "location", "retry-after", "x-request-id"];

impl Connector for HttpRequest {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn effect_varies(&self) -> bool {
        true
    }

    fn effect(&self, fields: &Fields) -> EffectClass {
        match fields.text("method") {
            "GET" | "HEAD" => EffectClass::Read,
            "PUT" | "DELETE" => EffectClass::Idempotent,
            "POST" | "PATCH" if fields.get("idempotency_header").is_some() => EffectClass::Keyed,
            _ => EffectClass::Unsafe,
        }
    }

    fn check(&self, fields: &Fields) -> Result<(), String> {
        if fields.get("json").is_some() && fields.get("text").is_some() {
            return Err("a request has one body: `json` or `text`".to_owned());
        }
        let method = fields.text("method");
        if matches!(method, "GET" | "HEAD") && (fields.get("json").is_some() || fields.get("text").is_some()) {
            return Err(format!("a {method} request has no body"));
        }
        let named = fields.map("headers").map(|(name, _)| name).chain(fields.opt_text("idempotency_header"));
        for name in named {
            let lower = name.to_ascii_lowercase();
            if OWN_HEADERS.contains(&lower.as_str()) {
                return Err(format!("the header `{name}` is set by the client itself"));
            }
            if METHOD_HEADERS.contains(&lower.as_str()) {
                return Err(format!("the header `{name}` changes the method: write the method as `method`"));
            }
        }
        let auth = |name| fields.get("auth").and_then(|auth| auth.get(name)).is_some();
        let both = auth("bearer") && (auth("user") || auth("password"));
        if both || auth("user") != auth("password") {
            return Err("`auth` has either `bearer`, or `user` and `password`".to_owned());
        }
        let url = fields.text("url");
        // A reader of addresses drops line breaks and tabs, wherever they stand.
        if url.chars().any(char::is_control) {
            return Err("`url` holds a line break or another control character".to_owned());
        }
        match fields.opt_text("connection") {
            Some(_) if !url.starts_with('/') || url.starts_with("//") => {
                Err("with a `connection`, `url` is the path behind its address and begins with one `/`".to_owned())
            }
            Some(_) if climbs(url) => {
                Err("with a `connection`, `url` cannot climb out of its address by `.` or `..`".to_owned())
            }
            Some(_) if fields.get("auth").is_some() => {
                Err("the `connection` says who calls: leave out `auth`".to_owned())
            }
            None if !url.starts_with("https://") && !url.starts_with("http://") => {
                Err("`url` begins with https:// or http://, or there is a `connection`".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn key(&self, fields: &Fields, at: &Connection) -> String {
        let host = if at.url.is_empty() {
            Connection::new("", fields.text("url")).host().to_owned()
        } else {
            at.host().to_owned()
        };
        // Longer names of hosts would leave no room in the key.
        let host: String = host.chars().take(limits::SHORT_TEXT / 2).collect();
        let hash = fields.hash_of(&["url", "method", "headers", "json", "text", "connection"]);
        format!("http:{}:{host}:{hash}", fields.text("method"))
    }

    fn requests(&self, fields: &Fields, at: &Connection, facts: &CallFacts) -> Result<Vec<Request>, CallFailure> {
        let method = fields.text("method");
        let mut call = HttpCall::new(method, format!("{}{}", at.url, fields.text("url"))).login(at);
        call.timeout = std::time::Duration::from_secs(fields.whole("timeout_s").unwrap_or(20).unsigned_abs());
        call.follows_redirects = self.effect(fields) == EffectClass::Read;
        call.cuts_answer = true;
        for (name, value) in fields.map("headers") {
            let content = match secret_name(value) {
                Some(secret) => HeaderContent::Secret { name: secret.to_owned() },
                None => HeaderContent::Plain(value.as_str().unwrap_or_default().to_owned()),
            };
            call.headers.push((name.to_owned(), content));
        }
        if let Some(content) = fields.get("auth").and_then(login) {
            call.headers.push(("authorization".to_owned(), content));
        }
        if let Some(header) = fields.opt_text("idempotency_header") {
            call = call.header(header, facts.key.clone());
        }
        call.body = match (fields.get("json"), fields.opt_text("text")) {
            (Some(json), _) => CallBody::Json(json.clone()),
            (None, Some(text)) => CallBody::Text(text.to_owned()),
            (None, None) => CallBody::Empty,
        };
        Ok(vec![call.into_request()])
    }

    fn read(&self, fields: &Fields, _: &CallFacts, answers: &[Response]) -> Result<Value, CallFailure> {
        let answer = only(answers)?;
        if !answer.is_success() {
            let failure = CallFailure::of_answer(answer, &answer.said());
            // Targets that drop repeats by a key say so of a call that is still under way: an earlier try, whose answer was lost.
            let is_under_way = answer.status == 409 && self.effect(fields) == EffectClass::Keyed;
            return Err(if is_under_way {
                let after = answer.retry_after();
                CallFailure { sent: Sent::Unknown, class: ErrorClass::Unavailable, after, ..failure }
            } else {
                failure
            });
        }
        let shown = answer.headers.iter().filter(|(name, _)| SHOWN.contains(&name.as_str()));
        let headers: Map<String, Value> = shown.map(|(name, value)| (name.clone(), value.clone().into())).collect();
        let is_json = answer.header("content-type").is_some_and(|kind| kind.contains("json"));
        let truncated = answer.body.len() >= limits::ANSWER_BYTES;
        let text = || Value::String(String::from_utf8_lossy(&answer.body).replace('\0', "\u{fffd}"));
        let body = if is_json && !truncated { answer.body_json().unwrap_or_else(text) } else { text() };
        Ok(json!({ "status": answer.status, "headers": headers, "body": body, "truncated": truncated }))
    }
}

/// Whether a path has a part that stands for its own folder or the one above, in any spelling that addresses have for it.
fn climbs(path: &str) -> bool {
    let path = path.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    // Many servers read an escaped `/` as one, and leave out what stands behind a `;`.
    let path = path.replace("%2e", ".").replace("%2f", "/").replace("%5c", "\\").replace("%3b", ";");
    path.split(['/', '\\']).any(|part| matches!(part.split(';').next(), Some("." | "..")))
}

fn login(auth: &Value) -> Option<HeaderContent> {
    let secret = |name: &str| auth.get(name).and_then(secret_name).map(str::to_owned);
    if let Some(secret) = secret("bearer") {
        return Some(HeaderContent::Bearer { secret });
    }
    let user = auth.get("user")?.as_str()?.to_owned();
    Some(HeaderContent::Basic { user, secret: secret("password")? })
}
