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
    if failed.seed != known {
        println!("{bug:?}: seed {known} notices it no more. Write `by {}`, or every run searches for it.", failed.seed);
    }
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
    Bug::ReceiptNotGuarded,
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
    no_fence = NoFence by 57,
    attempt_not_raised = AttemptNotRaised,
    intent_not_committed = IntentNotCommitted,
    blind_retry = BlindRetry by 38,
    key_per_attempt = KeyPerAttempt by 7,
    budget_not_charged = BudgetNotCharged by 25,
    iteration_not_raised = IterationNotRaised by 1,
    failed_is_good = FailedIsGood by 7,
    cancel_forgets_attempt = CancelForgetsAttempt by 2,
    wait_left_open = WaitLeftOpen by 6,
    rollback_in_order = RollbackInOrder by 25,
    rollback_leaves_one_out = RollbackLeavesOneOut by 71,
    outbox_forgotten = OutboxForgotten,
    lost_wake_up = LostWakeUp,
    any_queue = AnyQueue by 5,
    signal_not_matched = SignalNotMatched,
    cap_not_checked = CapNotChecked by 1,
    workflow_cap_not_checked = WorkflowCapNotChecked by 7,
    queue_overtaken = QueueOvertaken by 125,
    start_signal_lost = StartSignalLost by 37,
    duplicate_start = DuplicateStart,
    committed_twice = CommittedTwice by 2,
    two_sets_of_one_run = TwoSetsOfOneRun by 98,
    gate_skipped = GateSkipped by 7,
    approval_inherited = ApprovalInherited,
    feed_skips = FeedSkips,
    feed_past_uncommitted = FeedPastUncommitted by 2,
    epoch_not_raised = EpochNotRaised by 32,
    late_outcome_refused = LateOutcomeRefused by 7,
    scan_spins = ScanSpins by 8,
    restore_not_finished = RestoreNotFinished by 50,
    feed_stops_behind_swept = FeedStopsBehindSwept by 14,
    payload_forgotten = PayloadForgotten by 5,
    stale_mismatch = StaleMismatch by 97,
    bulk_leaves_one_out = BulkLeavesOneOut by 42,
    condition_ignored = ConditionIgnored by 2,
    changed_input_not_asked = ChangedInputNotAsked in Gates by 9,
    not_happened_too_early = NotHappenedTooEarly in Haste by 62,
    skew_not_tolerated = SkewNotTolerated in EagerStarters by 40,
    report_after_resolve_taken = ReportAfterResolveTaken in Haste by 76,
    unreadable_stops_loops = UnreadableStopsLoops in UnreadableRows by 25,
    two_successors = TwoSuccessors by 4,
    slot_started_twice = SlotStartedTwice in Schedules by 72,
    overlap_not_held = OverlapNotHeld in Schedules by 10,
    slots_not_made_up = SlotsNotMadeUp in Schedules by 10,
    resume_forgets_queue = ResumeForgetsQueue in Schedules by 158,
    held_runs_read_again = HeldRunsReadAgain in Rush by 51,
    delivery_not_remembered = DeliveryNotRemembered in Inbound by 1,
    delivery_not_taken_over = DeliveryNotTakenOver in Inbound by 144,
    endpoints_hold_each_other_up = EndpointsHoldEachOtherUp in Outbound by 62,
    event_not_published = EventNotPublished in Outbound by 4,
    latest_event_first = LatestEventFirst in Outbound by 4,
    refusal_is_delivery = RefusalIsDelivery in Outbound by 4,
    one_dead_letter_replayed = OneDeadLetterReplayed in Outbound by 31,
    claim_without_intent = ClaimWithoutIntent in UnnamedEffects by 5,
    poll_ignores_max = PollIgnoresMax by 12,
    refusal_is_decision = RefusalIsDecision by 13,
    expiry_is_rejection = ExpiryIsRejection by 5,
    resumed_past_refusal = ResumedPastRefusal by 9,
    refusal_forgotten_while_paused = RefusalForgottenWhilePaused by 7,
}
