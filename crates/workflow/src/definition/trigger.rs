//! What starts a workflow. Each form may be given once or as a list; its `filter` decides whether an event counts, its
//! `inputs` say what the run takes from it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use interlock_core::time::Millis;
use interlock_core::trigger::schedule::{DstPolicy, Overlap};

use crate::diagnostic::{Code, Report};
use crate::node::{Key, Node, Value};
use crate::shape::{At, Defs, Expression, Map, Name, OneOrMany, Shape, Template, record, words};

/// Declares a closed set of words.
macro_rules! word_set {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl FromStr for $name {
            type Err = ();

            fn from_str(text: &str) -> Result<Self, ()> {
                Self::ALL.iter().find(|word| word.as_str() == text).copied().ok_or(())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

word_set! {
    /// The forms of a trigger.
    TriggerKind {
        Webhook = "webhook",
        GitHub = "github",
        Slack = "slack",
        ServiceNow = "servicenow",
        Schedule = "schedule",
        Ticket = "ticket",
        Signal = "signal",
        Api = "api",
    }
}

words!(DstPolicy, Overlap);

record! {
    /// A request to a webhook endpoint.
    "`on.webhook`" Webhook {
        /// The endpoint's name; every endpoint of the tenant where omitted.
        endpoint: Option<At<Name>>,
        /// The kind of sender: `generic`, `standard`, or a system's name such as `servicenow`.
        source: Option<At<Name>>,
        /// An expression over `event` and `trigger`; other events are not for this workflow.
        filter: Option<Expression>,
        /// What the run takes, from `event` and `trigger`.
        inputs: Map<Template>,
    }
}

record! {
    /// An event of GitHub.
    "`on.github`" GitHub {
        /// The events, such as `push` or `pull_request`; every event where omitted.
        events: OneOrMany<At<Name>>,
        /// The actions of the events, such as `opened`; every action where omitted.
        actions: OneOrMany<At<Name>>,
        /// Repositories as `owner/name`; every repository where omitted.
        repositories: OneOrMany<At<Name>>,
        /// The endpoint's name; every endpoint of the tenant where omitted.
        endpoint: Option<At<Name>>,
        /// An expression over `event` and `trigger`; other events are not for this workflow.
        filter: Option<Expression>,
        /// What the run takes, from `event` and `trigger`.
        inputs: Map<Template>,
    }
}

record! {
    /// A slash command in Slack.
    "`on.slack`" Slack {
        /// The command with its slash, such as `/deploy`; every command where omitted.
        command: Option<At<String>>,
        /// Channels by name or id; every channel where omitted.
        channels: OneOrMany<At<String>>,
        /// The endpoint's name; every endpoint of the tenant where omitted.
        endpoint: Option<At<Name>>,
        /// An expression over `event` and `trigger`; other commands are not for this workflow.
        filter: Option<Expression>,
        /// What the run takes, from `event` and `trigger`.
        inputs: Map<Template>,
    }
}

record! {
    /// A record that changed in ServiceNow.
    "`on.servicenow`" ServiceNow {
        /// The table, such as `incident`; every table where omitted.
        table: Option<At<Name>>,
        /// The endpoint's name; every endpoint of the tenant where omitted.
        endpoint: Option<At<Name>>,
        /// An expression over `event` and `trigger`; other records are not for this workflow.
        filter: Option<Expression>,
        /// What the run takes, from `event` and `trigger`.
        inputs: Map<Template>,
    }
}

record! {
    /// A schedule.
    "`on.schedule`" Schedule {
        /// Minute, hour, day of month, month, day of week; seconds may stand in front.
        cron: At<String>,
        /// An IANA time zone such as `Europe/Berlin`; `UTC` where omitted.
        timezone: Option<At<String>>,
        /// The schedule's name, for `interlock schedule`; made from its place in the list where omitted.
        name: Option<At<Name>>,
        /// What daylight saving does to a slot; `once` where omitted.
        dst: Option<DstPolicy>,
        /// What happens while the run of an earlier slot is active; `skip` where omitted.
        overlap: Option<Overlap>,
        /// How far back slots are made up for that passed while no server ran; `1h` where omitted.
        catch_up: Option<At<Millis>>,
        /// Slots are delayed by a span up to this, drawn from the slot.
        jitter: Option<At<Millis>>,
        /// Made, but not running.
        paused: Option<bool>,
        /// What the run takes; expressions see `trigger.slot`.
        inputs: Map<Template>,
    }
}

impl Schedule {
    /// What the schedule is called: by its own name, else after its workflow and its place in the list.
    pub fn name_at(&self, workflow: &str, index: usize) -> String {
        match (&self.name, index) {
            (Some(name), _) => name.value.0.clone(),
            (None, 0) => workflow.to_owned(),
            (None, index) => format!("{workflow}-{}", index + 1),
        }
    }
}

record! {
    /// A ticket of the runbook surface (`POST /executions` without `runbook_id`).
    "`on.ticket`" Ticket {
        /// An expression over `event`, the ticket.
        filter: Option<Expression>,
        /// What the run takes, from `event` and `trigger`.
        inputs: Map<Template>,
    }
}

record! {
    /// A signal by its type.
    "`on.signal`" Signal {
        /// The signal's type.
        kind ("type"): At<Name>,
        /// An expression over `event`, the payload, and `trigger`.
        filter: Option<Expression>,
        /// What the run takes, from `event` and `trigger`.
        inputs: Map<Template>,
    }
}

record! {
    /// A request by API or command line, which every workflow takes; said for the reader.
    "`on.api`" Api {
        /// What it is for.
        description: Option<String>,
    }
}

record! {
    /// What starts a workflow.
    "`on`" TriggerBlock {
        /// Requests to webhook endpoints.
        webhook: OneOrMany<Webhook>,
        /// Events of GitHub.
        github: OneOrMany<GitHub>,
        /// Slash commands in Slack.
        slack: OneOrMany<Slack>,
        /// Records that change in ServiceNow.
        servicenow: OneOrMany<ServiceNow>,
        /// Times.
        schedule: OneOrMany<Schedule>,
        /// Tickets of the runbook surface.
        ticket: OneOrMany<Ticket>,
        /// Signals.
        signal: OneOrMany<Signal>,
        /// Requests by API or command line, which every workflow takes.
        api: Option<Api>,
    }
}

/// What starts a workflow; may be written as a word or a list of words.
#[derive(Debug, Clone)]
pub struct Triggers(pub TriggerBlock);

impl std::ops::Deref for Triggers {
    type Target = TriggerBlock;

    fn deref(&self) -> &TriggerBlock {
        &self.0
    }
}

impl Shape for Triggers {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        let words = match &node.value {
            Value::Text(_) => std::slice::from_ref(node),
            Value::List(items) => items.as_slice(),
            Value::Map(fields) => {
                // `webhook:` with nothing behind it means: with nothing to narrow it.
                let fields = fields.iter().map(|(key, node)| (key.clone(), or_empty(node))).collect();
                let value = Value::Map(Arc::new(fields));
                return TriggerBlock::read(&Node { span: node.span, value }, report).map(Self);
            }
            _ => {
                let message = format!("`on` is a mapping, a list or a word, found {}", node.kind());
                report.error(Code::WrongType, node.span, message).help("write `on: { webhook: { source: github } }`");
                return None;
            }
        };
        let mut fields: Vec<(Key, Node)> = Vec::new();
        for word in words {
            let name = crate::shape::word(word, TriggerKind::ALL.iter().map(|kind| kind.as_str()), report)?;
            let key = Key { name: name.to_owned(), span: word.span };
            fields.push((key, Node { span: word.span, value: Value::Map(Arc::default()) }));
        }
        TriggerBlock::read(&Node { span: node.span, value: Value::Map(Arc::new(fields)) }, report).map(Self)
    }

    fn schema(defs: &mut Defs) -> serde_json::Value {
        let words: Vec<_> = TriggerKind::ALL.iter().map(|kind| kind.as_str()).collect();
        let word = serde_json::json!({ "enum": words });
        let block = TriggerBlock::schema(defs);
        serde_json::json!({ "oneOf": [word, { "type": "array", "items": word }, block] })
    }
}

fn or_empty(node: &Node) -> Node {
    match node.value {
        Value::Null => Node { span: node.span, value: Value::Map(Arc::default()) },
        _ => node.clone(),
    }
}
