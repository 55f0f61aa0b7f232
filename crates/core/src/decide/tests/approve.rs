//! Approvals: votes, the two clocks, and what a denial leads to.

use super::case::{Case, STARTER, pause, retry, skip, voter};
use super::plans::{gate, plan, task};
use crate::decide::{Command, CommandOrigin};
use crate::limits;
use crate::plan::{OnDenial, OnFailure, Plan, StepSpec, Work};
use crate::rejection::Rejection;
use crate::run::Phase;
use crate::run::approval::{AccountRights, FallenVote, VoteToDrop, Voter};
use crate::run::change::{Context, SideWrite};
use crate::state::{ApprovalState, Initiator, Reason, RunState, StepState};
use crate::tenant::identity::Role;
use crate::time::Millis;

fn gated(change: impl FnOnce(&mut crate::plan::Gate)) -> Case {
    let mut step = gate("ok", OnDenial::Fail);
    let Work::Approval(gate) = &mut step.work else { unreachable!() };
    change(gate);
    Case::of(plan(vec![step, task("t")]))
}

fn asked(case: &Case) -> &crate::run::approval::Approval {
    let Phase::WaitingApproval(approval) = &case.step(0).phase else { panic!("{:?}", case.step(0)) };
    approval
}

fn votes(case: &mut Case, voter: Voter) -> Result<(), Rejection> {
    case.ask(Command::Vote { position: 0, voter, approve: true, notes: None }).map(|_| ())
}

fn refused(case: &mut Case, voter: Voter) -> String {
    match votes(case, voter) {
        Err(Rejection::VoteRefused { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_gate_asks_with_both_clocks() {
    let case = gated(|_| ());
    let approval = asked(&case);
    assert_eq!(case.state(), RunState::WaitingApproval);
    assert_eq!(case.names(), ["session.created", "approval.requested"]);
    assert_eq!(approval.escalate_at, Some(case.now + Millis::from_mins(10)));
    assert_eq!(approval.expires_at, case.now + Millis::from_hours(24));
    assert_eq!(case.row().wake_at, approval.escalate_at, "the nearer clock");
    let case = gated(|gate| (gate.escalate_after, gate.expires_after) = (None, None));
    let approval = asked(&case);
    assert_eq!(approval.escalate_at, Some(case.now + limits::APPROVAL_ESCALATE_OTHER));
    assert_eq!(approval.expires_at, case.now + limits::APPROVAL_EXPIRES_AFTER);
}

#[test]
fn a_quorum_of_different_people_approves() {
    let mut case = gated(|gate| gate.quorum = 2);
    case.tells(|case| case.vote("ann", true));
    assert_eq!(case.state(), RunState::WaitingApproval);
    assert_eq!(case.names(), ["approval.voted"]);
    assert!(refused(&mut case, voter("ann")).contains("one vote"));
    case.tells(|case| case.vote("bob", true));
    assert_eq!(case.steps(), [StepState::Succeeded, StepState::Ready]);
    assert_eq!(case.names(), ["approval.voted", "approval.resolved", "execution.step.completed"]);
    let output = case.step(0).output.as_ref().unwrap().to_value().unwrap();
    assert_eq!(output["approved_by"], serde_json::json!(["ann", "bob"]));
}

/// The votes so far, none of which is to count any more.
fn all_fallen(case: &Case) -> Vec<VoteToDrop> {
    let why = "the account ann is disabled";
    asked(case).votes.iter().map(|vote| VoteToDrop { vote: vote.clone(), why: why.into() }).collect()
}

/// The second key does not open the door together with a first one that was taken away.
#[test]
fn a_vote_counts_only_while_its_voter_could_still_cast_it() {
    let fell = || vec![FallenVote { person: "ann".into(), why: "the account ann is disabled".into() }];
    let mut case = gated(|gate| gate.quorum = 2);
    case.tells(|case| case.vote("ann", true));
    let fallen = all_fallen(&case);
    votes(&mut case, Voter { fallen, ..voter("bob") }).unwrap();
    assert_eq!((case.state(), case.names()), (RunState::WaitingApproval, vec!["approval.voted"]));
    assert_eq!((asked(&case).approved_by(), &asked(&case).fallen), (vec!["bob"], &fell()));
    let dropped = case.change.side.iter().filter(|side| matches!(side, SideWrite::DropVote { .. })).count();
    assert_eq!(dropped, 1, "the store keeps the votes that count");
    // The right came back, and she votes once more.
    votes(&mut case, voter("ann")).unwrap();
    assert_eq!(case.steps(), [StepState::Succeeded, StepState::Ready]);
    let output = case.step(0).output.as_ref().unwrap().to_value().unwrap();
    assert_eq!(output["approved_by"], serde_json::json!(["bob", "ann"]));
}

/// A person whose vote fell and who has another right votes once more. A request that was sent twice, or that another person
/// sent before that, has read the old vote, and does not take the new one away.
#[test]
fn a_fallen_vote_is_cast_anew_once() {
    let mut case = gated(|gate| gate.quorum = 2);
    case.tells(|case| case.vote("ann", true));
    let fallen = all_fallen(&case);
    let again = || Voter { fallen: fallen.clone(), ..deputy("ann", "cyd") };
    votes(&mut case, again()).unwrap();
    assert_eq!((asked(&case).approved_by(), asked(&case).fallen.len()), (vec!["ann"], 1));
    let of_votes = |side: &&SideWrite| matches!(side, SideWrite::DropVote { .. } | SideWrite::Vote { .. });
    let written: Vec<_> = case.change.side.iter().filter(of_votes).collect();
    assert!(matches!(written.as_slice(), [SideWrite::DropVote { .. }, SideWrite::Vote { .. }]), "{written:?}");
    assert!(refused(&mut case, again()).contains("one vote"));
    votes(&mut case, Voter { fallen, ..voter("bob") }).unwrap();
    assert_eq!(case.steps(), [StepState::Succeeded, StepState::Ready]);
    let output = case.step(0).output.as_ref().unwrap().to_value().unwrap();
    assert_eq!(output["approved_by"], serde_json::json!(["ann", "bob"]));
}

#[test]
fn a_vote_is_committed_with_a_look_at_the_accounts_it_rests_on() {
    let roles = [Role::Approver].into_iter().collect();
    let account = AccountRights { name: "ann".into(), roles, groups: vec!["sre".into()] };
    let mut case = gated(|_| ());
    votes(&mut case, Voter { accounts: vec![account.clone()], ..voter("ann") }).unwrap();
    let checked = case.change.side.iter().filter_map(|side| match side {
        SideWrite::CheckAccount(account) => Some(&**account),
        _ => None,
    });
    assert_eq!(checked.collect::<Vec<_>>(), [&account]);
}

/// What a person lost says nothing about the no of another.
#[test]
fn a_reject_drops_no_vote() {
    let mut case = gated(|gate| gate.quorum = 2);
    case.tells(|case| case.vote("ann", true));
    let fallen = all_fallen(&case);
    case.tell(Command::Vote { position: 0, voter: Voter { fallen, ..voter("bob") }, approve: false, notes: None });
    assert_eq!(case.run.reason, Some(Reason::ApprovalRejected));
    assert!(!case.change.side.iter().any(|side| matches!(side, SideWrite::DropVote { .. })));
}

#[test]
fn a_person_whose_yes_fell_can_say_no() {
    let mut case = gated(|gate| gate.quorum = 2);
    case.tells(|case| case.vote("ann", true));
    let fallen = all_fallen(&case);
    case.tell(Command::Vote { position: 0, voter: Voter { fallen, ..voter("ann") }, approve: false, notes: None });
    assert_eq!(case.run.reason, Some(Reason::ApprovalRejected));
}

#[test]
fn one_eligible_reject_rejects() {
    let mut case = gated(|gate| gate.quorum = 3);
    case.tells(|case| case.vote("ann", true)).tells(|case| case.vote("bob", false));
    assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::ApprovalRejected)));
    let error = case.step(0).last_error.as_ref().unwrap();
    assert_eq!((error.code.as_str(), error.message.as_str()), ("APPROVAL_REJECTED", "rejected by bob"));
}

#[test]
fn only_members_of_the_named_groups_vote() {
    let mut case = gated(|_| ());
    let outsider = Voter { groups: vec!["sales".into()], ..voter("eve") };
    assert!(refused(&mut case, outsider.clone()).contains("in none of the groups sre"));
    let mut open = gated(|gate| gate.approvers.clear());
    votes(&mut open, outsider).unwrap();
}

/// Self-approval: with a quorum of one, where the tenant allows it; never as one of two keys.
#[test]
fn the_starter_does_not_decide() {
    for (quorum, self_approval, allowed) in [(1, false, false), (1, true, true), (2, false, false), (2, true, false)] {
        let mut case = gated(|gate| gate.quorum = quorum);
        let answer = votes(&mut case, Voter { self_approval, ..voter(STARTER) });
        assert_eq!(answer.is_ok(), allowed, "quorum {quorum}, self {self_approval}: {answer:?}");
    }
}

/// The requester is excluded: a person who directs a run so that its gate asks again has asked for the approval.
#[test]
fn whoever_directs_the_run_to_ask_does_not_decide() {
    let mut case = gated(|gate| gate.on_reject = OnDenial::Pause);
    case.tells(|case| case.vote("ann", false));
    case.ask_by(retry(), CommandOrigin { now: case.now, by: Context::operator("bob") }).unwrap();
    assert_eq!(asked(&case).excluded, [STARTER, "bob"]);
    assert!(refused(&mut case, voter("bob")).contains("started or directed"));
    assert!(refused(&mut case, voter(STARTER)).contains("started or directed"));
    votes(&mut case, voter("ann")).unwrap();
}

/// Who says yes at one gate has not asked for the next one.
#[test]
fn whoever_approves_may_approve_again_at_the_next_gate() {
    let mut case = Case::of(plan(vec![gate("one", OnDenial::Fail), gate("two", OnDenial::Fail)]));
    let by = Context::of(Initiator::Approval, "ann");
    let vote = case.vote("ann", true);
    case.ask_by(vote, CommandOrigin { now: case.now, by }).unwrap();
    let Phase::WaitingApproval(second) = &case.step(1).phase else { panic!("{:?}", case.step(1)) };
    assert_eq!(second.excluded, [STARTER]);
}

/// Self-approval: in production never, whatever the tenant says.
#[test]
fn the_starter_does_not_decide_in_production() {
    let of = |profile: &str| {
        let mut plan = plan(vec![gate("ok", OnDenial::Fail)]);
        plan.rules.profile = Some(profile.into());
        Case::of(plan)
    };
    for (profile, allowed) in [("prod-critical", false), ("prod-standard", false), ("staging-standard", true)] {
        let answer = votes(&mut of(profile), Voter { self_approval: true, ..voter(STARTER) });
        assert_eq!(answer.is_ok(), allowed, "{profile}: {answer:?}");
    }
}

/// Excluded for two keys also the authors of the pinned version.
#[test]
fn whoever_wrote_the_version_is_none_of_two_keys() {
    let author = || Voter { author: Some("ann".into()), ..voter("ann") };
    let mut two = gated(|gate| gate.quorum = 2);
    assert!(refused(&mut two, author()).contains("wrote this version"));
    votes(&mut gated(|_| ()), author()).unwrap();
}

/// The deputy of `whose`, with the groups of the person whose right it is.
fn deputy(person: &str, whose: &str) -> Voter {
    Voter { on_behalf_of: Some(whose.into()), one_with: vec![whose.into()], ..voter(person) }
}

#[test]
fn a_vote_on_behalf_of_another_says_so() {
    let mut case = gated(|gate| gate.on_reject = OnDenial::Fail);
    let no = Command::Vote { position: 0, voter: deputy("bob", "ann"), approve: false, notes: None };
    case.tell(no);
    let vote = case.change.side.iter().find_map(|side| match side {
        SideWrite::Vote { vote, .. } => Some((vote.person.as_str(), vote.on_behalf_of.as_deref())),
        _ => None,
    });
    assert_eq!(vote, Some(("bob", Some("ann"))));
    assert_eq!(case.step(0).last_error.as_ref().unwrap().message, "rejected by bob on behalf of ann");
}

/// Delegator and delegate count as one.
#[test]
fn delegator_and_delegate_have_one_vote_together() {
    let one_with = |person: &str, other: &str| Voter { one_with: vec![other.into()], ..voter(person) };
    let pairs = [
        (deputy("bob", "ann"), one_with("ann", "bob"), "ann has approved"),
        // The delegation is over: the vote that was cast by it still counts as hers.
        (deputy("bob", "ann"), voter("ann"), "ann has approved"),
        (one_with("ann", "bob"), deputy("bob", "ann"), "ann has approved"),
        (one_with("ann", "bob"), one_with("bob", "ann"), "ann has approved"),
        // She has lent her right to another since.
        (deputy("bob", "ann"), deputy("eve", "ann"), "ann has approved"),
    ];
    for (first, second, why) in pairs {
        let mut case = gated(|gate| gate.quorum = 2);
        votes(&mut case, first).unwrap();
        let said = refused(&mut case, second);
        assert!(said.contains(why), "{said}");
    }
    let mut case = gated(|gate| gate.quorum = 2);
    votes(&mut case, deputy("bob", "ann")).unwrap();
    votes(&mut case, voter("eve")).unwrap();
    assert_eq!(case.step(0).state(), StepState::Succeeded);
}

#[test]
fn whoever_is_excluded_decides_through_nobody_else() {
    for voter in [deputy("bob", STARTER), deputy(STARTER, "bob")] {
        assert!(refused(&mut gated(|_| ()), voter.clone()).contains("started or directed"));
        let own = Voter { on_behalf_of: None, ..voter.clone() };
        assert!(refused(&mut gated(|_| ()), own).contains("started or directed"));
        votes(&mut gated(|_| ()), Voter { self_approval: true, ..voter }).unwrap();
    }
    let author = Voter { author: Some("ann".into()), ..deputy("bob", "ann") };
    assert!(refused(&mut gated(|gate| gate.quorum = 2), author.clone()).contains("ann wrote this version"));
    votes(&mut gated(|_| ()), author).unwrap();
}

#[test]
fn the_groups_are_those_of_whoever_has_the_right() {
    let outsider = Voter { groups: vec!["sales".into()], ..deputy("bob", "ann") };
    assert!(refused(&mut gated(|_| ()), outsider).contains("ann is in none of the groups sre"));
}

#[test]
fn production_is_reminded_sooner() {
    let mut step = gate("ok", OnDenial::Fail);
    let Work::Approval(asked_for) = &mut step.work else { unreachable!() };
    asked_for.escalate_after = None;
    let mut plan = plan(vec![step]);
    plan.rules.profile = Some("prod-standard".into());
    let case = Case::of(plan);
    assert_eq!(asked(&case).escalate_at, Some(case.now + limits::APPROVAL_ESCALATE_PROD));
}

#[test]
fn a_vote_needs_an_open_approval_of_that_step() {
    let mut case = gated(|_| ());
    for position in [1, 9] {
        let vote = Command::Vote { position, voter: voter("ann"), approve: true, notes: None };
        assert!(matches!(case.refuse(vote), Rejection::InvalidTransition { .. }));
    }
    case.tells(|case| case.vote("ann", true));
    assert!(matches!(case.refuse(case.vote("bob", true)), Rejection::InvalidTransition { .. }));
    let mut rejected = gated(|gate| gate.on_reject = OnDenial::Pause);
    rejected.tells(|case| case.vote("ann", false));
    assert!(refused(&mut rejected, voter("bob")).contains("rejected already"));
}

#[test]
fn notes_have_a_limit() {
    let mut case = gated(|_| ());
    let notes =
        |bytes| Command::Vote { position: 0, voter: voter("ann"), approve: true, notes: Some("x".repeat(bytes)) };
    assert!(matches!(case.refuse(notes(limits::REASON_BYTES_MAX + 1)), Rejection::InvalidInput { .. }));
    case.tell(notes(limits::REASON_BYTES_MAX));
}

#[test]
fn escalation_reminds_and_stays_open() {
    let mut case = gated(|_| ());
    case.refuse(Command::Tick);
    case.until_wake().tell(Command::Tick);
    assert_eq!(case.names(), ["approval.expired"], "the approval stays open; the event says that its time is up");
    assert_eq!((case.state(), asked(&case).state), (RunState::WaitingApproval, ApprovalState::Requested));
    assert_eq!(case.row().wake_at, Some(asked(&case).expires_at));
    case.refuse(Command::Tick);
    case.tells(|case| case.vote("ann", true));
    assert_eq!(case.step(0).state(), StepState::Succeeded);
}

#[test]
fn expiry_ends_and_never_approves() {
    for (rule, state) in [(OnDenial::Fail, RunState::Failed), (OnDenial::Pause, RunState::Paused)] {
        let mut case = gated(|gate| gate.on_expiry = rule);
        case.after(Millis::from_hours(24)).tell(Command::Tick);
        assert!(case.names().contains(&"approval.resolved"));
        assert_eq!((case.state(), case.run.reason), (state, Some(Reason::ApprovalExpired)));
        assert_eq!(case.row().wake_at, None);
        let put = case.change.side.iter().find_map(|side| match side {
            SideWrite::PutApproval { approval, .. } => Some(approval.state),
            _ => None,
        });
        assert_eq!(put, Some(ApprovalState::Expired));
    }
}

#[test]
fn a_vote_after_the_hour_is_too_late_even_before_the_timer() {
    let mut case = gated(|_| ());
    case.after(Millis::from_hours(24));
    assert!(refused(&mut case, voter("ann")).contains("expired"));
    case.tell(Command::Tick);
}

#[test]
fn a_denial_that_pauses_waits_for_a_directive() {
    let mut case = gated(|gate| gate.on_reject = OnDenial::Pause);
    case.tells(|case| case.vote("ann", false));
    assert_eq!((case.state(), case.run.reason), (RunState::Paused, Some(Reason::ApprovalRejected)));
    assert_eq!(case.step(0).state(), StepState::WaitingApproval);
    assert_eq!(case.row().wake_at, None, "a closed approval has no clocks");
    assert!(matches!(case.refuse(Command::Resume), Rejection::DirectiveDue { .. }));
}

#[test]
fn a_gate_is_asked_anew_by_retry() {
    let mut case = gated(|gate| gate.on_reject = OnDenial::Pause);
    let first = asked(&case).id;
    case.tells(|case| case.vote("ann", false)).after(Millis(5)).tell(retry());
    let again = asked(&case);
    assert_ne!(again.id, first);
    assert_eq!((again.state, again.votes.len()), (ApprovalState::Requested, 0));
    assert_eq!((case.state(), case.step(0).iteration), (RunState::WaitingApproval, 1));
    case.tells(|case| case.vote("ann", true));
}

#[test]
fn a_denied_gate_can_be_skipped_but_an_open_one_cannot() {
    let mut case = gated(|gate| gate.on_reject = OnDenial::Pause);
    case.tell(pause());
    for command in [retry(), skip(), Command::RestartFrom { position: 0 }] {
        assert!(matches!(case.refuse(command), Rejection::InvalidRunState { .. }));
    }
    case.tell(Command::Resume).tells(|case| case.vote("ann", false)).tell(skip());
    assert_eq!(case.steps(), [StepState::Skipped, StepState::Ready]);
}

#[test]
fn a_denial_that_fails_follows_the_rule_of_the_workflow() {
    let steps: Vec<StepSpec> = vec![gate("ok", OnDenial::Fail)];
    let mut case = Case::of(Plan { on_failure: Some(OnFailure::Pause), ..plan(steps) });
    case.tells(|case| case.vote("ann", false));
    assert_eq!((case.state(), case.step(0).state()), (RunState::Paused, StepState::Failed));
}

#[test]
fn while_paused_votes_count_and_clocks_run() {
    let mut case = gated(|_| ());
    case.tell(pause()).tells(|case| case.vote("ann", true));
    assert_eq!((case.state(), case.step(1).state()), (RunState::Paused, StepState::Ready));
    let mut case = gated(|_| ());
    case.tell(pause()).until_wake().tell(Command::Tick).until_wake().tell(Command::Tick);
    assert_eq!((case.state(), case.step(0).state()), (RunState::Paused, StepState::Failed));
}

#[test]
fn an_approval_has_the_same_name_whoever_decides_it() {
    let open = || asked(&gated(|_| ())).id;
    assert_eq!(open(), open(), "the id is drawn from the run, not from chance");
    let mut case = gated(|_| ());
    let vote = case.vote("ann", true);
    case.ask_by(vote, CommandOrigin::system(case.now)).unwrap();
}
