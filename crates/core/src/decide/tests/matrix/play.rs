//! A run that is watched: every command goes through the [`Ledger`].

use std::sync::Arc;

use super::super::case::{Case, Opening, error, json, session};
use super::super::plans::gate;
use super::ledger::{Ledger, Policy, Rule, Violation};
use super::people::{POLICY_GROUP, ballot};
use crate::decide::{Command, Outcome};
use crate::governance::action::Action;
use crate::governance::judge::{Decision, Judge, Ruling};
use crate::ids::ApprovalId;
use crate::limits;
use crate::plan::retry::ErrorClass;
use crate::plan::{OnDenial, Plan, Work};
use crate::rejection::Rejection;
use crate::run::change::Context;
use crate::run::{Phase, Run};
use crate::state::{ApprovalState, Control, EffectClass, Initiator, ReceiptState, StepState};

impl Judge for Policy {
    fn judge(&self, action: &Action, _: &Run) -> Ruling {
        let is_effect = action.operation == "pay";
        let asks = match self {
            Self::AllowsAll => false,
            Self::AsksForStep(step) => action.step == *step,
            Self::AsksForEffects(step) => action.step == *step && is_effect,
        };
        if !asks {
            return Decision::Allow.into();
        }
        let Work::Approval(mut gate) = gate("policy", OnDenial::Pause).work else { unreachable!() };
        gate.approvers = vec![POLICY_GROUP.into()];
        Decision::NeedsApproval { reasons: vec!["it reaches far".into()], terms: Box::new(gate.into()) }.into()
    }
}

#[derive(Clone)]
pub struct Play {
    pub case: Case,
    pub(super) ledger: Ledger,
    /// The first rule that was broken.
    pub broken: Option<Violation>,
}

impl Play {
    pub fn new(plan: Plan, policy: Policy) -> Self {
        let case = Opening { judge: Arc::new(policy), ..Opening::of(plan) }.start();
        Self { case, ledger: Ledger::new(policy), broken: None }
    }

    pub fn ask(&mut self, command: Command, by: Context) -> Result<(), Rejection> {
        let before = self.case.run.clone();
        let asked = crate::decide::CommandOrigin { by: by.clone(), now: self.case.now };
        let answer = self.case.ask_by(command.clone(), asked).map(|_| ());
        let checked = match &answer {
            Ok(()) => self.ledger.enter(&before, &self.case, (&command, &by)),
            Err(_) if self.case.run == before => Ok(()),
            Err(no) => {
                let what = format!("was refused ({no}), and the run has changed");
                Err(Violation { rule: Rule::RefusedChangesNothing, step: before.position, what })
            }
        };
        if let Err(violation) = checked {
            self.broken.get_or_insert(violation);
        }
        answer
    }

    /// A run that has broken a rule is left where it did.
    #[track_caller]
    pub fn tell(&mut self, command: Command, by: Context) -> &mut Self {
        if self.broken.is_some() {
            return self;
        }
        let text = format!("{command:?}");
        self.ask(command, by).unwrap_or_else(|no| panic!("{text}: {no}"));
        self
    }

    /// What a worker or a clock says.
    #[track_caller]
    pub fn work(&mut self, say: impl FnOnce(&Case) -> Command) -> &mut Self {
        if self.broken.is_some() {
            return self;
        }
        let command = say(&self.case);
        self.tell(command, Context::SYSTEM)
    }

    fn ballot(&self, person: &str, approve: bool) -> Command {
        Command::Vote { position: self.case.run.position, voter: ballot(person), approve, notes: None }
    }

    #[track_caller]
    pub fn votes(&mut self, person: &str, approve: bool) -> &mut Self {
        let vote = self.ballot(person, approve);
        self.tell(vote, Context::of(Initiator::Approval, person))
    }

    #[track_caller]
    pub fn claim(&mut self) -> &mut Self {
        if self.broken.is_none() {
            self.case.until_eligible();
        }
        if self.broken.is_none() && self.case.run.seeks_worker() {
            self.work(|_| Command::OfferRun { session: session(1), worker: "w1".into() });
            self.work(|case| {
                let number = case.run.notes.assignment.as_ref().unwrap().number;
                Command::AckRun { session: session(1), number }
            });
        }
        self.work(|case| case.claim_at(session(1), case.now))
    }

    #[track_caller]
    pub fn complete(&mut self) -> &mut Self {
        self.work(|case| case.reports(Outcome::Completed { output: json(r#"{"ok":true}"#) }))
    }

    #[track_caller]
    pub fn fail(&mut self) -> &mut Self {
        self.claim().work(|case| case.reports(Outcome::Dead { error: error(ErrorClass::Terminal) }))
    }

    fn open_approval(&self) -> Option<ApprovalId> {
        match &self.case.run.current().phase {
            Phase::WaitingApproval(asked) if asked.state == ApprovalState::Requested => Some(asked.id),
            _ => None,
        }
    }

    /// All people try to approve what is open, those with the weakest claim first, until it is decided.
    fn everybody_approves(&mut self) {
        let asked = self.open_approval();
        for person in self.ledger.voting_order() {
            if self.open_approval() == asked {
                let vote = self.ballot(person, true);
                let _ = self.ask(vote, Context::of(Initiator::Approval, person));
            }
        }
        assert!(self.open_approval() != asked, "no person can decide on {:?}", self.case.run.current());
    }

    /// A worker takes the step and does what it declares. An effect that needs approval is asked for instead.
    fn perform(&mut self) {
        self.claim();
        let run = &self.case.run;
        if run.current().state() != StepState::Running {
            // The policy was asked again, and asks people.
            return;
        }
        if run.spec(run.position).effect != Some(EffectClass::Unsafe) {
            self.complete();
            return;
        }
        self.work(|case| case.intent(EffectClass::Unsafe));
        if self.case.run.current().state() == StepState::Running {
            self.work(|case| case.outcome(ReceiptState::Succeeded)).complete();
        }
    }

    /// The attempt is lost with its effect open, and nothing can arrive any more.
    #[track_caller]
    pub fn doubt(&mut self) -> &mut Self {
        self.claim().work(|case| case.intent(EffectClass::Unsafe)).work(Case::lease_expired);
        self.case.after(limits::EFFECT_SETTLES_AFTER);
        self
    }

    /// Nothing is voted on any more.
    pub fn is_at_last_step(&self) -> bool {
        let run = &self.case.run;
        run.position as usize + 1 == run.forward_len() && run.current().state() == StepState::Ready
    }

    /// All that decides how the run can go on. Who paused or canceled it does not.
    pub fn standing(&self) -> String {
        let Run { control, position, steps, notes, .. } = &self.case.run;
        format!("{control:?} {position} {steps:?} {:?} {:?} {:?}", notes.starters, notes.agreed, self.ledger)
    }

    /// Lets the run go on as far as votes, workers and signals carry it.
    pub fn go_on(&mut self) {
        for _ in 0..COMMANDS_MAX {
            let run = &self.case.run;
            if run.state.is_terminal() || self.broken.is_some() || self.is_at_last_step() {
                return;
            }
            let is_paused = run.control == Control::Paused;
            match run.current().state() {
                _ if self.open_approval().is_some() => self.everybody_approves(),
                _ if is_paused => {
                    if self.ask(Command::Resume, Context::SYSTEM).is_err() {
                        return;
                    }
                }
                StepState::Ready => self.perform(),
                StepState::WaitingSignal => {
                    self.work(|case| case.wake("1"));
                }
                _ => return,
            }
        }
        panic!("the run goes round in circles: {:?}", self.case.run);
    }
}

/// More turns than any run of the matrix takes.
const COMMANDS_MAX: usize = 60;
