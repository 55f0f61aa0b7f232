//! Calls to language models: OpenAI's shape, which many servers speak, and Anthropic's.
//!
//! A call changes nothing; a repeat costs its price again. Tokens come from the answer, the cost from the price table in
//! the file of connections.

use interlock_core::plan::retry::ErrorClass;
use interlock_core::state::EffectClass;
use serde_json::{Value, json};

use super::connection;
use crate::connection::{Connection, ModelApi};
use crate::connector::{CallFacts, Connector};
use crate::declaration::{Declaration, Reversal};
use crate::failure::{CallFailure, Sent, quoted};
use crate::fields::Fields;
use crate::limits;
use crate::price::{Prices, Tokens};
use crate::request::{HeaderContent, HttpCall, Request, Response, only};
use crate::schema::{Field, Kind, Need};

/// `model.chat`
#[derive(Debug)]
pub struct Chat;

const TEXT: Kind = Kind::Text(limits::JSON_BYTES);
const MESSAGE: &[Field] = &[
    Field::new("role", Kind::OneOf(&["user", "assistant"]), Need::Required, "Who says it: `user` or `assistant`."),
    Field::new("content", TEXT, Need::Required, "What is said."),
];
const TOKENS_MAX: i64 = 1_000_000;
/// What providers put around each message, generously.
const FRAME_TOKENS: usize = 32;

static DECLARATION: Declaration = Declaration {
    operation: crate::MODEL_CHAT,
    about: "Asks a language model. A step writes it as `model: NAME`.",
    fields: &[
        Field::new("model", Kind::Text(limits::SHORT_TEXT), Need::Required, "The model's name."),
        Field::new("prompt", TEXT, Need::Optional, "What is asked, where there is only one message."),
        Field::new(
            "messages",
            Kind::Records { items: limits::ITEMS, of: MESSAGE },
            Need::Optional,
            "The conversation so far, instead of `prompt`.",
        ),
        Field::new("system", TEXT, Need::Optional, "What the model is told before the conversation."),
        Field::new(
            "max_tokens",
            Kind::Whole { min: 1, max: TOKENS_MAX },
            Need::Default("1024"),
            "How long the answer may be.",
        ),
        Field::new("temperature", Kind::Number { min: 0.0, max: 2.0 }, Need::Optional, "How freely it answers."),
        Field::new(
            "timeout_s",
            Kind::Whole { min: 1, max: 600 },
            Need::Default("120"),
            "How many seconds the call may take.",
        ),
        connection("\"openai\""),
    ],
    effect: EffectClass::Idempotent,
    key: "model:chat:{connection}:{model}:{request_hash}",
    reversal: Reversal::Irreversible("what was spent is spent; nothing else has changed"),
    reads_before: false,
    probe: None,
};

fn api(at: &Connection) -> ModelApi {
    at.api.unwrap_or(if at.name == "anthropic" { ModelApi::Anthropic } else { ModelApi::Openai })
}

fn messages(fields: &Fields) -> Vec<Value> {
    match fields.get("messages").and_then(Value::as_array) {
        Some(messages) => messages.clone(),
        None => vec![json!({ "role": "user", "content": fields.text("prompt") })],
    }
}

fn openai(fields: &Fields, at: &Connection, limit: &str) -> HttpCall {
    let mut said = messages(fields);
    if let Some(system) = fields.opt_text("system") {
        said.insert(0, json!({ "role": "system", "content": system }));
    }
    let mut body = json!({ "model": fields.text("model"), "messages": said, limit: fields.whole("max_tokens") });
    if let Some(temperature) = fields.get("temperature") {
        body["temperature"] = temperature.clone();
    }
    HttpCall::new("POST", format!("{}/chat/completions", at.url)).login(at).json(body)
}

fn anthropic(fields: &Fields, at: &Connection) -> Result<HttpCall, CallFailure> {
    let max = fields.whole("max_tokens");
    let mut body = json!({ "model": fields.text("model"), "messages": messages(fields), "max_tokens": max });
    for name in ["system", "temperature"] {
        if let Some(value) = fields.get(name) {
            body[name] = value.clone();
        }
    }
    let mut call = HttpCall::new("POST", format!("{}/v1/messages", at.url)).header("anthropic-version", "2023-06-01");
    call.headers.push(("x-api-key".to_owned(), HeaderContent::Secret { name: at.secret()?.to_owned() }));
    Ok(call.json(body))
}

/// The text, why it ended, and what it took.
struct Reply {
    text: String,
    stop: Value,
    tokens: Tokens,
}

fn of_openai(body: &Value) -> Option<Reply> {
    let choice = body["choices"].get(0)?;
    let usage = &body["usage"];
    Some(Reply {
        text: choice["message"]["content"].as_str().or(choice["message"]["refusal"].as_str())?.to_owned(),
        stop: choice["finish_reason"].clone(),
        tokens: Tokens { input: usage["prompt_tokens"].as_u64()?, output: usage["completion_tokens"].as_u64()? },
    })
}

fn of_anthropic(body: &Value) -> Option<Reply> {
    let usage = &body["usage"];
    // What is read from or written to a cache was given to the model as well.
    let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"];
    let given = usage["input_tokens"].as_u64()?;
    let parts = body["content"].as_array()?.iter().filter(|part| part["type"] == "text");
    Some(Reply {
        text: parts.filter_map(|part| part["text"].as_str()).collect(),
        stop: body["stop_reason"].clone(),
        tokens: Tokens {
            input: cached.iter().filter_map(|name| usage[*name].as_u64()).fold(given, u64::saturating_add),
            output: usage["output_tokens"].as_u64()?,
        },
    })
}

/// Puts the cost beside the tokens. Without a price it is `null`, which is not nothing.
pub fn with_cost(mut output: Value, prices: &Prices) -> Value {
    let tokens = |name: &str| output["usage"][name].as_u64().unwrap_or_default();
    let used = Tokens { input: tokens("input_tokens"), output: tokens("output_tokens") };
    let price = output["model"].as_str().and_then(|model| prices.of(model));
    output["cost_micros"] = price.map_or(Value::Null, |price| price.cost_micros(used).into());
    output
}

/// What a call may have cost at most whose answer was lost, in millionths of a dollar; nothing where the model has no price. No text
/// has more tokens than bytes.
pub fn cost_at_most(fields: &Fields, prices: &Prices) -> Option<u64> {
    let price = prices.of(fields.text("model"))?;
    let said = messages(fields);
    let bytes: usize = said.iter().map(|message| message["content"].as_str().map_or(0, str::len)).sum();
    let input = bytes + fields.text("system").len() + (said.len() + 1) * FRAME_TOKENS;
    let input = u64::try_from(input).unwrap_or(u64::MAX);
    Some(price.cost_micros(Tokens { input, output: fields.whole("max_tokens").unwrap_or(TOKENS_MAX).unsigned_abs() }))
}

impl Connector for Chat {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn check(&self, fields: &Fields) -> Result<(), String> {
        if fields.get("prompt").is_some() == fields.get("messages").is_some() {
            return Err("a model is asked by either `prompt` or `messages`".to_owned());
        }
        if fields.get("messages").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            return Err("`messages` is empty".to_owned());
        }
        Ok(())
    }

    fn key(&self, fields: &Fields, _: &Connection) -> String {
        let hash = fields.hash_of(&["prompt", "messages", "system", "max_tokens", "temperature"]);
        let model: String = fields.text("model").chars().filter(|c| !c.is_control()).take(100).collect();
        format!("model:chat:{}:{model}:{hash}", fields.text("connection"))
    }

    fn requests(&self, fields: &Fields, at: &Connection, _: &CallFacts) -> Result<Vec<Request>, CallFailure> {
        let mut call = match api(at) {
            ModelApi::Openai => openai(fields, at, "max_completion_tokens"),
            ModelApi::OpenaiCompatible => openai(fields, at, "max_tokens"),
            ModelApi::Anthropic => anthropic(fields, at)?,
        };
        let seconds = fields.whole("timeout_s").unwrap_or(120).unsigned_abs();
        call.timeout = std::time::Duration::from_secs(seconds).min(limits::MODEL_TIMEOUT);
        Ok(vec![call.into_request()])
    }

    fn read(&self, fields: &Fields, _: &CallFacts, answers: &[Response]) -> Result<Value, CallFailure> {
        let answer = only(answers)?;
        let body = answer.json().map_err(|failure| match answer.status {
            // Anthropic's own status for too much at once.
            529 => CallFailure { class: ErrorClass::RateLimited, ..failure },
            _ => failure,
        })?;
        let reply = if body["content"].is_array() { of_anthropic(&body) } else { of_openai(&body) };
        let reply = reply.ok_or_else(|| {
            if body["error"].is_null() {
                return CallFailure::unreadable("the model's answer has no text or no usage");
            }
            // Some servers that speak for several providers tell a refusal with status 200.
            let message = format!("the model's server answers with an error: {}", quoted(&answer.said()));
            CallFailure::new(Sent::Unknown, ErrorClass::Unavailable, "MODEL_REFUSED", message)
        })?;
        Ok(json!({
            "text": reply.text.replace('\0', "\u{fffd}"),
            "stop_reason": reply.stop,
            "model": body["model"].as_str().unwrap_or(fields.text("model")),
            "usage": { "input_tokens": reply.tokens.input, "output_tokens": reply.tokens.output },
        }))
    }
}
