//! A named bound for everything that can grow. Config may lower most of them; nothing raises them past these.

use crate::time::Millis;

pub const STEPS_PER_WORKFLOW_MAX: usize = 1_000;
/// Inputs of a run, output of a step, payload of a signal: one JSON text.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// How deep JSON from outside may nest.
pub const JSON_DEPTH_MAX: usize = 64;
pub const ERROR_BYTES_MAX: usize = 8 << 10;
pub const NAME_BYTES_MAX: usize = 128;
pub const SUBJECT_BYTES_MAX: usize = 512;
/// How many runs may wait for one subject.
pub const SUBJECT_QUEUE_MAX: usize = 1_000;
/// Schedules of one tenant.
pub const SCHEDULES_MAX: usize = 1_000;
pub const KEY_BYTES_MAX: usize = 512;
/// What a sender calls its message: for CloudEvents, its source and its id together.
pub const SOURCE_ID_BYTES_MAX: usize = 2_048;
pub const REASON_BYTES_MAX: usize = 4 << 10;
/// The longest difference between two inputs that an approval shows; a longer one is refused.
pub const DIFFERENCE_BYTES_MAX: usize = 4 << 10;
/// Steps behind a gate that its card shows, and the length of all their inputs.
pub const GUARDED_ACTIONS_MAX: usize = 100;
pub const GUARDED_BYTES_MAX: usize = 32 << 10;
/// The inputs of steps behind passed gates that a run keeps, to say what has changed.
pub const FORESEEN_BYTES_MAX: usize = 8 << 10;
pub const LABELS_MAX: usize = 32;
/// Groups of one person.
pub const GROUPS_MAX: usize = 64;
/// Labels whose names begin so are Interlock's own: kept with the run, and not searchable.
pub const OWN_LABELS: &str = "interlock.";
/// Labels whose names begin so are inputs that the workflow declares searchable.
pub const INPUT_LABELS: &str = "input.";
/// The W3C trace context that a run was started in.
pub const TRACEPARENT: &str = "interlock.traceparent";
/// What tracing systems have added to it.
pub const TRACESTATE: &str = "interlock.tracestate";
/// As the standard says; a longer one is dropped.
pub const TRACESTATE_BYTES_MAX: usize = 512;
/// Runs of one bulk job.
pub const BULK_RUNS_MAX: usize = 50_000;
pub const OUTBOUND_PER_CHANGE_MAX: usize = 64;
pub const VOTES_PER_APPROVAL_MAX: usize = 64;
pub const EFFECTS_PER_STEP_MAX: u32 = 1_000;
/// The longest time for which the effect of one run may count as another run's.
pub const DEDUPE_WINDOW_MAX: Millis = Millis::from_secs(30 * 24 * 3600);
/// How often a run may be continued by a new one.
pub const RESUMES_MAX: u32 = 1_000;
pub const ATTEMPTS_MAX: u32 = 1_000;
pub const EXPRESSION_BYTES_MAX: usize = 4 << 10;
/// A text of a plan in which expressions may stand: the message of an approval, the key or the instant of a wait.
pub const TEMPLATE_BYTES_MAX: usize = 4 << 10;
pub const EXPRESSION_DEPTH_MAX: usize = 32;
/// Operators of one expression: a chain of them is as deep as it is long.
pub const EXPRESSION_OPERATORS_MAX: usize = 256;
/// How deep the tree of an expression may be, whatever makes it so.
pub const EXPRESSION_TREE_MAX: usize = 320;
/// How deep the macros that go over lists may stand inside each other.
pub const EXPRESSION_LOOPS_MAX: usize = 2;
/// What all that one request, or one step of a run, evaluates may cost together, in units: a number or an element is
/// one, 8 bytes of text are one.
pub const EXPRESSION_COST_MAX: u64 = 2_000_000;
/// How long a request or a step waits for the evaluation of an expression.
pub const EXPRESSION_TIME_MAX: Millis = Millis::from_secs(10);
/// How long a request waits for others' evaluations before its own begins.
pub const EXPRESSION_QUEUE_TIME_MAX: Millis = Millis::from_secs(10);

pub const RUN_TIMEOUT_MAX: Millis = Millis::from_hours(24 * 366 * 10);
pub const BACKOFF_MAX: Millis = Millis::from_hours(24);
pub const WAIT_MAX: Millis = RUN_TIMEOUT_MAX;

/// The lease of a worker session, and how often it is renewed.
pub const SESSION_LEASE: Millis = Millis::from_secs(20);
pub const SESSION_RENEWAL: Millis = Millis::from_secs(5);
/// How long a worker that has lost its lease may take to end what it runs.
pub const WORKER_STOP_GRACE: Millis = Millis::from_secs(5);
/// How long a request that was begun before that may be on its way, until the target has it or it is lost.
pub const EFFECT_SEND_TIMEOUT: Millis = Millis::from_secs(30);
/// For clocks that do not run alike.
pub const EFFECT_SETTLE_MARGIN: Millis = Millis::from_secs(5);
/// How long after the end of its worker's lease an effect may still happen. That it did not is believed only then.
pub const EFFECT_SETTLES_AFTER: Millis = Millis(WORKER_STOP_GRACE.0 + EFFECT_SEND_TIMEOUT.0 + EFFECT_SETTLE_MARGIN.0);
/// How long a step is kept from the next worker after one did not know its task; twice as long each time.
pub const UNKNOWN_TASK_PAUSE: Millis = Millis::from_secs(1);
pub const UNKNOWN_TASK_PAUSE_MAX: Millis = Millis::from_secs(10);
/// How long a worker may take to answer the offer of a run.
pub const ASSIGNMENT_ACK: Millis = Millis::from_secs(5);
/// How often a worker is looked for before the run fails, unless the operator says otherwise.
pub const ASSIGNMENT_ATTEMPTS: u32 = 3;
/// How long the first of these attempts looks for a worker, and the pause after one that did not answer.
pub const ASSIGNMENT_BACKOFF: Millis = Millis::from_secs(5);
/// How many times as long each of them is as the one before.
pub const ASSIGNMENT_BACKOFF_FACTOR: u64 = 3;
/// How long a run that waits for something else keeps its worker, unless it says `workdir: keep`.
pub const ASSIGNMENT_KEPT: Millis = Millis::from_mins(2);
/// How long a worker with a fault is given no command and no run, and one that was offline is asked after others.
pub const WORKER_FAULT_PAUSE: Millis = Millis::from_mins(1);
/// So many assignments lost in a row are a fault of the worker.
pub const ASSIGNMENTS_LOST_MAX: u32 = 3;
/// How long an operator's maintenance of a worker may be set to last.
pub const MAINTENANCE_MAX: Millis = Millis::from_hours(24 * 366);
/// Workers that an explanation names because they are passed over.
pub const SKIPPED_WORKERS_MAX: usize = 16;
/// How long an approval stays open, how long a grant may stay unused.
pub const APPROVAL_EXPIRES_AFTER: Millis = Millis::from_hours(24);
pub const APPROVAL_ESCALATE_PROD: Millis = Millis::from_mins(10);
pub const APPROVAL_ESCALATE_OTHER: Millis = Millis::from_mins(30);
pub const GRANT_TTL: Millis = Millis::from_hours(1);
/// How far the clocks of two servers may be apart without a decision coming out otherwise. Each follows the database's
/// clock to within a few dozen milliseconds.
pub const CLOCK_SKEW_TOLERATED: Millis = Millis(500);
/// Early signals are kept this long for a wait to come.
pub const SIGNAL_KEPT: Millis = Millis::from_hours(24);
/// Idempotency records: completed, failed, and the lock while processing.
pub const IDEMPOTENCY_COMPLETED_TTL: Millis = Millis::from_hours(24);
pub const IDEMPOTENCY_FAILED_TTL: Millis = Millis::from_hours(1);
pub const IDEMPOTENCY_LOCK: Millis = Millis::from_mins(5);
/// A request that is worked on holds its key for this long and renews that while it goes on: when its server dies, the
/// key is free soon after.
pub const IDEMPOTENCY_REQUEST_LOCK: Millis = Millis::from_secs(10);
pub const IDEMPOTENCY_RENEW_EVERY: Millis = Millis::from_secs(3);
const _: () = assert!(IDEMPOTENCY_RENEW_EVERY.0 * 3 < IDEMPOTENCY_REQUEST_LOCK.0);
pub const IDEMPOTENCY_ATTEMPTS_MAX: u32 = 3;
/// A worker continues one run for at most this many steps, or this long, while others wait.
pub const CONTINUE_STEPS_MAX: u32 = 16;
pub const CONTINUE_TIME_MAX: Millis = Millis(250);
/// A run whose running step has not been renewed for this long, and for two leases, counts as orphaned.
pub const ORPHANED_AFTER: Millis = Millis::from_mins(5);
/// The longest lease of a session that may be set.
pub const SESSION_LEASE_MAX: Millis = Millis::from_hours(24);
/// How much later than it is due a heartbeat may come: after a renewal and this its worker is late, after two and this it is silent.
pub const HEARTBEAT_GRACE: Millis = Millis::from_secs(1);

const _: () = assert!(SESSION_RENEWAL.0 * 3 < SESSION_LEASE.0, "a session must survive two lost renewals");
const _: () = assert!(STEPS_PER_WORKFLOW_MAX <= i32::MAX as usize);
const _: () = assert!(ERROR_BYTES_MAX < PAYLOAD_BYTES_MAX);

/// The longest command, with its variables; the sandbox takes no longer one.
pub const ARGUMENTS_MAX: usize = 1_024;
pub const VARIABLES_MAX: usize = 128;
pub const COMMAND_BYTES_MAX: usize = 64 << 10;

/// Workers whom the policy has kept from a step that are noted on its run, of those whose sessions live. Who is refused beyond them is
/// kept away by the server that has heard the decision.
pub const REFUSED_WORKERS_MAX: usize = 64;
/// How much of the reason is noted; the decision has all of it.
pub const REFUSED_WORKER_CHARS_MAX: usize = 512;

/// Receipts of one rollback step that are noted on its run; all of them are in the run's receipts.
pub const COMPENSATION_RECEIPTS_MAX: usize = 32;

/// Decisions of one run that are shown.
pub const DECISIONS_SHOWN_MAX: usize = 1_000;

/// Output of a step: one chunk, one batch of chunks, and what is kept of an attempt unless the operator says otherwise.
pub const OUTPUT_CHUNK_BYTES_MAX: usize = 16 << 10;
pub const OUTPUT_BATCH_BYTES_MAX: usize = 256 << 10;
pub const OUTPUT_BATCH_CHUNKS_MAX: usize = 256;
pub const OUTPUT_KEPT_BYTES: u64 = 16 << 20;
/// What the worker and the server say about it, which is kept beside that.
pub const OUTPUT_STATUS_BYTES_MAX: u64 = 16 << 10;
