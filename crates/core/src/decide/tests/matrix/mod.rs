//! Every operator's verb, on every kind of guard, by every kind of caller (decision 0017). What a [`verb`] does to a
//! [`guarded`] run is held against the rules of the [`ledger`], and so is everything that votes and workers make of the run
//! afterwards.

mod guarded;
mod ledger;
mod people;
mod play;
mod successor;
mod verb;

#[cfg(feature = "planted")]
mod planted;

use std::collections::BTreeMap;
use std::fmt;

use guarded::{FAMILIES, Family, Situation, situations};
use ledger::Violation;
use people::{Caller, Directive};
use play::Play;
use successor::Successor;
use verb::Verb;

/// A cell that breaks a rule.
#[derive(Debug)]
struct Red {
    situation: String,
    /// The person who has directed the run or gives the directive now, if any.
    caller: Option<Caller>,
    /// `None` where no directive is given, and the run goes on as it stands.
    verb: Option<Verb>,
    violation: Violation,
}

impl fmt::Display for Red {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { situation, caller, verb, violation: Violation { rule, step, what } } = self;
        write!(f, "{situation} / {verb:?} / {caller:?}: step {step} {what} ({rule:?})")
    }
}

#[derive(Debug, Default)]
struct Tally {
    accepted: usize,
    refused: usize,
    /// Votes of callers that have none: there is no such command.
    unsayable: usize,
    red: Vec<Red>,
}

/// Callers with what they did before the run came to its guards.
fn callers() -> Vec<(Option<Directive>, Vec<Caller>)> {
    let mut all = vec![(None, Caller::UNDIRECTED.to_vec())];
    for directive in [Directive::ChangedInput, Directive::Restarted, Directive::ToldOutput] {
        all.push((Some(directive), vec![Caller::Director(directive)]));
    }
    all
}

impl Tally {
    fn of(families: &[Family]) -> Self {
        let mut tally = Self::default();
        for (before, callers) in callers() {
            for situation in situations(families, before) {
                tally.walk(&situation, before.map(Caller::Director), &callers);
            }
        }
        tally
    }

    fn walk(&mut self, situation: &Situation, director: Option<Caller>, callers: &[Caller]) {
        let start = &situation.play;
        // Callers whose words leave the same run behind share what follows.
        let mut followed = BTreeMap::new();
        self.enter(situation, (director, None), follow(start, &mut followed));
        if start.broken.is_some() {
            return;
        }
        for caller in callers {
            for verb in Verb::all(&start.case, *caller) {
                let Some((command, by)) = verb.said_by(*caller, &start.case) else {
                    self.unsayable += 1;
                    continue;
                };
                let mut play = start.clone();
                let broken = if play.ask(command, by).is_ok() {
                    self.accepted += 1;
                    follow(&play, &mut followed)
                } else {
                    self.refused += 1;
                    play.broken
                };
                self.enter(situation, (Some(*caller), Some(verb)), broken);
            }
        }
    }

    fn enter(&mut self, situation: &Situation, cell: (Option<Caller>, Option<Verb>), broken: Option<Violation>) {
        let ((caller, verb), situation) = (cell, situation.name.clone());
        self.red.extend(broken.map(|violation| Red { situation, caller, verb, violation }));
    }
}

/// The rule that the run breaks, or will break when it goes on.
fn follow(play: &Play, followed: &mut BTreeMap<String, Option<Violation>>) -> Option<Violation> {
    let goes_on = || {
        let mut play = play.clone();
        play.go_on();
        play.broken
    };
    play.broken.clone().or_else(|| followed.entry(play.standing()).or_insert_with(goes_on).clone())
}

#[test]
fn no_verb_by_anybody_replaces_a_vote() {
    let tally = Tally::of(FAMILIES);
    let red: Vec<_> = tally.red.iter().map(ToString::to_string).collect();
    assert!(red.is_empty(), "{} cells are red:\n{}", red.len(), red.join("\n"));
    println!("{} accepted, {} refused, {} unsayable", tally.accepted, tally.refused, tally.unsayable);
}

/// What runs that are made from an ended one did, and those of them that break a rule.
#[derive(Debug, Default)]
struct Successors {
    made: usize,
    refused: usize,
    red: Vec<String>,
}

impl Successors {
    fn of(families: &[Family]) -> Self {
        let mut all = Self::default();
        for (before, callers) in callers() {
            for situation in situations(families, before) {
                for (end, ended) in situation.play.endings() {
                    for caller in &callers {
                        for how in Successor::all(&ended) {
                            all.enter(
                                &format!("{}, {end} / {how:?} / {caller:?}", situation.name),
                                how.of(&ended, *caller),
                            );
                        }
                    }
                }
            }
        }
        all
    }

    fn enter(&mut self, cell: &str, successor: Option<Play>) {
        let Some(mut play) = successor else {
            self.refused += 1;
            return;
        };
        self.made += 1;
        play.go_on();
        if let Some(Violation { rule, step, what }) = play.broken {
            self.red.push(format!("{cell}: step {step} {what} ({rule:?})"));
        }
    }
}

#[test]
fn no_run_made_from_an_ended_one_inherits_a_vote() {
    let all = Successors::of(FAMILIES);
    assert!(all.red.is_empty(), "{} cells are red:\n{}", all.red.len(), all.red.join("\n"));
    assert!(all.made > 1_000, "only {} runs were made, {} refused", all.made, all.refused);
    println!("{} made, {} refused", all.made, all.refused);
}
