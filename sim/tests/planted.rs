//! The simulation on trial: each of these mistakes is put into the real code, and it must notice. A checker that
//! catches nothing proves nothing.

use interlock_core::planted::{Bug, plant};
use interlock_sim::{Part, has_part, run_seed};

/// How many seeds it may take.
const SEEDS_MAX: u64 = 400;

/// Worlds that have not the part which the bug is in are left out: they could not notice. A seed that is known to notice is
/// tried first; where worlds have changed since, the others follow.
fn is_caught(bug: Bug, part: Option<Part>, known: u64) {
    let all = std::iter::once(known).chain((0..SEEDS_MAX).filter(|seed| *seed != known));
    let mut seeds = all.filter(|seed| part.is_none_or(|part| has_part(*seed, part)));
    plant(Some(bug));
    let caught = seeds.find_map(|seed| run_seed(seed, false).err());
    plant(None);
    let Some(failed) = caught else { panic!("{bug:?} went unnoticed through {SEEDS_MAX} seeds") };
    println!("{bug:?}: caught by seed {}, which says: {}", failed.seed, failed.what);
}

/// In the paths of PostgreSQL, which the simulation does not take; the store's own tests try them (`planted.rs`).
const ON_POSTGRES: &[Bug] = &[
    Bug::VersionNotGuarded,
    Bug::LimitsNotLocked,
    Bug::GroupWrittenAgain,
    Bug::SealedByInstant,
    Bug::BlockedIsAnswered,
    Bug::BlockedIsOvertaken,
    Bug::TimelineNotNoticed,
];

macro_rules! caught {
    (@part) => { None };
    (@part $part:ident) => { Some(Part::$part) };
    (@known) => { 0 };
    (@known $known:literal) => { $known };
    ($($name:ident = $bug:ident $(in $part:ident)? $(by $known:literal)?),+ $(,)?) => {
        $(
            #[test]
            fn $name() {
                is_caught(Bug::$bug, caught!(@part $($part)?), caught!(@known $($known)?));
            }
        )+

        #[test]
        fn every_bug_is_tried() {
            let tried = [$(Bug::$bug),+];
            assert!(Bug::ALL.iter().all(|bug| tried.contains(bug) || ON_POSTGRES.contains(bug)), "{:?}", Bug::ALL);
        }
    };
}

caught! {
    no_fence = NoFence,
    attempt_not_raised = AttemptNotRaised,
    intent_not_committed = IntentNotCommitted,
    blind_retry = BlindRetry,
    key_per_attempt = KeyPerAttempt,
    budget_not_charged = BudgetNotCharged,
    iteration_not_raised = IterationNotRaised,
    failed_is_good = FailedIsGood,
    cancel_forgets_attempt = CancelForgetsAttempt,
    wait_left_open = WaitLeftOpen,
    rollback_in_order = RollbackInOrder,
    rollback_leaves_one_out = RollbackLeavesOneOut,
    outbox_forgotten = OutboxForgotten,
    lost_wake_up = LostWakeUp,
    any_queue = AnyQueue,
    signal_not_matched = SignalNotMatched,
    cap_not_checked = CapNotChecked,
    workflow_cap_not_checked = WorkflowCapNotChecked,
    queue_overtaken = QueueOvertaken,
    start_signal_lost = StartSignalLost,
    duplicate_start = DuplicateStart,
    committed_twice = CommittedTwice,
    two_sets_of_one_run = TwoSetsOfOneRun,
    gate_skipped = GateSkipped,
    approval_inherited = ApprovalInherited,
    feed_skips = FeedSkips,
    feed_past_uncommitted = FeedPastUncommitted,
    epoch_not_raised = EpochNotRaised,
    late_outcome_refused = LateOutcomeRefused,
    scan_spins = ScanSpins,
    restore_not_finished = RestoreNotFinished,
    feed_stops_behind_swept = FeedStopsBehindSwept,
    payload_forgotten = PayloadForgotten,
    stale_mismatch = StaleMismatch,
    bulk_leaves_one_out = BulkLeavesOneOut,
    changed_input_not_asked = ChangedInputNotAsked in Gates,
    not_happened_too_early = NotHappenedTooEarly in Haste,
    skew_not_tolerated = SkewNotTolerated in EagerStarters,
    report_after_resolve_taken = ReportAfterResolveTaken in Haste,
    unreadable_stops_loops = UnreadableStopsLoops in UnreadableRows,
    two_successors = TwoSuccessors,
    slot_started_twice = SlotStartedTwice in Schedules,
    overlap_not_held = OverlapNotHeld in Schedules,
    slots_not_made_up = SlotsNotMadeUp in Schedules,
    resume_forgets_queue = ResumeForgetsQueue in Schedules,
    held_runs_read_again = HeldRunsReadAgain in Rush,
    delivery_not_remembered = DeliveryNotRemembered in Inbound,
    delivery_not_taken_over = DeliveryNotTakenOver in Inbound,
    endpoints_hold_each_other_up = EndpointsHoldEachOtherUp in Outbound,
    event_not_published = EventNotPublished in Outbound,
    latest_event_first = LatestEventFirst in Outbound,
    refusal_is_delivery = RefusalIsDelivery in Outbound,
    one_dead_letter_replayed = OneDeadLetterReplayed in Outbound,
    claim_without_intent = ClaimWithoutIntent in UnnamedEffects,
}
