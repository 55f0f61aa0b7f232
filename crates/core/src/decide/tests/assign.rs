//! Runs whose commands share a directory: one worker has the run as a whole.

use super::case::{Case, cancel, pause, reassign, retry, session};
use super::plans::{Tuned as _, gate, in_workdir, signal, task, under_profile};
use crate::decide::{Command, CommandOrigin, DecideContext, UnfitWorker, decide};
use crate::limits::{ASSIGNMENT_ACK, ASSIGNMENT_KEPT, EFFECT_SETTLES_AFTER};
use crate::machine::step::Resolution;
use crate::plan::rules::{Requires, Workdir};
use crate::plan::{OnDenial, OnFailure, Plan, control_capability};
use crate::rejection::Rejection;
use crate::run::assignment::{AssignmentRecord, AssignmentTimes, RunAssignment};
use crate::run::change::SideWrite;
use crate::run::skipped_worker::{SkipReason, SkippedWorker};
use crate::run::why::{Cause, Remedy, Surroundings, WorkerSettings, why};
use crate::state::{
    AssignmentState, Control, Detail, EffectClass, PreflightCheck, Reason, ReceiptState, RunState, StepState,
};
use crate::time::Millis;
use crate::work::controls::required_controls;
use crate::work::offer::RunOffer;
use crate::work::{Skills, WorkerTerms};

/// How long each attempt to find a worker takes, where the operator has not said.
const BACKOFF: [Millis; 3] = [Millis::from_secs(5), Millis::from_secs(15), Millis::from_secs(45)];

fn two_commands() -> Plan {
    under_profile(vec![in_workdir("write", Workdir::Run), in_workdir("read", Workdir::Run)])
}

impl Case {
    fn known(&self) -> RunAssignment {
        self.run.notes.assignment.as_deref().cloned().unwrap_or_default()
    }

    #[track_caller]
    fn offer(&mut self, number: u128) -> &mut Self {
        self.until_eligible().tell(Command::OfferRun { session: session(number), worker: format!("w{number}") })
    }

    fn ack(&self, number: u128) -> Command {
        Command::AckRun { session: session(number), number: self.known().number }
    }

    fn refusal(&self, number: u128, check: PreflightCheck) -> Command {
        let why = "it is not on my list".into();
        Command::RefuseRun { session: session(number), number: self.known().number, check, why }
    }

    #[track_caller]
    fn assign(&mut self, number: u128) -> &mut Self {
        self.offer(number).tells(|case| case.ack(number))
    }

    #[track_caller]
    fn tick(&mut self) -> &mut Self {
        self.until_wake().tell(Command::Tick)
    }

    fn records(&self) -> Vec<AssignmentRecord> {
        let of = |side: &SideWrite| match side {
            SideWrite::PutAssignment(record) => Some((**record).clone()),
            _ => None,
        };
        self.change.side.iter().filter_map(of).collect()
    }
}

fn lost(number: u128) -> Command {
    Command::AssignmentLost { session: session(number), why: "its session is over".into(), in_order: false }
}

/// An operator takes the worker out of service.
fn drained(number: u128) -> Command {
    Command::AssignmentLost { session: session(number), why: "it takes no more work".into(), in_order: true }
}

#[test]
fn a_run_is_offered_taken_and_let_go_at_its_end() {
    let mut case = Case::of(two_commands());
    assert_eq!((case.state(), case.run.detail), (RunState::Pending, Some(Detail::AssigningWorker)));
    case.offer(1);
    assert_eq!(case.names(), ["session.offered"]);
    assert_eq!(case.row().eligible_at, None, "no other worker finds it meanwhile");
    assert_eq!(case.row().wake_at, Some(case.now + ASSIGNMENT_ACK));
    assert_eq!(case.run.detail, Some(Detail::AssigningWorker));
    let offer = RunOffer::of(&case.run, 1).unwrap();
    assert_eq!((offer.number, offer.commands.len(), offer.profile.as_str()), (1, 2, "dev-flex"));
    assert!(!case.is_accepted(Command::OfferRun { session: session(2), worker: "w2".into() }));
    case.tells(|case| case.ack(1));
    assert_eq!(case.names(), ["session.assigned"]);
    assert_eq!((case.run.detail, case.run.assigned_session()), (None, Some(session(1))));
    case.refuse(Command::Claim { session: session(2) });
    case.claim().complete().claim().complete();
    assert_eq!(case.state(), RunState::Succeeded);
    let [record] = &case.records()[..] else { panic!("{:?}", case.change.side) };
    assert_eq!((record.state, record.ended_at), (AssignmentState::Released, Some(case.now)));
    assert_eq!(case.known().with, None);
}

#[test]
fn only_the_worker_that_was_asked_answers_once_and_in_time() {
    let mut case = Case::of(two_commands());
    case.offer(1);
    let over = |no: Rejection| matches!(no, Rejection::AssignmentOver { .. });
    assert!(over(case.refuse(Command::AckRun { session: session(2), number: 1 })), "another worker's");
    assert!(over(case.refuse(Command::AckRun { session: session(1), number: 2 })), "another offer");
    let mut late = case.clone();
    late.after(ASSIGNMENT_ACK);
    assert!(over(late.refuse(late.ack(1))), "too late");
    case.tells(|case| case.ack(1));
    assert!(over(case.refuse(case.ack(1))), "twice");
    assert!(over(case.refuse(case.refusal(1, PreflightCheck::Sandbox))), "after it was taken");
}

#[test]
fn one_that_does_not_answer_is_followed_by_others_with_pauses_until_the_run_fails() {
    let mut case = Case::of(two_commands());
    for attempt in 0..3 {
        case.offer(attempt + 1).tick();
        let known = case.known();
        assert_eq!(known.with, None);
        if attempt < 2 {
            assert_eq!(known.failures.len(), attempt as usize + 1);
            assert_eq!(case.row().eligible_at, Some(case.now + BACKOFF[attempt as usize]));
            assert_eq!(case.names(), ["session.unassigned"]);
        }
    }
    assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::FailedAssignment)));
    let error = case.step(0).last_error.clone().unwrap();
    assert_eq!(error.code, "ASSIGNMENT_FAILED");
    for worker in ["w1", "w2", "w3"] {
        assert!(error.message.contains(worker), "{}", error.message);
    }
}

#[test]
fn nobody_there_costs_an_attempt_and_busy_workers_do_not() {
    let mut case = Case::of(two_commands());
    for wait in BACKOFF {
        let begins = case.now;
        case.tick();
        assert_eq!(case.now, begins + wait);
    }
    assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::FailedAssignment)));
}

#[test]
fn attempts_are_as_many_as_are_set_and_each_is_three_times_as_long_as_the_one_before() {
    assert_eq!(AssignmentTimes::default().backoff, BACKOFF);
    let backoff = AssignmentTimes::growing(Millis(100), 4);
    assert_eq!(backoff, [100, 300, 900, 2_700].map(Millis));
    let times = AssignmentTimes { backoff, ..AssignmentTimes::default() };
    assert_eq!((times.attempts_max(), times.backoff_after(1)), (4, Millis(300)));
    // A run may have failed more often under other settings.
    assert_eq!(times.backoff_after(7), Millis(2_700));
    let case = Case::of(two_commands());
    let settings = WorkerSettings { assignment_attempts: 4, ..WorkerSettings::default() };
    let explained = why(&case.run, case.now, Surroundings { settings, ..Surroundings::default() });
    assert!(matches!(explained.because[..], [Cause::Assigning { attempts_max: 4, .. }]), "{explained:?}");
}

#[test]
fn a_failed_check_asks_the_next_worker_at_once_and_names_the_check_in_the_end() {
    let mut case = Case::of(under_profile(vec![in_workdir("a", Workdir::Run).when_failed(OnFailure::Pause)]));
    case.offer(1).tells(|case| case.refusal(1, PreflightCheck::Commands));
    assert_eq!(case.row().eligible_at, Some(case.now));
    assert!(!case.is_accepted(Command::OfferRun { session: session(1), worker: "w1".into() }), "it has said no");
    case.offer(2).tells(|case| case.refusal(2, PreflightCheck::Credentials));
    let explained = why(&case.run, case.now, Surroundings { workers: Some(0), ..Surroundings::default() });
    let [Cause::Assigning { failures, attempts_max: 3, .. }] = &explained.because[..] else { panic!("{explained:?}") };
    assert_eq!(failures[0].to_string(), "w1: commands: it is not on my list");
    assert_eq!(explained.next, [Remedy::StartWorker, Remedy::Cancel]);
    case.offer(3).tells(|case| case.refusal(3, PreflightCheck::Workdir));
    assert_eq!((case.state(), case.run.reason), (RunState::Paused, Some(Reason::AssignmentError)));
    assert!(case.step(0).last_error.as_ref().unwrap().message.contains("w2: credentials: "));
    let explained = why(&case.run, case.now, Surroundings::default());
    assert!(explained.next.contains(&Remedy::Reassign), "{explained:?}");
    assert!(explained.because.iter().any(|cause| matches!(cause, Cause::Assigning { .. })));
    case.tell(reassign());
    assert_eq!((case.run.control, case.run.detail), (Control::Active, Some(Detail::AssigningWorker)));
    assert_eq!(case.known().failures, []);
    case.assign(1).claim().complete();
    assert_eq!(case.state(), RunState::Succeeded);
}

#[test]
fn a_worker_lost_between_steps_loses_the_run_and_another_is_looked_for() {
    let mut case = Case::of(two_commands());
    case.assign(1).claim().complete();
    case.tell(lost(1));
    assert_eq!(case.names(), ["session.unassigned"]);
    assert_eq!(case.records()[0].state, AssignmentState::Lost);
    assert_eq!((case.state(), case.run.detail), (RunState::Running, Some(Detail::AssigningWorker)));
    case.refuse(Command::Claim { session: session(1) });
    case.assign(2).until_eligible();
    case.tell(Command::Claim { session: session(2) }).complete();
    assert_eq!(case.state(), RunState::Succeeded);
}

#[test]
fn what_an_operator_keeps_from_workers_costs_no_attempt() {
    let mut case = Case::of(two_commands());
    case.offer(1).tells(|case| case.refusal(1, PreflightCheck::Commands)).tick();
    assert_eq!(case.known().failures.len(), 2);
    case.held = Some("a flag is off".into());
    for _ in 0..5 {
        case.tick();
        assert_eq!((case.state(), case.run.detail), (RunState::Pending, Some(Detail::AssigningWorker)));
        assert_eq!(case.names(), ["session.unassigned"]);
        assert_eq!(case.known().failures.len(), 1, "the time without workers counts no more");
        assert!(case.run.was_refused_by(session(1)), "whom it has asked in vain it does not ask again");
    }
    assert!(case.row().eligible_at.is_some_and(|at| at <= case.now), "who may have it again finds it at once");
    // From then on a time without workers counts as ever.
    case.held = None;
    case.tick().tick();
    assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::AssignmentError)));
}

#[test]
fn a_run_whose_worker_is_taken_out_of_service_waits_for_another() {
    let mut case = Case::of(two_commands());
    case.assign(1).claim().complete().tell(drained(1));
    assert_eq!((case.known().with, case.records()[0].state), (None, AssignmentState::Lost));
    for _ in 0..2 * BACKOFF.len() {
        case.tick();
        assert_eq!((case.state(), case.known().failures.len()), (RunState::Running, 0));
    }
    let explained = why(&case.run, case.now, Surroundings { workers: Some(0), ..Surroundings::default() });
    let [Cause::Assigning { left_by: Some(worker), waits: true, .. }] = &explained.because[..] else {
        panic!("{explained:?}")
    };
    assert_eq!(worker, "w1");
    case.assign(2);
    assert_eq!(case.known().left_by, None);
    // One that was lost is waited for no longer than ever.
    case.tell(lost(2));
    for _ in BACKOFF {
        case.tick();
    }
    assert_eq!(case.run.reason, Some(Reason::FailedAssignment));
}

#[test]
fn an_offer_that_is_taken_back_is_no_attempt() {
    let mut case = Case::of(two_commands());
    for number in 1..=4 {
        case.offer(number).tell(drained(number));
        assert_eq!((case.state(), case.known().failures.len()), (RunState::Pending, 0));
    }
    for number in 5..=7 {
        case.offer(number).tell(lost(number));
    }
    assert_eq!(case.run.reason, Some(Reason::FailedAssignment));
}

#[test]
fn an_explanation_names_the_flag_that_keeps_workers_from_the_run_and_not_from_one_that_a_worker_has() {
    let mut case = Case::of(two_commands());
    let around = |workers| Surroundings { workers: Some(workers), only_embedded: true, ..Surroundings::default() };
    let explained = why(&case.run, case.now, around(0));
    let [Cause::Assigning { only_embedded: true, waits: true, .. }] = &explained.because[..] else {
        panic!("{explained:?}")
    };
    assert_eq!(explained.next, [Remedy::SwitchOn, Remedy::Cancel]);
    case.assign(1);
    let explained = why(&case.run, case.now, around(1));
    assert!(matches!(explained.because[..], [Cause::Unclaimed { only_embedded: false, .. }]), "{explained:?}");
}

#[test]
fn a_worker_lost_in_a_command_stops_the_run_until_somebody_reassigns_it() {
    let step = in_workdir("a", Workdir::Run).effect(EffectClass::Idempotent).attempts(5);
    let mut case = Case::of(under_profile(vec![step]));
    case.assign(1).claim();
    assert!(matches!(case.refuse(lost(1)), Rejection::AssignmentOver { .. }), "the lease of the step comes first");
    case.tells(Case::lease_expired);
    assert_eq!((case.state(), case.step(0).state()), (RunState::Paused, StepState::Failed));
    assert!(matches!(case.refuse(Command::Resume), Rejection::DirectiveDue { .. }));
    let explained = why(&case.run, case.now, Surroundings::default());
    assert!(explained.because.iter().any(|cause| matches!(cause, Cause::WorkerLost { .. })), "{explained:?}");
    assert_eq!(explained.next.first(), Some(&Remedy::Reassign));
    case.refuse(Command::Reassign { reason: " ".into() });
    case.tell(reassign());
    assert!(!case.known().lost_in_step);
    case.assign(2).until_eligible();
    case.tell(Command::Claim { session: session(2) }).complete();
    assert_eq!(case.state(), RunState::Succeeded);
}

#[test]
fn an_open_effect_of_a_lost_worker_stays_in_doubt() {
    let mut case = Case::of(under_profile(vec![in_workdir("a", Workdir::Run)]));
    case.assign(1).claim().tells(|case| case.intent(EffectClass::Unsafe)).tells(Case::lease_expired);
    assert_eq!((case.state(), case.step(0).state()), (RunState::Paused, StepState::InDoubt));
    assert_eq!(case.known().with, None);
    let no = case.refuse(reassign());
    assert!(matches!(&no, Rejection::ReassignedInDoubt { step, .. } if step == "a"), "{no}");
    let settles = format!("interlock run resolve {} --step a --outcome did-not-happen", case.run.id);
    assert!(no.to_string().contains(&settles), "{no}");
    let explained = why(&case.run, case.now, Surroundings::default());
    assert!(matches!(explained.because[..], [Cause::Doubt { .. }, Cause::WorkerLost { .. }]), "{explained:?}");
    assert_eq!(explained.next, [Remedy::Resolve, Remedy::Cancel]);
}

#[test]
fn a_run_that_is_not_reassigned_says_why() {
    let told = |case: &mut Case, words: &str| {
        let no = case.refuse(reassign()).to_string();
        assert!(no.contains(words), "{no}");
    };
    told(&mut Case::of(under_profile(vec![task("t")])), "is for any worker");
    let mut case = Case::of(two_commands());
    case.offer(1);
    told(&mut case, "a worker is asked whether it takes the run");
    case.tells(|case| case.ack(1)).claim();
    told(&mut case, "its worker is running the step");
    case.complete().tell(lost(1)).tell(pause());
    told(&mut case, "once it is resumed, one is where it has none");
    case.tell(Command::Resume).tell(reassign());
}

/// Whatever the resolution is, the directory is gone: only a person has the command run elsewhere.
#[test]
fn what_was_in_doubt_is_not_run_elsewhere_unless_somebody_reassigns_it() {
    let doubtful = || {
        let mut case = Case::of(under_profile(vec![in_workdir("a", Workdir::Run)]));
        case.assign(1).claim().tells(|case| case.intent(EffectClass::Unsafe)).tells(Case::lease_expired);
        case
    };
    let mut by_person = doubtful();
    by_person.after(EFFECT_SETTLES_AFTER);
    let (resolution, reason) = (Resolution::DidNotHappen, "looked it up".to_owned());
    by_person.tell(Command::Resolve { position: 0, resolution, output: None, reason });
    let mut by_its_worker = doubtful();
    by_its_worker.tells(|case| case.outcome(ReceiptState::Failed));
    for mut case in [by_person, by_its_worker] {
        assert_eq!((case.state(), case.step(0).state()), (RunState::Paused, StepState::Failed));
        case.tell(reassign()).assign(2).until_eligible();
        case.tell(Command::Claim { session: session(2) }).complete();
        assert_eq!(case.state(), RunState::Succeeded);
    }
}

#[test]
fn a_run_that_waits_gives_its_worker_up_unless_it_keeps_it() {
    let steps = |rule| under_profile(vec![in_workdir("a", rule), signal("w", None), in_workdir("b", rule)]);
    let mut case = Case::of(steps(Workdir::Run));
    case.assign(1).claim().complete();
    assert_eq!(case.row().wake_at, Some(case.now + ASSIGNMENT_KEPT));
    case.tick();
    assert_eq!(case.records()[0].state, AssignmentState::Released);
    case.tells(|case| case.wake("1"));
    assert_eq!(case.run.detail, Some(Detail::AssigningWorker));
    let mut kept = Case::of(steps(Workdir::Keep));
    kept.assign(1).claim().complete();
    assert_eq!(kept.row().wake_at, None);
    kept.after(ASSIGNMENT_KEPT).tells(|case| case.wake("1"));
    assert_eq!((kept.run.assigned_session(), kept.run.detail), (Some(session(1)), None));
    // A short wait costs nothing either.
    let mut short = Case::of(steps(Workdir::Run));
    short.assign(1).claim().complete().after(Millis(10)).tells(|case| case.wake("1"));
    assert_eq!((short.run.assigned_session(), short.row().wake_at), (Some(session(1)), None));
}

#[test]
fn a_reassign_passes_the_guard_of_a_gate() {
    let mut case = Case::of(under_profile(vec![gate("ok", OnDenial::Pause), in_workdir("a", Workdir::Run)]));
    case.tells(|case| case.vote("bob", true));
    case.assign(1).claim().tells(Case::lease_expired).tell(reassign());
    assert_eq!(case.state(), RunState::WaitingApproval, "the people who let it happen are asked again");
    case.refuse(reassign());
    case.tells(|case| case.vote("bob", true));
    assert_eq!(case.run.detail, Some(Detail::AssigningWorker));
}

#[test]
fn reassign_is_for_runs_that_need_a_worker() {
    case_of_task_refuses();
    let mut case = Case::of(two_commands());
    case.offer(1).tick().tell(reassign());
    assert_eq!((case.known().failures, case.row().eligible_at), (vec![], Some(case.now)), "it begins anew, at once");
    case.assign(1).tell(reassign());
    assert_eq!(case.known().with, None, "one that sits on it does not keep it");
    case.assign(1).claim();
    case.refuse(reassign());
}

fn case_of_task_refuses() {
    let mut case = Case::of(under_profile(vec![task("t")]));
    case.refuse(reassign());
    case.claim().tells(Case::lease_expired);
    case.refuse(reassign());
}

#[test]
fn what_ends_or_stops_a_run_ends_its_search() {
    let mut case = Case::of(two_commands());
    case.offer(1).tell(pause());
    assert_eq!(case.row().wake_at, Some(case.now + ASSIGNMENT_ACK), "the worker is still asked");
    case.tick();
    assert_eq!(case.row().wake_at, None, "a paused run looks for no worker");
    case.tell(Command::Resume);
    assert!(case.row().wake_at.is_some());
    case.offer(2).tell(cancel(false));
    assert_eq!(case.records()[0].state, AssignmentState::Released);
    assert_eq!(case.state(), RunState::Canceled);
    let mut failed = Case::of(two_commands());
    failed.assign(1).claim().dies();
    assert_eq!((failed.state(), failed.records()[0].state), (RunState::Failed, AssignmentState::Released));
    let mut again = Case::of(under_profile(vec![in_workdir("a", Workdir::Run).when_failed(OnFailure::Pause)]));
    again.assign(1).claim().dies().tell(retry());
    assert_eq!(again.run.assigned_session(), Some(session(1)), "it keeps its worker and its directory");
}

fn bound(environments: &[&str], segments: &[&str], profiles: &[&str]) -> WorkerTerms {
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    WorkerTerms { environments: set(environments), segments: set(segments), profiles: set(profiles) }
}

#[test]
fn the_bound_of_a_certificate_that_keeps_a_worker_away_is_named() {
    let mut step = in_workdir("a", Workdir::Run);
    step.rules.requires = Some(Requires { network_segment: Some("vpc-a".into()), ..Requires::default() });
    let case = Case::of(under_profile(vec![step]));
    let kept = |capabilities: &[&str], terms: Option<WorkerTerms>| {
        let names = capabilities.iter().map(|name| (*name).to_owned()).collect();
        Skills::within(Skills::new(None, Some(names)), terms, true).kept_by_bound(&case.run, None)
    };
    let able = ["command:dev-flex", "workdir"];
    assert_eq!(kept(&able, Some(bound(&["dev"], &["vpc-a"], &["*"]))), None, "it may have the run");
    let told = |terms: Option<WorkerTerms>, capabilities: &[&str]| kept(capabilities, terms).unwrap();
    let (reason, why) = told(Some(bound(&["prod"], &["vpc-a"], &["*"])), &able);
    assert_eq!(reason, SkipReason::Environment);
    assert!(why.contains("`prod`") && why.contains("`dev`"), "{why}");
    let (reason, why) = told(Some(bound(&["*"], &["vpc-b"], &["*"])), &able);
    assert_eq!(reason, SkipReason::Segment);
    assert!(why.contains("`vpc-b`") && why.contains("`vpc-a`"), "{why}");
    assert_eq!(told(None, &able).0, SkipReason::Segment, "only a certificate places a worker in a segment");
    let staging = ["command:staging-standard", "workdir"];
    let (reason, why) = told(Some(bound(&["*"], &["vpc-a"], &["staging-standard"])), &staging);
    assert_eq!(reason, SkipReason::Profile);
    assert!(why.contains("`staging-standard`") && why.contains("`dev-flex`"), "{why}");
    // What it lacks by itself is no bound.
    assert_eq!(kept(&staging, Some(bound(&["*"], &["vpc-a"], &["*"]))), None);
    assert_eq!(kept(&["workdir"], Some(bound(&["*"], &["vpc-a"], &[]))), None);
}

#[test]
fn the_controls_that_a_host_lacks_are_named() {
    let mut plan = under_profile(vec![in_workdir("a", Workdir::Run)]);
    plan.rules.profile = Some("prod-standard".into());
    let case = Case::of(plan);
    let kept = |capabilities: &[&str], terms: Option<WorkerTerms>| {
        let names = capabilities.iter().map(|name| (*name).to_owned()).collect();
        Skills::within(Skills::new(None, Some(names)), terms, true).kept_by_bound(&case.run, None)
    };
    let proven = |but: &[&str]| {
        let held = required_controls("prod-standard").filter(|control| !but.contains(control));
        held.map(control_capability).chain(["command:dev-flex", "workdir"].map(str::to_owned)).collect::<Vec<_>>()
    };
    let told = |but: &[&str], terms| {
        let names = proven(but);
        kept(&names.iter().map(String::as_str).collect::<Vec<_>>(), terms)
    };
    let (reason, why) = told(&["cgroup_memory"], None).unwrap();
    assert_eq!(reason, SkipReason::Controls);
    assert!(why.starts_with("its host lacks the control `cgroup_memory`, and `prod-standard` runs nothing"), "{why}");
    let (_, why) = told(&["landlock", "cgroup_memory"], None).unwrap();
    assert!(why.starts_with("its host lacks the controls `cgroup_memory`, `landlock`, and"), "{why}");
    // What its certificate says comes first.
    let (reason, _) = told(&["cgroup_memory"], Some(bound(&["*"], &[], &["dev-flex"]))).unwrap();
    assert_eq!(reason, SkipReason::Profile);
    // A worker that could keep the profile and does not offer it merely lacks it; an older one has not said what it tried.
    assert_eq!(told(&[], None), None);
    assert_eq!(kept(&["command:dev-flex", "workdir"], None), None);
    // Nor is a host named that lacks something else as well.
    assert_eq!(kept(&["command:dev-flex", "control:seccomp"], None), None, "it keeps no directories");
}

#[test]
fn a_run_that_finds_no_worker_says_what_keeps_each_from_it() {
    let mut case = Case::of(two_commands());
    case.until_wake();
    let unfit = vec![UnfitWorker { worker: "box".into(), why: "its host lacks the control `seccomp`".into() }];
    let known = DecideContext { unfit, ..DecideContext::default() };
    let decided = decide(&case.run, Command::Tick, known, CommandOrigin::timeout(case.now)).unwrap();
    let change = decided.settle(|asking| panic!("{asking:?}")).unwrap();
    case.run.apply(&change);
    let why = &case.known().failures[0].why;
    assert_eq!(why, "no worker is connected that may take the run: box (its host lacks the control `seccomp`)");
}

#[test]
fn a_step_is_for_workers_that_are_near_and_have_its_labels() {
    let mut step = in_workdir("a", Workdir::Run);
    let labels = [("disk", "ssd"), ("rack", "a")].map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    step.rules.requires = Some(Requires { labels, max_latency: Some(Millis(50)), ..Requires::default() });
    let case = Case::of(under_profile(vec![step]));
    let worker = |labels: &[(&str, &str)]| {
        let names = ["command:dev-flex", "workdir"].map(str::to_owned).to_vec();
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Skills::labeled(Skills::new(None, Some(names)), labels)
    };
    let fits = worker(&[("disk", "ssd"), ("rack", "a"), ("row", "9")]);
    assert!(fits.can_take(&case.run, Some(Millis(50))));
    assert_eq!(fits.kept_by_bound(&case.run, Some(Millis(50))), None);
    for distance in [Some(Millis(51)), None] {
        assert!(!fits.can_take(&case.run, distance), "{distance:?}");
        let (reason, why) = fits.kept_by_bound(&case.run, distance).unwrap();
        assert!(reason == SkipReason::Latency && why.contains("50 ms at most"), "{why}");
    }
    let other = worker(&[("rack", "b")]);
    assert!(!other.can_take(&case.run, Some(Millis(1))));
    let (reason, why) = other.kept_by_bound(&case.run, Some(Millis(1))).unwrap();
    assert_eq!(reason, SkipReason::Labels);
    assert!(why.contains("`disk=ssd`") && why.contains("its label `rack` is `b`"), "{why}");
    // What a worker says that it can do is no label, and no measurement.
    let names = ["command:dev-flex", "workdir", "label:rack=a", "label:disk=ssd", "max_latency_ms:50"];
    let names = names.map(str::to_owned).to_vec();
    assert!(!Skills::new(None, Some(names)).can_take(&case.run, None));
}

#[test]
fn an_explanation_names_the_workers_that_are_passed_over() {
    let mut case = Case::of(two_commands());
    let skipped = [SkippedWorker::new(session(7), "w7".into(), SkipReason::Maintenance)];
    let around = Surroundings { workers: Some(0), skipped: &skipped, ..Surroundings::default() };
    let explained = why(&case.run, case.now, around);
    assert!(matches!(explained.because[0], Cause::Assigning { waits: true, .. }), "{explained:?}");
    assert_eq!(explained.because[1], Cause::PassedOver { workers: skipped.to_vec() });
    assert_eq!(explained.next, [Remedy::StartWorker, Remedy::Cancel]);
    case.tell(cancel(false));
    let explained = why(&case.run, case.now, around);
    assert!(!explained.because.iter().any(|cause| matches!(cause, Cause::PassedOver { .. })), "{explained:?}");
}
