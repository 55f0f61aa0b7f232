//! What the process says about itself on stderr: how much, and in which form.

use clap::parser::ValueSource;
use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

use super::LayeredConfig;

/// What the programs of a worker write on standard error is told, unless the filter names it.
const PROGRAMS: &str = "interlock_worker::stderr=info";

/// What runs do is told on stdout by `interlock up`, in words for people: not a second time, unless it was asked for.
const TOLD_ALREADY: &str = "interlock_engine::run_log=off";

/// How much the process says about itself.
#[derive(Args)]
pub struct LogArgs {
    /// What is logged to stderr, as in `info` or `warn,interlock_engine=debug`.
    #[arg(long, env = "INTERLOCK_LOG", value_name = "FILTER", default_value = "warn", value_parser = filter)]
    log: String,
    /// How it is logged: lines for people, or one JSON document a line.
    #[arg(long, env = "INTERLOCK_LOG_FORMAT", value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

fn filter(text: &str) -> Result<String, String> {
    let parsed = EnvFilter::try_new(text);
    parsed.map(|_| text.to_owned()).map_err(|error| format!("{error}; write it as `info` or `warn,NAME=debug`"))
}

/// Begins to log, as the command line, the environment and the file say. Commands without these settings log what
/// INTERLOCK_LOG asks for, as text.
pub fn begin(layered: &LayeredConfig) {
    let leaf = layered.leaf();
    let asked = leaf.try_get_one::<String>("log").ok().flatten().cloned();
    let asked = asked.or_else(|| std::env::var("INTERLOCK_LOG").ok());
    let asked = asked.filter(|filter| !filter.is_empty() && EnvFilter::try_new(filter).is_ok());
    let format = leaf.try_get_one::<LogFormat>("log_format").ok().flatten().copied().unwrap_or_default();
    let has_setting = leaf.try_contains_id("log").is_ok_and(|has_setting| has_setting);
    let is_default = has_setting && leaf.value_source("log") == Some(ValueSource::DefaultValue);
    let mut filter = format!("{PROGRAMS},{}", asked.as_deref().unwrap_or("warn"));
    let is_plain = is_default && asked.as_deref() == Some("warn") && format == LogFormat::Text;
    if is_plain && layered.matches.subcommand_name() == Some("up") {
        filter = format!("{filter},{TOLD_ALREADY}");
    }
    let filter = EnvFilter::new(filter);
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // It would tell of a line that cannot be written by `eprintln!`, which panics where the reader has gone away.
    let log = log.log_internal_errors(false);
    match format {
        LogFormat::Text => log.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::io;
    use std::sync::{Arc, Mutex};

    use interlock_core::ids::{ApprovalId, DecisionId, ReceiptId, RunId, SessionId, TenantId};
    use interlock_core::json::{Hash, HashHex};
    use interlock_core::run::event::Event;
    use interlock_core::state::{Initiator, Reason, RunState};
    use interlock_core::time::Timestamp;
    use interlock_core::work::AttemptRef;
    use interlock_core::work::output::OutputStream;
    use interlock_engine::run_log::{
        LogEvent, LoggedRun, LoggedStep, OutputSize, log_event, log_idempotency_hit, log_orphan, log_output,
        log_transition,
    };
    use serde_json::{Map, Value, json};

    const TENANT: TenantId = TenantId::from_bytes([1; 16]);
    const RUN: RunId = RunId::from_bytes([2; 16]);
    const SESSION: SessionId = SessionId::from_bytes([3; 16]);
    const APPROVAL: ApprovalId = ApprovalId::from_bytes([4; 16]);
    const AT: AttemptRef = AttemptRef { tenant: TENANT, run: RUN, position: 1, attempt: 2 };

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The one line that is written, as a reader of the JSON form gets it; without its time, and with the ids by their names.
    fn line(tell: impl FnOnce()) -> Map<String, Value> {
        let written = Written::default();
        let writer = written.clone();
        let log = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_writer(move || writer.clone());
        tracing::subscriber::with_default(log.json().flatten_event(true).finish(), tell);
        let mut text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        for (id, name) in [
            (TENANT.to_string(), "TENANT"),
            (RUN.to_string(), "RUN"),
            (SESSION.to_string(), "SESSION"),
            (APPROVAL.to_string(), "APPROVAL"),
        ] {
            text = text.replace(&id, name);
        }
        let mut fields: Map<String, Value> = serde_json::from_str(&text).unwrap_or_else(|_| panic!("no line: {text}"));
        assert!(fields.remove("timestamp").is_some_and(|time| time.is_string()), "{text}");
        assert_eq!(fields.remove("target"), Some(json!("interlock_engine::run_log")), "{text}");
        fields
    }

    /// An event of this name with every field that it can have.
    fn sample(name: &str) -> Event {
        let error = json!({ "class": "unavailable", "code": "BUSY", "message": "s3cret" });
        let receipt = ReceiptId::from_bytes([5; 16]);
        let bundle = HashHex(Hash::of(b"bundle"));
        let fields = match name {
            "session.created" => json!({ "workflow": "deploy", "version": 3 }),
            "session.assigned" => json!({ "session": SESSION, "worker": "w-1", "attempt": 2 }),
            "session.offered" => {
                json!({ "session": SESSION, "worker": "w-1", "attempt": 2, "ack_by": Timestamp(5) })
            }
            "session.unassigned" => json!({
                "session": SESSION, "worker": "w-1", "attempt": 2, "status": "expired", "why": "s3cret",
            }),
            "session.paused" => json!({ "reason": "s3cret" }),
            "session.resumed" | "session.completed" | "execution.rollback.completed" => json!({}),
            "session.canceled" => json!({ "reason": "s3cret", "done": true }),
            "session.failed" => json!({ "state": RunState::Failed, "reason": Reason::StepFailed }),
            "execution.step.started" => json!({ "step": 1, "attempt": 2, "session": SESSION }),
            "execution.step.completed" => {
                json!({ "step": 1, "attempt": 2, "output_bytes": 9, "session": SESSION })
            }
            "execution.step.failed" => json!({ "step": 1, "attempt": 2, "error": error }),
            "execution.step.retrying" => {
                json!({ "step": 1, "attempt": 2, "eligible_at": Timestamp(5), "error": error })
            }
            "execution.step.ready" | "execution.step.skipped" => json!({ "step": 1, "why": "s3cret" }),
            "execution.step.waiting" => {
                json!({ "step": 1, "signal": "s3cret", "key": "s3cret", "deadline_at": Timestamp(5) })
            }
            "execution.step.in_doubt" => json!({ "step": 1, "attempt": 2, "receipt": receipt }),
            "execution.step.canceled" => json!({ "step": 1 }),
            "execution.rollback.started" => json!({ "steps": [1] }),
            "approval.requested" => json!({ "step": 1, "approval": APPROVAL, "expires_at": Timestamp(5) }),
            "approval.voted" => json!({ "step": 1, "approval": APPROVAL, "person": "s3cret", "approve": true }),
            "approval.expired" => json!({ "step": 1, "approval": APPROVAL }),
            "approval.resolved" => json!({ "step": 1, "approval": APPROVAL, "status": "approved" }),
            "receipt.recorded" => json!({ "step": 1, "attempt": 2, "receipt": receipt, "state": "succeeded" }),
            "receipt.deduplicated" => json!({ "step": 1, "attempt": 2, "receipt": receipt, "run": RUN }),
            "policy.decided" => json!({
                "step": 1, "decision": DecisionId::from_bytes([6; 16]), "verdict": "allow", "tier": "low",
                "bundle": bundle,
            }),
            name => panic!("{name} has no sample: give it one, so that its line has a snapshot"),
        };
        let mut whole = json!({ "event": name });
        whole.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn of_event(name: &str) -> Map<String, Value> {
        let event = sample(name);
        let run = LoggedRun {
            workflow: Some("deploy"),
            profile: Some("staging-standard"),
            idempotency_key: Some("key-1"),
            duration_ms: Some(1_500),
            ..LoggedRun::new(TENANT, RUN)
        };
        let (key, blast_radius) = ("restart", "medium");
        let step = LoggedStep { key, blast_radius, command_hash: Some("c0ffee".to_owned()), is_resumable: true };
        let step = event.step().map(|_| &step);
        line(|| log_event(&run, step, Some("w-1"), &event, Initiator::Operator))
    }

    fn lines() -> Vec<(String, Map<String, Value>)> {
        let mut lines: Vec<_> = Event::NAMES.iter().map(|name| ((*name).to_owned(), of_event(name))).collect();
        let run = LoggedRun { workflow: Some("deploy"), ..LoggedRun::new(TENANT, RUN) };
        let states = (Some(RunState::Pending), RunState::Running);
        let output = OutputSize { seq: 7, stream: OutputStream::Stderr, bytes: 12 };
        let others = [
            ("run_transition", line(|| log_transition(&run, states, None, Initiator::System))),
            ("idempotency_hit", line(|| log_idempotency_hit(TENANT, RUN, "key-1"))),
            ("orphan_detected", line(|| log_orphan(AT, "w-1"))),
            ("execution.step.output", line(|| log_output(AT, output))),
        ];
        lines.extend(others.map(|(name, line)| (name.to_owned(), line)));
        lines
    }

    #[test]
    fn every_line_about_a_run_has_its_fields_names_and_level() {
        let lines = lines();
        for (name, line) in &lines {
            let sorted: BTreeMap<&String, &Value> = line.iter().collect();
            let text = serde_json::to_string_pretty(&sorted).unwrap();
            assert!(!text.contains("s3cret"), "{text}");
            insta::assert_snapshot!(name.replace('.', "-"), text);
        }
        let told: BTreeSet<&str> = lines.iter().filter_map(|(_, line)| line.get("event")?.as_str()).collect();
        let all: BTreeSet<&str> = LogEvent::ALL.map(LogEvent::as_str).into_iter().collect();
        assert_eq!(told, all);
    }
}
