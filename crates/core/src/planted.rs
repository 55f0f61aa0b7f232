//! Known-bad variants of the system, for the simulation to find: a checker that has never caught anything proves
//! nothing. Without the feature `planted`, which only the simulation switches on, [`is_planted`] is a constant `false`
//! and nothing of this is left in the binary.

macro_rules! bugs {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// A mistake that a programmer could make here.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Bug { $($(#[$doc])* $name),+ }

        impl Bug {
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
        }
    };
}

bugs! {
    /// A report of an attempt that is over is taken for one of the current attempt.
    NoFence,
    /// A claim does not raise the attempt.
    AttemptNotRaised,
    /// A worker may perform before its intent is committed.
    IntentNotCommitted,
    /// A lost worker's unsafe effect is tried again.
    BlindRetry,
    /// The key of an effect changes with the attempt.
    KeyPerAttempt,
    /// Failures are not charged to the retry budget.
    BudgetNotCharged,
    /// A retry of an operator stays in the old iteration.
    IterationNotRaised,
    /// A failed step counts as good when the run's state is projected.
    FailedIsGood,
    /// A cancel ends the step under a worker that still runs it.
    CancelForgetsAttempt,
    /// A wait that timed out stays open for signals.
    WaitLeftOpen,
    /// Steps are undone oldest first.
    RollbackInOrder,
    /// The oldest step is not undone.
    RollbackLeavesOneOut,
    /// Messages to the outside are not written with the change.
    OutboxForgotten,
    /// A ready run is neither hinted nor found by the scan.
    LostWakeUp,
    /// A claim takes whatever step the run stands at, of any queue.
    AnyQueue,
    /// A signal looks for its wait before it is stored, and no later check matches it.
    SignalNotMatched,
    /// The tenant's cap is not looked at in the claiming transaction.
    CapNotChecked,
    /// The workflow's limits are not looked at in the claiming transaction.
    WorkflowCapNotChecked,
    /// A subject goes to the run that came last, and the guard of the order does not refuse.
    QueueOvertaken,
    /// A start that becomes a signal is acknowledged and not stored.
    StartSignalLost,
    /// The guard of the idempotency key does not refuse.
    DuplicateStart,
    /// A commit whose answer was lost is written again.
    CommittedTwice,
    /// Commands on one run are not kept apart, and two sets of it are written by one statement, which takes one of them
    /// and answers for both.
    TwoSetsOfOneRun,
    /// The sealer forgets an event when there are several.
    FeedSkips,
    /// The sealer's position in a lane goes past what the lane has committed.
    FeedPastUncommitted,
    /// A gate that was not approved is skipped by any caller who asks.
    GateSkipped,
    /// A run or an iteration that runs a guarded step again keeps the approval of the one before.
    ApprovalInherited,
    /// A guarded step is given another input, and its approvers are not asked again.
    ChangedInputNotAsked,
    /// A step begins whose condition is false.
    ConditionIgnored,
    /// A restore leaves the epoch as it was.
    EpochNotRaised,
    /// On PostgreSQL a run's row is written whatever its version.
    VersionNotGuarded,
    /// On PostgreSQL a tenant's limits are looked at without a lock, by two servers at once.
    LimitsNotLocked,
    /// On PostgreSQL a group whose answer was lost is written again.
    GroupWrittenAgain,
    /// On PostgreSQL a bounded round of sealing takes the groups with the oldest instants.
    SealedByInstant,
    /// A set that waits for another server's lock is answered as if it were committed.
    BlockedIsAnswered,
    /// A later set of a run overtakes the one that waits for a lock.
    BlockedIsOvertaken,
    /// A database that failed over is taken for the one before.
    TimelineNotNoticed,
    /// That an effect did not happen is believed as soon as its attempt has ended, also where the server ended it.
    NotHappenedTooEarly,
    /// A wait compares the instants of two servers as if they had one clock.
    SkewNotTolerated,
    /// A report that comes after a person has resolved the doubt is answered as if it had been recorded.
    ReportAfterResolveTaken,
    /// A worker whose session is over may not say what became of its effect.
    LateOutcomeRefused,
    /// A run that cannot be read ends the round of whichever loop meets it.
    UnreadableStopsLoops,
    /// A throttle that is over makes the scan read the store again and again.
    ScanSpins,
    /// A server that starts on an interrupted restore does not finish it.
    RestoreNotFinished,
    /// A page of the feed that holds only swept events does not move the cursor.
    FeedStopsBehindSwept,
    /// Two runs may continue the same one.
    TwoSuccessors,
    /// A long payload is recorded and not written.
    PayloadForgotten,
    /// A server that knows a run as it was goes by that, and leaves the run's step to others for ever.
    StaleMismatch,
    /// A bulk job leaves out a run of each batch, and counts it.
    BulkLeavesOneOut,
    /// A slot that is looked at again, after a crash or by a second server, is started under another key.
    SlotStartedTwice,
    /// A schedule does not look whether its run before has ended.
    OverlapNotHeld,
    /// Slots that passed while no server was there are left out.
    SlotsNotMadeUp,
    /// A schedule that is resumed forgets the slots that wait for the run before them.
    ResumeForgetsQueue,
    /// Runs that a limit holds back count as more to be read, and are read again and again.
    HeldRunsReadAgain,
    /// A webhook's delivery id is not remembered: a repeat is another delivery.
    DeliveryNotRemembered,
    /// A delivery whose server has died is left where it is.
    DeliveryNotTakenOver,
    /// The relay sends one message at a time: an endpoint that is slow holds up all others.
    EndpointsHoldEachOtherUp,
    /// The last of several events is not queued for the endpoints that want it.
    EventNotPublished,
    /// Of a run's events the latest goes out first.
    LatestEventFirst,
    /// A message that its endpoint refused counts as delivered.
    RefusalIsDelivery,
    /// Of several dead letters that are replayed only the first is queued.
    OneDeadLetterReplayed,
    /// A worker that does not name its effects is given an unsafe step without an intent.
    ClaimWithoutIntent,
    /// A poll is given all that was claimed for its session, whatever it asked for.
    PollIgnoresMax,
    /// On PostgreSQL a receipt is written whatever its state is.
    ReceiptNotGuarded,
    /// A task that was refused by what it calls ends its run as denied by the policy, or as rejected by people.
    RefusalIsDecision,
    /// A run whose approval expired ends as one that people have rejected.
    ExpiryIsRejection,
    /// A run that stands at a refused approval can be resumed as it is, without a directive.
    ResumedPastRefusal,
    /// An approval that is refused while its run is paused stays open for further votes.
    RefusalForgottenWhilePaused,
}

#[cfg(feature = "planted")]
mod planting {
    use super::Bug;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Puts a bug into everything that runs on this thread, or takes it out again.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.set(bug);
    }

    pub fn is_planted(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }
}

#[cfg(feature = "planted")]
pub use planting::{is_planted, plant};

#[cfg(not(feature = "planted"))]
pub const fn is_planted(_: Bug) -> bool {
    false
}
