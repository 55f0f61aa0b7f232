//! What may guard a step, and how far the run has come with it. Every plan is `first`, `second`, the guards, `act`, `mid`,
//! a last gate and `end`: `first` is where a director has a say, the last gate is a vote that follows.

use super::super::case::{Answer, Case, pause, reassign, retry};
use super::super::plans::{Tuned, gate, in_workdir, signal, task, transform, under_profile};
use super::ledger::Policy;
use super::people::{Caller, Directive, ballot};
use super::play::Play;
use super::verb::{change_input, resolve};
use crate::decide::Command;
use crate::machine::step::Resolution;
use crate::plan::rules::Workdir;
use crate::plan::{OnDenial, OnFailure, StepSpec, Work};
use crate::run::change::Context;
use crate::state::{Control, EffectClass, Initiator};
use crate::time::Millis;

/// The first position that a guard takes.
const GUARDED: u32 = 2;

pub struct Situation {
    pub name: String,
    pub play: Play,
}

fn keys(key: &str, rule: OnDenial) -> StepSpec {
    let mut step = gate(key, rule);
    let Work::Approval(gate) = &mut step.work else { unreachable!() };
    gate.quorum = 2;
    step
}

fn two_keys(key: &str) -> StepSpec {
    keys(key, OnDenial::Pause)
}

fn acting(key: &str) -> StepSpec {
    task(key).effect(EffectClass::Unsafe).attempts(1)
}

/// A run that has come to its guards, with a director's directive behind it where there is one.
fn begin(before: Option<Directive>, guards: Vec<StepSpec>, policy: impl FnOnce(u32) -> Policy) -> Play {
    begin_with(before, guards, policy, acting("act").undoable())
}

/// The same with another step that acts.
fn begin_with(
    before: Option<Directive>,
    guards: Vec<StepSpec>,
    policy: impl FnOnce(u32) -> Policy,
    acts: StepSpec,
) -> Play {
    let act = GUARDED + guards.len() as u32;
    let mid = task("mid").attempts(1).when_failed(OnFailure::Rollback);
    let tail = [acts, mid, two_keys("last"), task("end")];
    let mut steps: Vec<_> = [acting("first"), task("second")].into_iter().chain(guards).chain(tail).collect();
    for step in &mut steps {
        step.on_failure.get_or_insert(OnFailure::Pause);
    }
    let mut play = Play::new(under_profile(steps), policy(act));
    play.case.answers.insert(GUARDED + 2, Answer::ConditionFalse);
    let by = |directive| Caller::Director(directive).context(Initiator::Operator);
    match before {
        None => play.claim().complete(),
        Some(directive @ Directive::ChangedInput) => play.fail().tell(change_input(), by(directive)).claim().complete(),
        Some(directive @ Directive::Restarted) => {
            play.fail().tell(Command::RestartFrom { position: 0 }, by(directive)).claim().complete()
        }
        Some(directive @ Directive::ToldOutput) => {
            play.doubt();
            let told = resolve(&play.case, Resolution::Happened, true);
            play.tell(told, by(directive))
        }
    };
    play.claim().complete();
    play
}

impl Play {
    fn approved(&mut self) -> &mut Self {
        self.votes("rob", true).votes("sue", true)
    }

    fn rejected(&mut self) -> &mut Self {
        self.votes("tim", false)
    }

    fn expired(&mut self) -> &mut Self {
        self.case.after(Millis::from_hours(24));
        self.work(|_| Command::Tick)
    }

    fn directed(&mut self, command: Command) -> &mut Self {
        self.tell(command, Context::operator("operator"))
    }

    fn skip_voted_by(&mut self, person: &str) -> &mut Self {
        let voter = Some(Box::new(ballot(person)));
        self.tell(Command::Skip { reason: "done by hand".into(), voter }, Context::operator(person))
    }

    /// The step does its work, and an effect of it is asked for.
    fn asks_for_effect(&mut self) -> &mut Self {
        self.claim().work(|case| case.intent(EffectClass::Unsafe))
    }
}

type Goes = fn(&mut Play) -> &mut Play;

fn of(
    before: Option<Directive>,
    guards: &[StepSpec],
    policy: fn(u32) -> Policy,
    ways: &[(&str, Goes)],
) -> Vec<Situation> {
    let situation = |(name, goes): &(&str, Goes)| {
        let mut play = begin(before, guards.to_vec(), policy);
        goes(&mut play);
        Situation { name: (*name).to_owned(), play }
    };
    ways.iter().map(situation).collect()
}

/// Situations of one kind of guard.
pub type Family = fn(Option<Directive>) -> Vec<Situation>;

pub const FAMILIES: &[Family] = &[ungated, gated, chained, by_policy, by_both, undoing, assigned];

/// The situations of these families; those in which the run is active also with a pause.
pub fn situations(families: &[Family], before: Option<Directive>) -> Vec<Situation> {
    let mut all: Vec<_> = families.iter().flat_map(|family| family(before)).collect();
    for at in 0..all.len() {
        let Situation { name, play } = &all[at];
        if play.case.run.control == Control::Active && play.broken.is_none() {
            let mut play = play.clone();
            play.directed(pause());
            all.push(Situation { name: format!("{name}, paused"), play });
        }
    }
    all
}

fn ungated(before: Option<Directive>) -> Vec<Situation> {
    of(
        before,
        &[],
        |_| Policy::AllowsAll,
        &[("no gate, ready", |play| play), ("no gate, failed", Play::fail), ("no gate, in doubt", Play::doubt)],
    )
}

pub fn gated(before: Option<Directive>) -> Vec<Situation> {
    let mut all = of(
        before,
        &[two_keys("one")],
        |_| Policy::AllowsAll,
        &[
            ("gate open", |play| play),
            ("gate open with one vote", |play| play.votes("rob", true)),
            ("gate approved, ready", Play::approved),
            ("gate approved, failed", |play| play.approved().fail()),
            ("gate approved, in doubt", |play| play.approved().doubt()),
            ("gate approved, retry asked", |play| play.approved().fail().directed(retry())),
            ("gate approved, retry rejected", |play| play.approved().fail().directed(retry()).rejected()),
            ("gate approved, changed input rejected", |play| {
                play.approved().fail().directed(change_input()).rejected()
            }),
            ("gate rejected", Play::rejected),
            ("gate rejected after one vote", |play| play.votes("rob", true).rejected()),
            ("gate rejected, skip asked", |play| play.rejected().skip_voted_by("rob")),
            ("gate skipped by vote, failed", |play| play.rejected().skip_voted_by("rob").skip_voted_by("sue").fail()),
            ("gate expired", Play::expired),
        ],
    );
    let fails = keys("one", OnDenial::Fail);
    all.extend(of(
        before,
        &[fails],
        |_| Policy::AllowsAll,
        &[("gate rejected and failed", Play::rejected), ("gate expired and failed", Play::expired)],
    ));
    all
}

/// More than one step before the one that acts.
fn chained(before: Option<Directive>) -> Vec<Situation> {
    let none = |_| Policy::AllowsAll;
    let (one, two) = (two_keys("one"), two_keys("two"));
    let mut all = of(
        before,
        &[one.clone(), two.clone()],
        none,
        &[
            ("two gates, second open", Play::approved),
            ("two gates, second rejected", |play| play.approved().rejected()),
            ("two gates, failed", |play| play.approved().approved().fail()),
            ("two gates, in doubt", |play| play.approved().approved().doubt()),
        ],
    );
    all.extend(of(
        before,
        &[one.clone(), transform("x")],
        none,
        &[
            ("gate and transform, transform ready", Play::approved),
            ("gate and transform, transform failed", |play| play.approved().fail()),
            ("gate and transform, failed", |play| play.approved().claim().complete().fail()),
        ],
    ));
    let wait = signal("w", Some(Millis(10)));
    all.extend(of(
        before,
        &[one.clone(), wait],
        none,
        &[
            ("gate and wait, waiting", Play::approved),
            ("gate and wait, wait timed out", |play| {
                play.approved().case.until_wake();
                play.work(|_| Command::Tick)
            }),
            ("gate and wait, failed", |play| play.approved().work(|case| case.wake("1")).fail()),
        ],
    ));
    let mut unasked = two;
    unasked.condition = Some("inputs.go".into());
    all.extend(of(
        before,
        &[one, task("between"), unasked],
        none,
        &[
            ("gate, step and gate not asked, failed", |play| play.approved().claim().complete().fail()),
            ("gate, step and gate not asked, in doubt", |play| play.approved().claim().complete().doubt()),
        ],
    ));
    all
}

fn by_policy(before: Option<Directive>) -> Vec<Situation> {
    let mut all = of(
        before,
        &[],
        Policy::AsksForStep,
        &[
            ("policy asks, open", |play| play),
            ("policy asks, agreed", |play| play.votes("otto", true)),
            ("policy asks, agreed, failed", |play| play.votes("otto", true).fail()),
            ("policy asks, agreed, in doubt", |play| play.votes("otto", true).doubt()),
            ("policy asks, rejected", |play| play.votes("olga", false)),
            ("policy asks, expired", Play::expired),
        ],
    );
    all.extend(of(
        before,
        &[],
        Policy::AsksForEffects,
        &[
            ("policy asks for the effect, open", Play::asks_for_effect),
            ("policy asks for the effect, rejected", |play| play.asks_for_effect().votes("olga", false)),
            ("policy asks for the effect, agreed, in doubt", |play| play.asks_for_effect().votes("otto", true).doubt()),
        ],
    ));
    all
}

/// A gate, and the policy behind it with a smaller quorum of another group.
fn by_both(before: Option<Directive>) -> Vec<Situation> {
    let mut all = of(
        before,
        &[two_keys("one")],
        Policy::AsksForStep,
        &[
            ("gate approved, policy open", Play::approved),
            ("gate approved, policy rejected", |play| play.approved().votes("olga", false)),
            ("gate approved, policy agreed, failed", |play| play.approved().votes("otto", true).fail()),
            ("gate approved, policy agreed, in doubt", |play| play.approved().votes("otto", true).doubt()),
        ],
    );
    all.extend(of(
        before,
        &[two_keys("one")],
        Policy::AsksForEffects,
        &[
            ("gate approved, effect open", |play| play.approved().asks_for_effect()),
            ("gate approved, effect rejected", |play| play.approved().asks_for_effect().votes("olga", false)),
            ("gate approved, effect agreed, failed", |play| {
                play.approved().asks_for_effect().votes("otto", true).fail()
            }),
        ],
    ));
    all
}

/// `act` is for a worker that has the run as a whole, and that is lost.
fn assigned(before: Option<Directive>) -> Vec<Situation> {
    fn lost(play: &mut Play) -> &mut Play {
        play.approved().claim().work(Case::lease_expired)
    }
    let ways: [(&str, Goes); 5] = [
        ("worker sought", Play::approved),
        ("worker lost in a command", lost),
        ("worker lost in a command, reassign asked", |play| lost(play).directed(reassign())),
        ("worker lost in a command, reassign rejected", |play| lost(play).directed(reassign()).rejected()),
        ("worker lost in an effect", |play| play.approved().doubt()),
    ];
    let situation = |(name, goes): &(&str, Goes)| {
        let acts = in_workdir("act", Workdir::Run).effect(EffectClass::Unsafe).attempts(1).undoable();
        let mut play = begin_with(before, vec![two_keys("one")], |_| Policy::AllowsAll, acts);
        goes(&mut play);
        Situation { name: (*name).to_owned(), play }
    };
    ways.iter().map(situation).collect()
}

/// `act` was done, `mid` has failed, and `act` is being undone.
fn undoing(before: Option<Directive>) -> Vec<Situation> {
    fn undo(play: &mut Play) -> &mut Play {
        play.approved().claim().complete().fail()
    }
    let ways: [(&str, Goes); 5] = [
        ("rollback ready", undo),
        ("rollback in doubt", |play| undo(play).doubt()),
        ("rollback failed", |play| undo(play).fail()),
        ("rollback failed, changed input asked", |play| undo(play).fail().directed(change_input())),
        ("rollback failed, changed input rejected", |play| undo(play).fail().directed(change_input()).rejected()),
    ];
    let mut all = of(before, &[two_keys("one")], |_| Policy::AllowsAll, &ways);
    for situation in of(before, &[keys("one", OnDenial::Fail)], |_| Policy::AllowsAll, &ways[2..]) {
        let name = format!("{}, its gate fails when rejected", situation.name);
        all.push(Situation { name, ..situation });
    }
    all
}
