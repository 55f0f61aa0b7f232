//! Mail, handed to a submission server over TLS. There is no way back, and no way to ask whether a message was taken whose
//! acknowledgement was lost.
//!
//! The message's id is made from the effect key, so that mailboxes which drop repeats can.

use interlock_core::state::EffectClass;
use lettre::Message;
use lettre::message::header::ContentType;
use lettre::message::{Mailbox, MultiPart, SinglePart};
use serde_json::{Value, json};

use super::connection;
use crate::connection::Connection;
use crate::connector::{CallFacts, Connector};
use crate::declaration::{Declaration, Reversal};
use crate::failure::CallFailure;
use crate::fields::Fields;
use crate::limits;
use crate::request::{Mail, Request, Response, only};
use crate::schema::{Field, Kind, Need};

/// `email.send`
#[derive(Debug)]
pub struct Send;

const PEOPLE: Kind = Kind::Texts { items: 50, bytes: 320 };

static DECLARATION: Declaration = Declaration {
    operation: "email.send",
    about: "Sends a mail.",
    fields: &[
        Field::new("to", PEOPLE, Need::Required, "Whom it goes to: `ops@example.org` or `Ops <ops@example.org>`."),
        Field::new("cc", PEOPLE, Need::Optional, "Who gets a copy."),
        Field::new("reply_to", Kind::Text(320), Need::Optional, "Where answers go."),
        Field::new("subject", Kind::Text(998), Need::Required, "The subject, one line."),
        Field::new("text", Kind::Text(limits::LONG_TEXT), Need::Required, "The message as plain text."),
        Field::new("html", Kind::Text(limits::JSON_BYTES), Need::Optional, "The message as HTML, beside the text."),
        connection("\"email\""),
    ],
    effect: EffectClass::Unsafe,
    key: "email:send:{host}:{to_hash}:{message_hash}",
    reversal: Reversal::Irreversible("a mail that was sent cannot be called back"),
    reads_before: false,
    probe: None,
};

/// A line break in a name would begin another header.
fn mailbox(text: &str) -> Result<Mailbox, String> {
    if text.chars().any(char::is_control) {
        return Err("a mail address holds a line break or another control character".to_owned());
    }
    text.parse().map_err(|_| format!("`{text}` is not a mail address"))
}

fn mailboxes(fields: &Fields, name: &str) -> Result<Vec<Mailbox>, String> {
    fields.texts(name).into_iter().map(mailbox).collect()
}

/// With one kind of line break. Some servers take a carriage return by itself for one too, so that a message could end, and
/// another begin, where nobody sees it.
fn lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

fn write(fields: &Fields, from: &Mailbox, id: String) -> Result<Message, String> {
    let mut message = Message::builder().from(from.clone()).subject(fields.text("subject")).message_id(Some(id));
    for to in mailboxes(fields, "to")? {
        message = message.to(to);
    }
    for cc in mailboxes(fields, "cc")? {
        message = message.cc(cc);
    }
    if let Some(reply_to) = fields.opt_text("reply_to") {
        message = message.reply_to(mailbox(reply_to)?);
    }
    let text = lines(fields.text("text"));
    let written = match fields.opt_text("html") {
        Some(html) => message.multipart(MultiPart::alternative_plain_html(text, lines(html))),
        None => message.singlepart(SinglePart::builder().header(ContentType::TEXT_PLAIN).body(text)),
    };
    written.map_err(|error| error.to_string())
}

impl Connector for Send {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn check(&self, fields: &Fields) -> Result<(), String> {
        if fields.text("subject").contains(['\r', '\n']) {
            return Err("`subject` has more than one line".to_owned());
        }
        if mailboxes(fields, "to")?.is_empty() {
            return Err("`to` names no recipient".to_owned());
        }
        mailboxes(fields, "cc")?;
        fields.opt_text("reply_to").map_or(Ok(()), |reply_to| mailbox(reply_to).map(drop))
    }

    fn key(&self, fields: &Fields, at: &Connection) -> String {
        let (to, message) = (fields.hash_of(&["to", "cc"]), fields.hash_of(&["subject", "text", "html", "reply_to"]));
        format!("email:send:{}:{to}:{message}", at.host())
    }

    fn requests(&self, fields: &Fields, at: &Connection, facts: &CallFacts) -> Result<Vec<Request>, CallFailure> {
        let unusable = |what: String| CallFailure::refused("MAIL_INVALID", what);
        if !at.url.starts_with("smtps://") && !at.url.starts_with("smtp://") {
            let what = format!("the connection `{}` is no mail server: write smtps://HOST or smtp://HOST", at.name);
            return Err(CallFailure::refused("CONNECTION_UNUSABLE", what));
        }
        let Some(from) = &at.from else {
            let what = format!("the connection `{}` names no sender: write `from`", at.name);
            return Err(CallFailure::refused("CONNECTION_UNUSABLE", what));
        };
        if at.user.is_some() != at.secret.is_some() {
            let what = format!("the connection `{}` has one of `user` and `secret`: give both, or none", at.name);
            return Err(CallFailure::refused("CONNECTION_UNUSABLE", what));
        }
        let from = mailbox(from).map_err(unusable)?;
        let id = format!("<{}@{}>", facts.mark(), from.email.domain());
        let message = write(fields, &from, id).map_err(unusable)?;
        let envelope = message.envelope();
        Ok(vec![Request::Mail(Box::new(Mail {
            server: at.url.clone(),
            user: at.user.clone(),
            secret: at.secret.clone(),
            from: from.email.to_string(),
            to: envelope.to().iter().map(ToString::to_string).collect(),
            message: message.formatted(),
        }))])
    }

    fn read(&self, _: &Fields, facts: &CallFacts, answers: &[Response]) -> Result<Value, CallFailure> {
        // The body of a mail server's answer is what it said when it took the message.
        let said = String::from_utf8_lossy(&only(answers)?.body).trim().to_owned();
        Ok(json!({ "message_id": facts.mark(), "answer": crate::failure::quoted(&said) }))
    }
}
