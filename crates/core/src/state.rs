//! The canonical state names: one enum a machine, one word a state, the same in code, tables, JSON and pages.
//! The data that exists only in a state lives in the variants of [`crate::run::Phase`]; these are the names.

use std::fmt;
use std::str::FromStr;

/// A word that stands for no value of the wanted set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {} {what}; expected one of {expected}", if .what.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" })]
pub struct UnknownName {
    pub text: String,
    pub what: &'static str,
    pub expected: String,
}

/// A closed set of names, with the list of all of them for tables, checks and docs. The texts are `tt`, because the
/// describing derive does not look into the invisible group that a `literal` comes in.
macro_rules! names {
    ($(#[$doc:meta])* $name:ident, $what:literal, { $($(#[$vdoc:meta])* $variant:ident = $text:tt),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownName;

            fn from_str(text: &str) -> Result<Self, UnknownName> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    _ => Err(UnknownName {
                        text: text.chars().take(80).collect(),
                        what: $what,
                        expected: [$($text),+].join(", "),
                    }),
                }
            }
        }
    };
}
pub(crate) use names;

names!(
    /// The state of a run: always the projection of its control, steps and rollback.
    RunState, "run state", {
        /// Admitted; nothing started.
        Pending = "pending",
        /// A step is ready or running.
        Running = "running",
        /// Only a human blocks it.
        WaitingApproval = "waiting_approval",
        /// Only a signal or timer blocks it.
        WaitingSignal = "waiting_signal",
        /// An operator's directive is needed.
        Paused = "paused",
        /// Rollback steps are outstanding.
        RollingBack = "rolling_back",
        /// Every forward step succeeded or was skipped.
        Succeeded = "succeeded",
        /// Ended by failure, denial or rejection; rollback, if any, has ended.
        Failed = "failed",
        /// Stopped on request.
        Canceled = "canceled",
    }
);

impl RunState {
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Canceled)
    }
}

names!(
    /// The state of a step.
    StepState, "step state", {
        /// Inserted, not yet activated.
        Pending = "pending",
        /// Claimable once `eligible_at` has come.
        Ready = "ready",
        /// Claimed; the attempt is at least 1.
        Running = "running",
        /// An open approval blocks it.
        WaitingApproval = "waiting_approval",
        /// A signal or a deadline wakes it.
        WaitingSignal = "waiting_signal",
        /// An effect was sent, its outcome is unknown.
        InDoubt = "in_doubt",
        /// Output and receipts stored.
        Succeeded = "succeeded",
        /// Condition false, or skipped by an operator with a reason.
        Skipped = "skipped",
        /// Terminal error, denial, rejection, or budget exhausted.
        Failed = "failed",
        /// The run was canceled first.
        Canceled = "canceled",
        /// Its rollback step succeeded.
        RolledBack = "rolled_back",
    }
);

impl StepState {
    /// Finished: only a rollback, or an operator on a paused run, can still change it.
    pub const fn is_finished(self) -> bool {
        matches!(self, Self::Succeeded | Self::Skipped | Self::Failed | Self::Canceled | Self::RolledBack)
    }
}

names!(
    /// What an operator has asked of the run as a whole, orthogonal to its steps.
    Control, "control", {
        Active = "active",
        Paused = "paused",
        /// A cancel was decided; a live attempt has not acknowledged yet.
        Canceling = "canceling",
        Canceled = "canceled",
    }
);

names!(
    /// The state of an approval. Nothing expires into an approval: that arrow does not exist.
    ApprovalState, "approval state", {
        Requested = "requested",
        Approved = "approved",
        Rejected = "rejected",
        Expired = "expired",
        Canceled = "canceled",
    }
);

names!(
    /// The state of a receipt: the durable record of one effect.
    ReceiptState, "receipt state", {
        Intent = "intent",
        Succeeded = "succeeded",
        Failed = "failed",
        InDoubt = "in_doubt",
    }
);

names!(
    /// The state of a worker; idle, assigned and executing are derived from what it holds.
    WorkerState, "worker state", {
        Online = "online",
        Draining = "draining",
        /// An operator keeps new work from it for a while. No row says so: it follows from the session's `maintenance`.
        Maintenance = "maintenance",
        /// A failed canary, attestation or preflight, or three lost assignments in a row.
        Errored = "errored",
        Offline = "offline",
    }
);

names!(
    /// What has failed on a worker that is `errored`.
    FaultCheck, "fault of a worker", {
        /// A control of its sandbox, tried out again.
        Canary = "canary",
        /// A command's confinement could not be set up, or was not attested.
        Attestation = "attestation",
        /// Its sandbox, before it took a run.
        Sandbox = "sandbox",
        /// The directory for a run.
        Workdir = "workdir",
        /// Where its credentials come from could not be reached.
        Credentials = "credentials",
        /// It has lost several assignments in a row.
        Assignments = "assignments",
    }
);

names!(
    /// The state of an assignment: one offer of a run to one worker session.
    AssignmentState, "assignment state", {
        /// The worker was asked, and checks whether it could.
        Offered = "offered",
        /// The run is this worker's.
        Acked = "acked",
        /// The run has ended, or has waited too long to keep its worker.
        Released = "released",
        /// A check of the worker has failed.
        Refused = "refused",
        /// The worker did not answer in time.
        Expired = "expired",
        /// The worker's session is over.
        Lost = "lost",
    }
);

names!(
    /// What a worker looks at before it takes a run.
    PreflightCheck, "preflight check", {
        /// Whether it runs commands under the run's profile, and its host can.
        Sandbox = "sandbox",
        /// Whether it can make and keep the run's directory.
        Workdir = "workdir",
        /// Whether its own lists let every command through.
        Commands = "commands",
        /// Whether every credential can be had.
        Credentials = "credentials",
    }
);

names!(
    /// What makes a repeated request one request.
    IdempotencyState, "idempotency record state", {
        Processing = "processing",
        Completed = "completed",
        Failed = "failed",
    }
);

names!(
    /// What kind of work a step is.
    StepKind, "step kind", {
        /// User code on a worker.
        Task = "task",
        /// A sandboxed command.
        Command = "command",
        /// A call to a system.
        Connector = "connector",
        /// A call to a language model.
        Model = "model",
        /// A pure expression.
        Transform = "transform",
        /// A pure gate.
        Approval = "approval",
        /// A signal or a timer.
        Wait = "wait",
        /// Undoes another step.
        Rollback = "rollback",
    }
);

names!(
    /// How safe it is to perform a step's effect again.
    EffectClass, "effect class", {
        /// Changes nothing.
        Read = "read",
        /// A repeat has the same result.
        Idempotent = "idempotent",
        /// The target drops repeats that carry the same key.
        Keyed = "keyed",
        /// A repeat is a second effect.
        Unsafe = "unsafe",
    }
);

names!(
    /// Who or what caused a transition.
    Initiator, "initiator", {
        User = "user",
        System = "system",
        Timeout = "timeout",
        Policy = "policy",
        Webhook = "webhook",
        Approval = "approval",
        Operator = "operator",
    }
);

names!(
    /// What became of a request to start a run.
    Admission, "admission", {
        Started = "started",
        /// Another run holds the subject; this one waits for its turn.
        Queued = "queued",
        /// Another run holds the subject and got a signal; there is no new run.
        Signaled = "signaled",
    }
);

names!(
    /// Why a claimed step is being run.
    TaskType, "task type", {
        Execute = "EXECUTE",
        Signal = "SIGNAL",
        WaitingTimeout = "WAITING_TIMEOUT",
    }
);

names!(
    /// Why a run ended or stopped, beside its state.
    Reason, "reason", {
        StepFailed = "step_failed",
        FailedAssignment = "failed_assignment",
        AssignmentError = "assignment_error",
        PolicyDenied = "policy_denied",
        PolicyUnavailable = "policy_unavailable",
        ApprovalRejected = "approval_rejected",
        ApprovalExpired = "approval_expired",
        WaitTimeout = "wait_timeout",
        Deadline = "deadline",
        Orphaned = "orphaned",
        InDoubt = "in_doubt",
        RolledBack = "rolled_back",
        RollbackFailed = "rollback_failed",
        /// What undoes a step was carried out, and its target does not show it.
        RollbackUnverified = "rollback_unverified",
        WritesExhausted = "writes_exhausted",
        SpendExhausted = "spend_exhausted",
        Backout = "backout",
        Restored = "restored",
        Requested = "requested",
    }
);

names!(
    /// The finer word on a run's state.
    Detail, "detail", {
        AssigningWorker = "assigning_worker",
        Retrying = "retrying",
        Throttled = "throttled",
        Canceling = "canceling",
        PolicyUnavailable = "policy_unavailable",
        SubjectBusy = "subject_busy",
        Orphaned = "orphaned",
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_unknown_ones_list_the_choices() {
        for state in StepState::ALL {
            assert_eq!(state.as_str().parse(), Ok(*state));
        }
        let error = "cancelling".parse::<Control>().unwrap_err().to_string();
        assert!(error.contains("active, paused, canceling, canceled"), "{error}");
    }
}
