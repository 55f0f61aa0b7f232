//! ServiceNow's Table API for incidents: assignment, labels, internal notes.
//!
//! Setting a field twice sets it once. A journal field (`work_notes`, `comments`) is appended to at every call: such an
//! update is `unsafe`, and its entries end with the mark of the effect key, by which they are found again in
//! `sys_journal_field`.
//!
//! ServiceNow answers 200 and changes nothing where the user may not set a field, and leaves out fields that there are not. So
//! every field is read before, and looked at again in the answer.

use interlock_core::run::card::FieldChange;
use interlock_core::state::EffectClass;
use serde_json::{Map, Value, json};

use super::connection;
use crate::connection::Connection;
use crate::connector::{CallFacts, Connector, Inverse, Probed, change};
use crate::declaration::{Declaration, Reversal};
use crate::failure::{CallFailure, quoted};
use crate::fields::Fields;
use crate::request::{HttpCall, Request, Response, only, segment, with_query};
use crate::schema::{Field, Kind, Need};

/// `servicenow.incident.update`
#[derive(Debug)]
pub struct IncidentUpdate;

/// `servicenow.incident.get`
#[derive(Debug)]
pub struct IncidentGet;

const JOURNAL: &[&str] = &["work_notes", "comments"];
/// What cannot be written, or would change which record it is.
const FIXED: &[&str] = &["sys_id", "number", "sys_mod_count", "sys_created_on", "sys_updated_on"];
const FIELDS_MAX: usize = 40;

const SYS_ID: Field = Field::new("sys_id", Kind::Id(40), Need::Required, "The incident's `sys_id`.");

static UPDATE: Declaration = Declaration {
    operation: "servicenow.incident.update",
    about: "Sets fields of an incident, such as its assignment and labels, and adds internal notes.",
    fields: &[
        SYS_ID,
        Field::new(
            "fields",
            Kind::Values { items: FIELDS_MAX, bytes: 16 << 10 },
            Need::Required,
            "The fields and their new values, by the names of the table.",
        ),
        Field::new(
            "sys_mod_count",
            Kind::Id(20),
            Need::Optional,
            "The incident's count of changes, as it was read: an incident that was changed since is left alone.",
        ),
        connection("\"servicenow\""),
    ],
    effect: EffectClass::Unsafe,
    key: "sn:incident:update:{instance}:{sys_id}:{fields_hash}",
    reversal: Reversal::Inverse {
        by: "servicenow.incident.update",
        about: "sets the fields to what they were; a note stays, and another one says that it no longer holds",
    },
    reads_before: true,
    probe: Some(
        "looks for the note's mark among the newest entries of `sys_journal_field`; without a note a repeat is harmless",
    ),
};

static GET: Declaration = Declaration {
    operation: "servicenow.incident.get",
    about: "Reads an incident.",
    fields: &[
        SYS_ID,
        Field::new(
            "fields",
            Kind::Texts { items: FIELDS_MAX, bytes: 80 },
            Need::Optional,
            "Which fields to read; all where omitted.",
        ),
        connection("\"servicenow\""),
    ],
    effect: EffectClass::Read,
    key: "sn:incident:get:{instance}:{sys_id}:{fields_hash}",
    reversal: Reversal::NotNeeded,
    reads_before: false,
    probe: None,
};

fn record(at: &Connection, fields: &Fields) -> String {
    format!("{}/api/now/table/incident/{}", at.url, segment(fields.text("sys_id")))
}

fn call(method: &str, url: String, at: &Connection) -> HttpCall {
    HttpCall::new(method, url).header("accept", "application/json").login(at)
}

fn read_record(at: &Connection, fields: &Fields, names: &[&str]) -> Request {
    let wanted = names.join(",");
    let mut query = vec![("sysparm_display_value", "false"), ("sysparm_exclude_reference_link", "true")];
    if !wanted.is_empty() {
        query.push(("sysparm_fields", &wanted));
    }
    call("GET", with_query(record(at, fields), &query), at).into_request()
}

fn result(answer: &Response) -> Result<Value, CallFailure> {
    let mut body = answer.json()?;
    match body.get_mut("result").map(Value::take) {
        Some(result) if result.is_object() || result.is_array() => Ok(result),
        _ => Err(CallFailure::unreadable("ServiceNow's answer has no `result`")),
    }
}

/// ServiceNow tells numbers and truth values as texts.
fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What is stored in a field of an answer that also tells how people see it.
fn stored(field: &Value) -> &Value {
    field.get("value").unwrap_or(field)
}

/// The fields of an update that have what they had before, and not what was asked for, as stored or as people see it.
fn not_set(fields: &Fields, before: &Value, after: &Value) -> Vec<String> {
    let is_left = |(name, asked): &(&str, &Value)| {
        let (Some(had), Some(has)) = (before.get(*name), after.get(*name)) else { return false };
        let (asked, has_text) = (as_text(asked), as_text(stored(has)));
        let seen = as_text(has.get("display_value").unwrap_or(has));
        let is_set = [&has_text, &seen].iter().any(|text| text.trim() == asked.trim());
        !is_set && has_text == as_text(stored(had))
    };
    let plain = fields.map("fields").filter(|(name, _)| !is_journal(name));
    plain.filter(is_left).map(|(name, _)| name.to_owned()).collect()
}

/// The line at the end of a journal entry by which it is found again.
fn marked(text: &str, facts: &CallFacts) -> String {
    format!("{text}\n\n{}", mark(facts))
}

fn mark(facts: &CallFacts) -> String {
    format!("[interlock {}]", facts.mark())
}

fn is_journal(name: &str) -> bool {
    JOURNAL.contains(&name)
}

/// The field whose journal entry can be looked for.
fn journal_of(fields: &Fields) -> Option<&'static str> {
    JOURNAL.iter().copied().find(|name| fields.map("fields").any(|(given, _)| given == *name))
}

fn output(fields: &Fields, facts: &CallFacts) -> Value {
    let before = facts.before.clone().unwrap_or(Value::Null);
    json!({ "sys_id": fields.text("sys_id"), "before": before })
}

impl Connector for IncidentUpdate {
    fn declaration(&self) -> &'static Declaration {
        &UPDATE
    }

    fn effect_varies(&self) -> bool {
        true
    }

    fn effect(&self, fields: &Fields) -> EffectClass {
        // What is not known yet may hold a note.
        let is_known = fields.get("fields").is_some_and(Value::is_object);
        if is_known && journal_of(fields).is_none() { EffectClass::Idempotent } else { EffectClass::Unsafe }
    }

    fn check(&self, fields: &Fields) -> Result<(), String> {
        let mut names = fields.map("fields").map(|(name, _)| name).peekable();
        if names.peek().is_none() {
            return Err("`fields` is empty: there is nothing to update".to_owned());
        }
        if let Some(name) = names.find(|name| FIXED.contains(name) || name.starts_with("sys_")) {
            return Err(format!("`fields.{name}` cannot be set: it belongs to ServiceNow"));
        }
        match fields.opt_text("sys_mod_count") {
            Some(count) if !count.chars().all(|c| c.is_ascii_digit()) => {
                Err("`sys_mod_count` is a number, in quotes".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn key(&self, fields: &Fields, at: &Connection) -> String {
        format!("sn:incident:update:{}:{}:{}", at.host(), fields.text("sys_id"), fields.hash_of(&["fields"]))
    }

    fn before(&self, fields: &Fields, at: &Connection) -> Option<Request> {
        let names = fields.map("fields").map(|(name, _)| name).filter(|name| !is_journal(name));
        let mut names: Vec<&str> = names.collect();
        names.extend(["number", "sys_mod_count"]);
        Some(read_record(at, fields, &names))
    }

    fn read_before(&self, fields: &Fields, answer: &Response) -> Result<Value, CallFailure> {
        let record = result(answer)?;
        let mut names = fields.map("fields").map(|(name, _)| name).filter(|name| !is_journal(name));
        if let Some(name) = names.find(|name| record.get(*name).is_none()) {
            let what = format!(
                "the incident has no field `{name}`, or the connection's user may not read it; nothing was changed"
            );
            return Err(CallFailure::refused("FIELD_UNKNOWN", what));
        }
        let (wanted, has) = (fields.opt_text("sys_mod_count"), as_text(&record["sys_mod_count"]));
        if let Some(wanted) = wanted.filter(|wanted| *wanted != has) {
            let what = format!(
                "the incident was changed meanwhile: its `sys_mod_count` is {}, not {wanted}; nothing was changed by this step",
                quoted(&has)
            );
            return Err(CallFailure::refused("RECORD_CHANGED", what));
        }
        Ok(record)
    }

    fn changes(&self, fields: &Fields, before: &Value) -> Vec<FieldChange> {
        // An entry of a journal is added; what is there stays.
        let had = |name: &str| before.get(name).filter(|_| !is_journal(name)).cloned().unwrap_or_default();
        fields.map("fields").map(|(name, value)| change(name, &had(name), value)).collect()
    }

    fn remaining(&self, fields: &Fields, present: &Value) -> Vec<String> {
        // A journal does not tell what was added to it.
        let is_left = |(name, value): &(&str, &Value)| {
            !is_journal(name) && present.get(name).map(as_text).unwrap_or_default() != as_text(value)
        };
        fields.map("fields").filter(is_left).map(|(name, _)| format!("`{name}`")).collect()
    }

    fn requests(&self, fields: &Fields, at: &Connection, facts: &CallFacts) -> Result<Vec<Request>, CallFailure> {
        at.secret()?;
        let set = fields.map("fields").map(|(name, value)| {
            let value = match value.as_str().filter(|_| is_journal(name)) {
                Some(text) => Value::String(marked(text, facts)),
                None => value.clone(),
            };
            (name.to_owned(), value)
        });
        let body: Map<String, Value> = set.collect();
        let shown = fields.map("fields").map(|(name, _)| name).filter(|name| !is_journal(name));
        let shown = ["sys_id", "number", "sys_mod_count"].into_iter().chain(shown).collect::<Vec<_>>().join(",");
        let query = [
            ("sysparm_display_value", "all"),
            ("sysparm_exclude_reference_link", "true"),
            ("sysparm_fields", shown.as_str()),
        ];
        let url = with_query(record(at, fields), &query);
        Ok(vec![call("PATCH", url, at).json(Value::Object(body)).into_request()])
    }

    fn read(&self, fields: &Fields, facts: &CallFacts, answers: &[Response]) -> Result<Value, CallFailure> {
        let record = result(only(answers)?)?;
        let mut output = output(fields, facts);
        for name in ["number", "sys_mod_count"] {
            output[name] = stored(&record[name]).clone();
        }
        let left = not_set(fields, &output["before"], &record);
        if !left.is_empty() && left.len() == fields.map("fields").count() {
            let what = format!(
                "ServiceNow has left everything as it was ({}): the connection's user may not set it, or a rule of the \
                 instance forbids it",
                left.join(", ")
            );
            return Err(CallFailure::refused("FIELDS_NOT_SET", what));
        }
        output["not_set"] = left.into();
        Ok(output)
    }

    fn probe(&self, fields: &Fields, at: &Connection, _: &CallFacts) -> Option<Request> {
        let journal = journal_of(fields)?;
        let sys_id = fields.text("sys_id");
        let sought = format!("element_id={sys_id}^element={journal}^ORDERBYDESCsys_created_on");
        let query = [("sysparm_query", sought.as_str()), ("sysparm_fields", "sys_id,value"), ("sysparm_limit", "50")];
        let url = with_query(format!("{}/api/now/table/sys_journal_field", at.url), &query);
        Some(call("GET", url, at).into_request())
    }

    fn read_probe(&self, fields: &Fields, facts: &CallFacts, answer: &Response) -> Probed {
        let entries = match result(answer) {
            Ok(entries) => entries,
            Err(failure) => return Probed::CannotTell(failure.message),
        };
        let mark = mark(facts);
        let holds = |entry: &Value| entry["value"].as_str().is_some_and(|text| text.contains(&mark));
        match entries.as_array() {
            Some(entries) if entries.iter().any(holds) => Probed::Happened(output(fields, facts)),
            // Rows that may not be read are left out of the answer without a word: no entries at all prove nothing.
            Some(entries) if !entries.is_empty() => Probed::NoTrace,
            _ => Probed::CannotTell("ServiceNow shows no notes of this incident to the connection's user".to_owned()),
        }
    }

    fn inverse(&self, fields: &Fields, output: &Value) -> Result<Inverse, String> {
        if fields.map("fields").any(|(name, _)| name == "comments") {
            return Err("a comment has been sent to the customer and cannot be taken back".to_owned());
        }
        let mut old = Map::new();
        for (name, _) in fields.map("fields") {
            if name == "work_notes" {
                let note = "An update by Interlock was undone; its note above no longer holds.";
                old.insert(name.to_owned(), note.into());
                continue;
            }
            let value = output["before"].get(name).filter(|value| !value.is_null() && !value.is_object());
            let value = value.ok_or_else(|| format!("what `{name}` was before is not known"))?;
            old.insert(name.to_owned(), value.clone());
        }
        let connection = fields.text("connection");
        let fields = json!({ "sys_id": fields.text("sys_id"), "fields": old, "connection": connection });
        Ok(Inverse { operation: UPDATE.operation, fields })
    }
}

impl Connector for IncidentGet {
    fn declaration(&self) -> &'static Declaration {
        &GET
    }

    fn key(&self, fields: &Fields, at: &Connection) -> String {
        format!("sn:incident:get:{}:{}:{}", at.host(), fields.text("sys_id"), fields.hash_of(&["fields"]))
    }

    fn requests(&self, fields: &Fields, at: &Connection, _: &CallFacts) -> Result<Vec<Request>, CallFailure> {
        Ok(vec![read_record(at, fields, &fields.texts("fields"))])
    }

    fn read(&self, _: &Fields, _: &CallFacts, answers: &[Response]) -> Result<Value, CallFailure> {
        result(only(answers)?)
    }
}
