//! How long the texts and lists of a request may be, and how large its numbers: what the server enforces, declared from the
//! constants that it enforces. Attributes of utoipa take literals only, which would have to be kept equal to them.
//!
//! The server counts bytes and the description counts characters. A text has at least as many bytes as characters, so the
//! server refuses everything that the description refuses. A name that is looked up, such as a workflow's, has the limit
//! of all names of its kind: a longer one is never found.
//!
//! A text that only the sizes of heads and bodies limit ([`crate::limits`]) has no row here. The tests of the routes list
//! those texts (`bounds::every_text_of_a_request_is_bounded`).

use interlock_core::cost;
use interlock_core::json::Hash;
use interlock_core::limits::{
    ARGUMENTS_MAX, ATTEMPTS_MAX, COMMAND_BYTES_MAX, EFFECTS_PER_STEP_MAX, EXPRESSION_BYTES_MAX, GROUPS_MAX,
    INPUT_LABELS, KEY_BYTES_MAX, LABELS_MAX, NAME_BYTES_MAX, OUTBOUND_PER_CHANGE_MAX, OUTPUT_BATCH_CHUNKS_MAX,
    OUTPUT_CHUNK_BYTES_MAX, REASON_BYTES_MAX, SOURCE_ID_BYTES_MAX, STEPS_PER_WORKFLOW_MAX, SUBJECT_BYTES_MAX,
    TEMPLATE_BYTES_MAX, VARIABLES_MAX, VOTES_PER_APPROVAL_MAX,
};
use interlock_core::run::event::Event;
use interlock_core::trigger::schedule::CRON_BYTES_MAX;
use interlock_core::work::credential::{CREDENTIAL_ID_BYTES_MAX, CREDENTIALS_PER_REPORT_MAX};
use interlock_core::work::terms;
use interlock_engine::policy::{DATA_BYTES_MAX, MODULES_MAX};
use interlock_engine::slack::settings as slack;
use interlock_engine::webhooks::inbound::HEADER_BYTES_MAX;
use interlock_engine::webhooks::outbound::{DESCRIPTION_BYTES_MAX, FILTERS_MAX};
use interlock_engine::webhooks::{SECRET_BYTES_MAX, SECRET_BYTES_MIN};
use interlock_outbound::limits::URL_BYTES_MAX;
use interlock_pki::REQUEST_BYTES_MAX;
use interlock_protocol::identity::limits::{PASSWORD_BYTES_MAX, PASSWORD_CHARS_MIN, WEIGHT_MAX};
use interlock_protocol::live::CURSOR_BYTES_MAX;
use interlock_protocol::{
    agent, approvals, audit, changes, executions, live, operations, policy, runs, schedules, workflows,
};
use interlock_store::ATTR_FILTERS_MAX;
use interlock_workflow::limits::SOURCE_BYTES_MAX;
use serde_json::{Map, Value, json};

const SCHEMAS: &str = "#/components/schemas/";

/// A SHA-256 digest in hexadecimal.
const HASH_CHARS: usize = 2 * size_of::<Hash>();
/// `run_` and 32 digits.
const ID_CHARS: usize = 36;
/// The step that undoes another one has that one's key behind a prefix.
const STEP_BYTES_MAX: usize = "rollback:".len() + NAME_BYTES_MAX;
/// `signal:RUN_ID/TYPE`, the longest destination of a message.
const DESTINATION_BYTES_MAX: usize = "signal:".len() + ID_CHARS + 1 + NAME_BYTES_MAX;
/// `name:value` in a query.
const PAIR_BYTES_MAX: usize = KEY_BYTES_MAX + 1 + KEY_BYTES_MAX;
/// `others.INSTANT.APPROVAL_ID`, the longest place in a list of approvals.
const APPROVAL_PLACE_BYTES_MAX: usize = "others.".len() + "-9223372036854775808.".len() + ID_CHARS;
/// Two digits for each byte of a JSON list: a signal's type and key, whose escapes have six bytes, an instant and a run's id.
const WAIT_PLACE_BYTES_MAX: usize = 2 * (6 * (NAME_BYTES_MAX + KEY_BYTES_MAX) + 100);
/// A person, or a key by its name.
const ACTOR_BYTES_MAX: usize = "key ".len() + NAME_BYTES_MAX;
/// An event's name, or the part of one up to a full stop and `*`.
const EVENT_BYTES_MAX: usize = longest(Event::NAMES);
/// Modules and their tests, and `data.json`.
const POLICY_FILES_MAX: usize = MODULES_MAX + 1;

const fn longest(names: &[&str]) -> usize {
    let (mut longest, mut at) = (0, 0);
    while at < names.len() {
        if names[at].len() > longest {
            longest = names[at].len();
        }
        at += 1;
    }
    longest
}

/// A schema, a field of it, and the least and the greatest that the server takes. Of a schema that is a choice, each option
/// that has the field. `field[]` are the items of a list, `field{}` the values of a map, `field{*}` its names; an empty field
/// is the schema itself.
type FieldBound = (&'static str, &'static str, usize, usize);

/// Lengths of texts.
const TEXTS: &[FieldBound] = &[
    ("Enrol", "request", 0, REQUEST_BYTES_MAX),
    ("RenewCertificate", "request", 0, REQUEST_BYTES_MAX),
    ("WorkerHello", "worker", 1, NAME_BYTES_MAX),
    ("WorkerHello", "build_id", 1, NAME_BYTES_MAX),
    ("WorkerHello", "queues[]", 1, NAME_BYTES_MAX),
    ("WorkerHello", "tasks[]", 1, NAME_BYTES_MAX),
    ("WorkerHello", "capabilities[]", 1, NAME_BYTES_MAX),
    ("WorkerHello", "environments[]", 1, terms::NAME_BYTES_MAX),
    ("WorkerHello", "labels{*}", 1, NAME_BYTES_MAX),
    ("WorkerHello", "labels{}", 1, NAME_BYTES_MAX),
    ("OfferVerdict", "why", 0, REASON_BYTES_MAX),
    ("CanaryReport", "why", 0, REASON_BYTES_MAX),
    ("Cost", "unit", 1, cost::UNIT_BYTES_MAX),
    ("PlanRules", "spend_unit", 1, cost::UNIT_BYTES_MAX),
    ("PlanRules", "profile", 0, NAME_BYTES_MAX),
    ("Requires", "capabilities[]", 0, NAME_BYTES_MAX),
    ("Requires", "network_segment", 0, NAME_BYTES_MAX),
    ("Requires", "labels{*}", 1, NAME_BYTES_MAX),
    ("Requires", "labels{}", 1, NAME_BYTES_MAX),
    ("StepRules", "credentials[]", 0, NAME_BYTES_MAX),
    ("StepSpec", "approvers[]", 0, NAME_BYTES_MAX),
    ("StepSpec", "message", 0, TEMPLATE_BYTES_MAX),
    ("StepSpecWaitSignalSignal", "key", 0, TEMPLATE_BYTES_MAX),
    ("StepSpecWaitUntil", "until", 0, TEMPLATE_BYTES_MAX),
    ("Cost", "provider", 0, cost::NAME_BYTES_MAX),
    ("Cost", "model", 0, cost::NAME_BYTES_MAX),
    ("CredentialUsed", "credential_id", 0, CREDENTIAL_ID_BYTES_MAX),
    ("CredentialUsed", "vault_request_id", 0, CREDENTIAL_ID_BYTES_MAX),
    ("CredentialUsed", "lease_id", 0, CREDENTIAL_ID_BYTES_MAX),
    ("ReportedOutcome", "signal", 1, NAME_BYTES_MAX),
    ("ReportedOutcome", "key", 0, KEY_BYTES_MAX),
    ("OutboundMessage", "destination", 1, DESTINATION_BYTES_MAX),
    // The key that is made of it has no more, with the run and the step.
    ("EffectIntent", "template", 1, KEY_BYTES_MAX),
    ("OutputChunk", "text", 0, OUTPUT_CHUNK_BYTES_MAX),
    ("DecideApproval", "comment", 0, REASON_BYTES_MAX),
    ("DecideApproval", "digest", 0, HASH_CHARS),
    ("DecideApproval", "on_behalf_of", 0, NAME_BYTES_MAX),
    ("CastVote", "notes", 0, REASON_BYTES_MAX),
    ("CastVote", "digest", 0, HASH_CHARS),
    ("CastVote", "on_behalf_of", 0, NAME_BYTES_MAX),
    ("Approve", "notes", 0, REASON_BYTES_MAX),
    ("Approve", "digest", 0, HASH_CHARS),
    ("Approve", "on_behalf_of", 0, NAME_BYTES_MAX),
    ("ApproveStep", "notes", 0, REASON_BYTES_MAX),
    ("ApproveStep", "digest", 0, HASH_CHARS),
    ("ApproveStep", "on_behalf_of", 0, NAME_BYTES_MAX),
    ("ApproveStep", "approver_role", 0, NAME_BYTES_MAX),
    ("EraseDetails", "person", 1, NAME_BYTES_MAX),
    ("EraseDetails", "reason", 1, audit::limits::REASON_BYTES_MAX),
    ("Login", "name", 0, NAME_BYTES_MAX),
    ("Login", "password", 0, PASSWORD_BYTES_MAX),
    ("Login", "tenant", 0, NAME_BYTES_MAX),
    ("NewToken", "name", 0, NAME_BYTES_MAX),
    ("NewToken", "password", 0, PASSWORD_BYTES_MAX),
    ("NewToken", "tenant", 0, NAME_BYTES_MAX),
    ("RunQuery", "workflow", 1, KEY_BYTES_MAX),
    ("RunQuery", "subject", 1, KEY_BYTES_MAX),
    ("RunQuery", "trigger", 1, KEY_BYTES_MAX),
    ("RunQuery", "workspace", 1, NAME_BYTES_MAX),
    ("RunQuery", "labels{*}", 1, KEY_BYTES_MAX),
    ("RunQuery", "labels{}", 1, KEY_BYTES_MAX),
    ("RunQuery", "inputs{*}", 0, KEY_BYTES_MAX - INPUT_LABELS.len()),
    ("RunQuery", "inputs{}", 1, KEY_BYTES_MAX),
    ("StartBulk", "reason", 1, REASON_BYTES_MAX),
    ("DecideChange", "notes", 0, changes::limits::NOTES_BYTES_MAX),
    ("CreateDelegation", "delegator", 1, NAME_BYTES_MAX),
    ("CreateDelegation", "delegate", 1, NAME_BYTES_MAX),
    ("CreateDelegation", "reason", 1, REASON_BYTES_MAX),
    ("CreateExecution", "ticket_id", 1, SUBJECT_BYTES_MAX),
    ("CreateExecution", "runbook_id", 1, NAME_BYTES_MAX),
    ("CreateExecution", "environment_profile", 1, NAME_BYTES_MAX),
    ("CreateExecution", "workspace", 1, NAME_BYTES_MAX),
    ("RollBack", "reason", 1, REASON_BYTES_MAX),
    ("CreateKey", "name", 1, NAME_BYTES_MAX),
    ("CreateKey", "workspace", 1, NAME_BYTES_MAX),
    ("CreateKey", "owner", 1, NAME_BYTES_MAX),
    // Of data; modules have less.
    ("TestPolicy", "files{}", 0, DATA_BYTES_MAX),
    ("NewPolicyVersion", "files{}", 0, DATA_BYTES_MAX),
    ("NewPolicyVersion", "note", 0, REASON_BYTES_MAX),
    ("StartRun", "workflow", 1, NAME_BYTES_MAX),
    ("StartRun", "workspace", 1, NAME_BYTES_MAX),
    ("StartRun", "subject", 0, SUBJECT_BYTES_MAX),
    ("StartRun", "labels{*}", 0, NAME_BYTES_MAX),
    ("StartRun", "labels{}", 0, NAME_BYTES_MAX),
    ("Plan", "workflow", 1, NAME_BYTES_MAX),
    ("StepSpec", "key", 1, NAME_BYTES_MAX),
    ("StepSpec", "queue", 1, NAME_BYTES_MAX),
    ("StepSpec", "if", 0, EXPRESSION_BYTES_MAX),
    ("StepSpec", "handler", 1, NAME_BYTES_MAX),
    ("StepSpec", "operation", 1, NAME_BYTES_MAX),
    ("StepSpec", "model", 1, NAME_BYTES_MAX),
    ("StepSpec", "argv[]", 0, COMMAND_BYTES_MAX),
    ("StepSpec", "env{}", 0, COMMAND_BYTES_MAX),
    ("StepSpecWaitSignalSignal", "type", 1, NAME_BYTES_MAX),
    ("RollbackSpec", "handler", 1, NAME_BYTES_MAX),
    ("RollbackSpec", "operation", 1, NAME_BYTES_MAX),
    ("RollbackSpec", "argv[]", 0, COMMAND_BYTES_MAX),
    ("Undo", "handler", 1, NAME_BYTES_MAX),
    ("Undo", "operation", 1, NAME_BYTES_MAX),
    ("Undo", "argv[]", 0, COMMAND_BYTES_MAX),
    ("Because", "reason", 1, REASON_BYTES_MAX),
    ("BeginMaintenance", "reason", 1, REASON_BYTES_MAX),
    ("Cancel", "reason", 1, REASON_BYTES_MAX),
    ("Resolve", "reason", 1, REASON_BYTES_MAX),
    ("RollBackRun", "reason", 1, REASON_BYTES_MAX),
    ("ChangeRunLabels", "labels{}", 0, NAME_BYTES_MAX),
    ("Restart", "from", 1, STEP_BYTES_MAX),
    ("StepRef", "", 1, STEP_BYTES_MAX),
    ("RunSignal", "type", 1, NAME_BYTES_MAX),
    ("RunSignal", "source_id", 1, SOURCE_ID_BYTES_MAX),
    ("NewSchedule", "name", 1, NAME_BYTES_MAX),
    ("NewSchedule", "workflow", 1, NAME_BYTES_MAX),
    ("NewSchedule", "cron", 1, CRON_BYTES_MAX),
    ("NewSchedule", "timezone", 1, NAME_BYTES_MAX),
    ("NewSchedule", "workspace", 1, NAME_BYTES_MAX),
    ("PauseSchedule", "reason", 1, REASON_BYTES_MAX),
    ("Signal", "type", 1, NAME_BYTES_MAX),
    ("Signal", "key", 1, KEY_BYTES_MAX),
    ("Signal", "source_id", 1, SOURCE_ID_BYTES_MAX),
    // The letter that says what it is the id of, and more.
    ("PutSlackConnection", "team", 2, slack::ID_BYTES_MAX),
    ("PutSlackConnection", "enterprise", 2, slack::ID_BYTES_MAX),
    ("PutSlackConnection", "channel", 2, slack::ID_BYTES_MAX),
    ("PutSlackConnection", "escalation_channel", 2, slack::ID_BYTES_MAX),
    ("PutSlackConnection", "bot_token", slack::SECRET_BYTES_MIN, slack::SECRET_BYTES_MAX),
    ("PutSlackConnection", "signing_secret", slack::SECRET_BYTES_MIN, slack::SECRET_BYTES_MAX),
    // An empty one removes the key.
    ("PutSlackConnection", "pagerduty_routing_key", 0, slack::SECRET_BYTES_MAX),
    ("CreateTenant", "name", 1, NAME_BYTES_MAX),
    ("CreateUser", "name", 1, NAME_BYTES_MAX),
    ("CreateUser", "display_name", 1, NAME_BYTES_MAX),
    ("CreateUser", "email", 1, NAME_BYTES_MAX),
    ("CreateUser", "groups[]", 1, NAME_BYTES_MAX),
    ("CreateUser", "password", PASSWORD_CHARS_MIN, PASSWORD_BYTES_MAX),
    ("ChangeUser", "display_name", 1, NAME_BYTES_MAX),
    ("ChangeUser", "email", 1, NAME_BYTES_MAX),
    ("ChangeUser", "groups[]", 1, NAME_BYTES_MAX),
    ("SetPassword", "password", PASSWORD_CHARS_MIN, PASSWORD_BYTES_MAX),
    ("NewOutbound", "name", 1, NAME_BYTES_MAX),
    ("NewOutbound", "url", 1, URL_BYTES_MAX),
    ("NewOutbound", "description", 0, DESCRIPTION_BYTES_MAX),
    ("NewOutbound", "events[]", 1, EVENT_BYTES_MAX),
    ("NewOutbound", "workflows[]", 1, NAME_BYTES_MAX),
    ("Disable", "reason", 1, REASON_BYTES_MAX),
    ("NewInbound", "name", 1, NAME_BYTES_MAX),
    ("NewInbound", "header", 1, HEADER_BYTES_MAX),
    ("NewInbound", "secret", SECRET_BYTES_MIN, SECRET_BYTES_MAX),
    ("Rotate", "secret", SECRET_BYTES_MIN, SECRET_BYTES_MAX),
    ("CreateWorkerIdentity", "name", 1, NAME_BYTES_MAX),
    ("WorkerTerms", "environments[]", 1, terms::NAME_BYTES_MAX),
    ("WorkerTerms", "segments[]", 1, terms::NAME_BYTES_MAX),
    ("WorkerTerms", "profiles[]", 1, terms::NAME_BYTES_MAX),
    ("File", "source", 0, SOURCE_BYTES_MAX),
    ("File", "file", 0, workflows::limits::FILE_BYTES_MAX),
    ("PlanRequest", "source", 0, SOURCE_BYTES_MAX),
    ("PlanRequest", "file", 0, workflows::limits::FILE_BYTES_MAX),
    ("PlanRequest", "workflow", 1, NAME_BYTES_MAX),
];

/// Numbers of items.
const LISTS: &[FieldBound] = &[
    ("WorkerHello", "queues", 0, agent::limits::QUEUES_MAX),
    ("WorkerHello", "tasks", 0, agent::limits::TASKS_MAX),
    ("WorkerHello", "capabilities", 0, agent::limits::CAPABILITIES_MAX),
    ("WorkerHello", "environments", 1, terms::NAMES_MAX),
    ("Heartbeat", "held", 0, agent::limits::SLOTS_MAX as usize),
    ("Heartbeat", "keeps", 0, agent::limits::KEPT_RUNS_MAX),
    ("Report", "credentials", 0, CREDENTIALS_PER_REPORT_MAX),
    ("ReportedOutcome", "outbound", 0, OUTBOUND_PER_CHANGE_MAX),
    ("OutputBatch", "chunks", 1, OUTPUT_BATCH_CHUNKS_MAX),
    ("Plan", "steps", 1, STEPS_PER_WORKFLOW_MAX),
    ("StepSpec", "argv", 1, ARGUMENTS_MAX),
    ("RollbackSpec", "argv", 1, ARGUMENTS_MAX),
    ("Undo", "argv", 1, ARGUMENTS_MAX),
    ("CreateUser", "groups", 0, GROUPS_MAX),
    ("ChangeUser", "groups", 0, GROUPS_MAX),
    ("NewOutbound", "events", 1, FILTERS_MAX),
    ("NewOutbound", "workflows", 1, FILTERS_MAX),
    ("WorkerTerms", "environments", 1, terms::NAMES_MAX),
    ("WorkerTerms", "segments", 0, terms::NAMES_MAX),
    ("WorkerTerms", "profiles", 0, terms::NAMES_MAX),
];

/// Numbers of fields, where the caller names them.
const MAPS: &[FieldBound] = &[
    ("RunQuery", "labels", 0, ATTR_FILTERS_MAX),
    ("RunQuery", "inputs", 0, ATTR_FILTERS_MAX),
    ("StartRun", "labels", 0, LABELS_MAX),
    ("WorkerHello", "labels", 0, agent::limits::LABELS_MAX),
    ("StepSpec", "env", 0, VARIABLES_MAX),
    ("TestPolicy", "files", 0, POLICY_FILES_MAX),
    ("NewPolicyVersion", "files", 0, POLICY_FILES_MAX),
];

const NUMBERS: &[FieldBound] = &[
    ("WorkerHello", "slots", 0, agent::limits::SLOTS_MAX as usize),
    ("EffectIntent", "number", 0, EFFECTS_PER_STEP_MAX as usize - 1),
    ("RetryPolicy", "max_attempts", 1, ATTEMPTS_MAX as usize),
    ("StepSpec", "quorum", 1, VOTES_PER_APPROVAL_MAX),
    ("ReplayPolicy", "days", 1, policy::limits::REPLAY_DAYS_MAX as usize),
    ("PutSlackConnection", "rung_prod_s", RUNG_S_MIN, RUNG_S_MAX),
    ("PutSlackConnection", "rung_other_s", RUNG_S_MIN, RUNG_S_MAX),
    ("ChangeTenant", "weight", 1, WEIGHT_MAX as usize),
];

const RUNG_S_MIN: usize = (slack::RUNG_MIN.0 / 1_000) as usize;
const RUNG_S_MAX: usize = (slack::RUNG_MAX.0 / 1_000) as usize;

/// Where a parameter stands, of which route (of all where none is named), its name, and the least and the greatest length of
/// its text. `name[]` is a parameter that may be repeated.
type ParameterBound = (&'static str, Option<&'static str>, &'static str, usize, usize);

const PARAMETERS: &[ParameterBound] = &[
    // Quoted, as RFC 8941 has it.
    ("header", None, "idempotency-key", 1, KEY_BYTES_MAX + 2),
    ("header", None, "x-idempotency-key", 1, KEY_BYTES_MAX + 2),
    ("path", None, "endpoint", 1, NAME_BYTES_MAX),
    ("path", None, "person", 1, NAME_BYTES_MAX),
    ("path", None, "schedule", 1, NAME_BYTES_MAX),
    ("path", None, "sha256", HASH_CHARS, HASH_CHARS),
    ("path", None, "step", 1, STEP_BYTES_MAX),
    ("path", None, "workflow", 1, NAME_BYTES_MAX),
    ("query", Some(runs::path::ROLLBACK), "step", 1, STEP_BYTES_MAX),
    ("query", Some(runs::path::RUNS), "workflow", 1, KEY_BYTES_MAX),
    ("query", Some(runs::path::RUNS), "subject", 1, KEY_BYTES_MAX),
    ("query", Some(runs::path::RUNS), "trigger", 1, KEY_BYTES_MAX),
    ("query", Some(runs::path::RUNS), "workspace", 1, NAME_BYTES_MAX),
    ("query", Some(runs::path::RUNS), "label[]", "n:v".len(), PAIR_BYTES_MAX),
    ("query", Some(runs::path::RUNS), "input[]", ":v".len(), PAIR_BYTES_MAX - INPUT_LABELS.len()),
    ("query", Some(runs::path::RUNS), "text", 0, KEY_BYTES_MAX),
    ("query", None, "last_event_id", 0, CURSOR_BYTES_MAX),
    ("query", Some(runs::path::EVENTS), "since", 0, CURSOR_BYTES_MAX),
    ("query", Some(executions::path::EVENTS), "since", 0, CURSOR_BYTES_MAX),
    ("query", Some(live::path::FEED), "since", 0, CURSOR_BYTES_MAX),
    ("query", Some(live::path::FEED), "before", 0, CURSOR_BYTES_MAX),
    ("query", Some(approvals::path::APPROVALS), "workflow", 0, KEY_BYTES_MAX),
    ("query", Some(approvals::path::APPROVALS), "subject", 0, KEY_BYTES_MAX),
    ("query", Some(approvals::path::APPROVALS), "approvers", 0, NAME_BYTES_MAX),
    ("query", Some(approvals::path::APPROVALS), "after", 0, APPROVAL_PLACE_BYTES_MAX),
    ("query", Some(audit::path::AUDIT), "type", 0, NAME_BYTES_MAX),
    ("query", Some(audit::path::AUDIT), "actor", 0, ACTOR_BYTES_MAX),
    ("query", Some(audit::path::AUDIT), "subject", 0, KEY_BYTES_MAX),
    ("query", Some(schedules::path::SCHEDULES), "after", 0, NAME_BYTES_MAX),
    ("query", Some(interlock_protocol::slack::path::LINKS), "after", 0, NAME_BYTES_MAX),
    ("query", Some(runs::path::WAITS), "type", 0, NAME_BYTES_MAX),
    ("query", Some(runs::path::WAITS), "key", 0, KEY_BYTES_MAX),
    ("query", Some(runs::path::WAITS), "after", 0, WAIT_PLACE_BYTES_MAX),
    ("query", Some(workflows::path::WORKFLOWS), "after", 0, NAME_BYTES_MAX),
    ("query", Some(operations::path::STATS), "workflow", 1, KEY_BYTES_MAX),
    ("query", Some(operations::path::STATS), "subject", 1, KEY_BYTES_MAX),
    ("query", Some(operations::path::STATS), "trigger", 1, KEY_BYTES_MAX),
    ("query", Some(operations::path::STATS), "workspace", 1, NAME_BYTES_MAX),
    ("query", Some(operations::path::STATS), "label[]", "n:v".len(), PAIR_BYTES_MAX),
    ("query", Some(operations::path::STATS), "input[]", ":v".len(), PAIR_BYTES_MAX - INPUT_LABELS.len()),
];

/// A type of JSON, and the words for its least and its greatest.
#[derive(Clone, Copy)]
struct Keywords {
    of: &'static str,
    least: &'static str,
    greatest: &'static str,
}

const TEXT: Keywords = Keywords { of: "string", least: "minLength", greatest: "maxLength" };

const TABLES: &[(Keywords, &[FieldBound])] = &[
    (TEXT, TEXTS),
    (Keywords { of: "array", least: "minItems", greatest: "maxItems" }, LISTS),
    (Keywords { of: "object", least: "minProperties", greatest: "maxProperties" }, MAPS),
    (Keywords { of: "integer", least: "minimum", greatest: "maximum" }, NUMBERS),
];

/// Marks at the end of a field, and where in its schema they lead.
const INSIDE: &[(&str, &str)] = &[("[]", "/items"), ("{}", "/additionalProperties"), ("{*}", "/propertyNames")];

/// How long the value of a parameter of a query may be: what the guard of all routes enforces.
pub fn query_bytes_max(route: &str, name: &str) -> Option<usize> {
    let is_meant = |(stands_in, of_route, known, ..): &&ParameterBound| {
        *stands_in == "query"
            && known.trim_end_matches("[]") == name
            && of_route.is_none_or(|of_route| of_route == route)
    };
    PARAMETERS.iter().find(is_meant).map(|(.., greatest)| *greatest)
}

/// Declares the bounds. The schemas have their final names by now.
pub fn describe(document: &mut Value) {
    let schemas = &mut document["components"]["schemas"];
    for (words, rows) in TABLES {
        for (schema, field, least, greatest) in *rows {
            for place in places(schemas, schema, field, words.of) {
                if let Some(node) = schemas.pointer_mut(&place) {
                    declare(node, *words, *least, *greatest);
                }
            }
        }
    }
    for (route, item) in document["paths"].as_object_mut().into_iter().flatten() {
        let operations = item.as_object_mut().into_iter().flat_map(Map::values_mut);
        let parameters = operations.filter_map(|operation| operation.get_mut("parameters")?.as_array_mut());
        for parameter in parameters.flatten() {
            for (stands_in, of_route, name, least, greatest) in PARAMETERS {
                let place = place_of_parameter(name);
                let is_meant = parameter["in"] == *stands_in
                    && parameter["name"] == *name.trim_end_matches("[]")
                    && of_route.is_none_or(|of_route| route.as_str() == of_route);
                if let Some(node) = parameter.pointer_mut(place).filter(|_| is_meant) {
                    declare(node, TEXT, *least, *greatest);
                }
            }
        }
    }
}

fn declare(node: &mut Value, words: Keywords, least: usize, greatest: usize) {
    if least > 0 {
        node[words.least] = json!(least);
    }
    node[words.greatest] = json!(greatest);
}

fn place_of_parameter(name: &str) -> &'static str {
    if name.ends_with("[]") { "/schema/items" } else { "/schema" }
}

/// Pointers to what a row is about: in the schema, and in the options of one that is a choice.
fn places(schemas: &Value, schema: &str, field: &str, of: &str) -> Vec<String> {
    let marked = INSIDE.iter().find_map(|(mark, inside)| Some((field.strip_suffix(*mark)?, *inside)));
    let (name, inside) = marked.unwrap_or((field, ""));
    let below = if name.is_empty() { inside.to_owned() } else { format!("/properties/{name}{inside}") };
    let mut owners = vec![format!("/{schema}")];
    for (index, option) in schemas[schema]["oneOf"].as_array().into_iter().flatten().enumerate() {
        let named = option["$ref"].as_str().and_then(|reference| reference.strip_prefix(SCHEMAS));
        owners.push(named.map_or_else(|| format!("/{schema}/oneOf/{index}"), |named| format!("/{named}")));
    }
    let found = owners.into_iter().map(|owner| format!("{owner}{below}"));
    found.filter(|place| schemas.pointer(place).is_some_and(|node| is_of(node, of))).collect()
}

fn is_of(node: &Value, of: &str) -> bool {
    match &node["type"] {
        Value::Array(types) => types.iter().any(|one| one == of),
        one => one == of,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_stands_with_its_field() {
        let document = crate::openapi::copy();
        let schemas = &document["components"]["schemas"];
        for (words, rows) in TABLES {
            for (schema, field, least, greatest) in *rows {
                let places = places(schemas, schema, field, words.of);
                assert!(!places.is_empty(), "{schema}.{field}: there is no such field of the type `{}`", words.of);
                for place in places {
                    let node = schemas.pointer(&place).unwrap();
                    assert_eq!(node[words.greatest], json!(greatest), "{place}");
                    assert!(*least == 0 || node[words.least] == json!(least), "{place}: {node}");
                }
            }
        }
        for (stands_in, of_route, name, _, greatest) in PARAMETERS {
            let paths = document["paths"].as_object().unwrap().iter();
            let meant = paths.filter(|(path, _)| of_route.is_none_or(|of_route| path.as_str() == of_route));
            let operations = meant.flat_map(|(_, item)| item.as_object().unwrap().values());
            let parameters = operations.flat_map(|operation| operation["parameters"].as_array().into_iter().flatten());
            let mut found = 0;
            for parameter in parameters {
                if parameter["in"] == *stands_in && parameter["name"] == *name.trim_end_matches("[]") {
                    let node = parameter.pointer(place_of_parameter(name)).unwrap();
                    assert_eq!(node["maxLength"], json!(greatest), "{stands_in} {name}");
                    found += 1;
                }
            }
            assert!(found > 0, "{stands_in} {name}: there is no such parameter");
        }
    }

    #[test]
    fn an_event_is_found_by_a_pattern_that_is_no_longer_than_its_name() {
        assert!(Event::NAMES.iter().all(|name| name.len() <= EVENT_BYTES_MAX));
        assert!(Event::NAMES.iter().any(|name| name.len() == EVENT_BYTES_MAX));
    }

    #[test]
    fn ids_and_digests_have_the_lengths_that_are_declared() {
        assert_eq!(interlock_core::ids::RunId::from_bytes([7; 16]).to_string().len(), ID_CHARS);
        assert_eq!(Hash::of(b"").to_string().len(), HASH_CHARS);
    }
}
