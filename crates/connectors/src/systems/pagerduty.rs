//! PagerDuty's Events API v2. It drops repeats: an event with the `dedup_key` of an open alert changes nothing further.

use interlock_core::state::EffectClass;
use serde_json::{Value, json};

use super::connection;
use crate::connection::Connection;
use crate::connector::{CallFacts, Connector, Inverse};
use crate::declaration::{Declaration, Reversal};
use crate::failure::{CallFailure, quoted};
use crate::fields::Fields;
use crate::limits;
use crate::request::{HttpCall, Request, Response, only};
use crate::schema::{Field, Kind, Need, SECRET};

/// `pagerduty.event`
#[derive(Debug)]
pub struct Event;

static DECLARATION: Declaration = Declaration {
    operation: "pagerduty.event",
    about: "Triggers, acknowledges or resolves an alert.",
    fields: &[
        Field::new(
            "action",
            Kind::OneOf(&["trigger", "acknowledge", "resolve"]),
            Need::Default("\"trigger\""),
            "What is done.",
        ),
        Field::new(
            "dedup_key",
            Kind::Text(255),
            Need::Optional,
            "Which alert it is about; one of its own for a trigger without it.",
        ),
        Field::new("summary", Kind::Text(1024), Need::Optional, "What happened; a trigger needs it."),
        Field::new("source", Kind::Text(limits::SHORT_TEXT), Need::Default("\"interlock\""), "What is affected."),
        Field::new(
            "severity",
            Kind::OneOf(&["critical", "error", "warning", "info"]),
            Need::Default("\"error\""),
            "How bad it is.",
        ),
        Field::new("component", Kind::Text(limits::SHORT_TEXT), Need::Optional, "The component that is affected."),
        Field::new("group", Kind::Text(limits::SHORT_TEXT), Need::Optional, "A group of components."),
        Field::new("class", Kind::Text(limits::SHORT_TEXT), Need::Optional, "The kind of event."),
        Field::new(
            "details",
            Kind::Any { bytes: limits::JSON_BYTES, secrets: false },
            Need::Optional,
            "Anything else that the person on call should know.",
        ),
        connection("\"pagerduty\""),
    ],
    effect: EffectClass::Keyed,
    key: "pagerduty:event:{action}:{dedup_key}:{fields_hash}",
    reversal: Reversal::Inverse {
        by: "pagerduty.event",
        about: "resolves the alert that was triggered; what was acknowledged or resolved stays so",
    },
    reads_before: false,
    probe: None,
};

/// The given one, or one that is the same for every repeat of this effect and for no other.
fn dedup_key(fields: &Fields, facts: &CallFacts) -> String {
    fields.opt_text("dedup_key").map_or_else(|| format!("interlock-{}", facts.mark()), str::to_owned)
}

impl Connector for Event {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn check(&self, fields: &Fields) -> Result<(), String> {
        match fields.text("action") {
            "trigger" if fields.text("summary").is_empty() => Err("a trigger needs a `summary`".to_owned()),
            "acknowledge" | "resolve" if fields.text("dedup_key").is_empty() => {
                Err("without a `dedup_key` it is not known which alert is meant".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn key(&self, fields: &Fields, _: &Connection) -> String {
        let names = ["summary", "source", "severity", "component", "group", "class", "details", "dedup_key"];
        let hash = fields.hash_of(&names);
        // The name of an alert may be long; its hash is in the other one.
        let shown: String = fields.text("dedup_key").chars().filter(|c| !c.is_control()).take(80).collect();
        format!("pagerduty:event:{}:{shown}:{hash}", fields.text("action"))
    }

    fn requests(&self, fields: &Fields, at: &Connection, facts: &CallFacts) -> Result<Vec<Request>, CallFailure> {
        let mut body = json!({
            "routing_key": { SECRET: at.secret()? },
            "event_action": fields.text("action"),
            "dedup_key": dedup_key(fields, facts),
        });
        if fields.text("action") == "trigger" {
            let mut payload = json!({});
            for name in ["summary", "source", "severity", "component", "group", "class"] {
                if let Some(value) = fields.get(name) {
                    payload[name] = value.clone();
                }
            }
            if let Some(details) = fields.get("details") {
                payload["custom_details"] = details.clone();
            }
            body["payload"] = payload;
        }
        // The routing key in the body says who calls.
        Ok(vec![HttpCall::new("POST", format!("{}/v2/enqueue", at.url)).json(body).into_request()])
    }

    fn read(&self, fields: &Fields, facts: &CallFacts, answers: &[Response]) -> Result<Value, CallFailure> {
        let body = only(answers)?.json()?;
        if let Some(status) = body["status"].as_str().filter(|status| *status != "success") {
            let message = format!("PagerDuty does not take the event: {}", quoted(status));
            return Err(CallFailure::refused("PAGERDUTY_REFUSED", message));
        }
        let key = body["dedup_key"].as_str().map_or_else(|| dedup_key(fields, facts), str::to_owned);
        Ok(json!({ "dedup_key": key, "status": body["status"] }))
    }

    fn inverse(&self, fields: &Fields, output: &Value) -> Result<Inverse, String> {
        if fields.text("action") != "trigger" {
            return Err(format!("an alert's `{}` cannot be taken back", fields.text("action")));
        }
        let key = output["dedup_key"].as_str().ok_or("which alert it was is not known")?;
        let inverse = json!({ "action": "resolve", "dedup_key": key, "connection": fields.text("connection") });
        Ok(Inverse { operation: DECLARATION.operation, fields: inverse })
    }
}
