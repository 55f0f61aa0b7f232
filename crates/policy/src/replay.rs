//! What another bundle would have decided. Pure functions over stored inputs and decisions: [`compare`] holds two bundles
//! against each other, [`replay`] holds a bundle against what was decided.

use interlock_core::json::HashHex;
use interlock_core::json::{Hash, Json};
use interlock_core::text::json_words::json_error;
use serde::{Deserialize, Serialize};

use crate::bundle::Bundle;
use crate::decision::{PolicyDecision, Undecided, Verdict};
use crate::input::PolicyInput;

/// A decision as it is kept, with what it was made from and by which bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredDecision {
    pub input: PolicyInput,
    pub bundle: HashHex,
    /// Names what evaluated it: [`crate::EVALUATOR`].
    pub evaluator: String,
    /// Nothing where it could not be decided.
    pub decision: Option<PolicyDecision>,
}

impl StoredDecision {
    /// What is kept of a decision.
    pub fn new(bundle: &Bundle, input: PolicyInput, decided: &Result<PolicyDecision, Undecided>) -> Self {
        let (bundle, evaluator) = (HashHex(bundle.hash()), crate::EVALUATOR.to_owned());
        Self { input, bundle, evaluator, decision: decided.as_ref().ok().cloned() }
    }

    /// Names the input: two decisions with the same one were asked the same.
    pub fn input_digest(&self) -> Hash {
        input_digest(&self.input)
    }
}

/// The SHA-256 of an input's canonical form.
pub fn input_digest(input: &PolicyInput) -> Hash {
    interlock_core::json::canonical_hash(input).unwrap_or_else(|_| Hash::of(input.text().as_bytes()))
}

/// What an input comes to, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Allow,
    NeedsApproval,
    Deny,
    Undecided,
}

impl Outcome {
    fn of(decision: Option<&PolicyDecision>) -> Self {
        match decision.map(|decision| decision.verdict) {
            Some(Verdict::Allow) => Self::Allow,
            Some(Verdict::NeedsApproval) => Self::NeedsApproval,
            Some(Verdict::Deny) => Self::Deny,
            None => Self::Undecided,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::NeedsApproval => "needs_approval",
            Self::Deny => "deny",
            Self::Undecided => "undecided",
        }
    }
}

/// One input on which two bundles, or then and now, do not agree.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Its place in the list.
    pub index: usize,
    pub before: Option<PolicyDecision>,
    pub after: Option<PolicyDecision>,
}

impl Difference {
    pub fn from(&self) -> Outcome {
        Outcome::of(self.before.as_ref())
    }

    pub fn to(&self) -> Outcome {
        Outcome::of(self.after.as_ref())
    }
}

/// What changes for a list of inputs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    pub inputs: usize,
    /// Would be allowed now.
    pub newly_allowed: Vec<Difference>,
    /// People would be asked now.
    pub newly_gated: Vec<Difference>,
    pub newly_denied: Vec<Difference>,
    pub newly_undecided: Vec<Difference>,
    /// The same verdict, for other reasons or with other obligations.
    pub otherwise: Vec<Difference>,
}

impl Comparison {
    pub fn is_empty(&self) -> bool {
        self.differences().next().is_none()
    }

    pub fn differences(&self) -> impl Iterator<Item = &Difference> {
        let Self { newly_allowed, newly_gated, newly_denied, newly_undecided, otherwise, .. } = self;
        [newly_allowed, newly_gated, newly_denied, newly_undecided, otherwise].into_iter().flatten()
    }

    fn add(&mut self, difference: Difference) {
        let list = match (difference.from(), difference.to()) {
            (from, to) if from == to => &mut self.otherwise,
            (_, Outcome::Allow) => &mut self.newly_allowed,
            (_, Outcome::NeedsApproval) => &mut self.newly_gated,
            (_, Outcome::Deny) => &mut self.newly_denied,
            (_, Outcome::Undecided) => &mut self.newly_undecided,
        };
        list.push(difference);
    }
}

/// What changes if `after` takes the place of `before`.
pub fn compare(before: &Bundle, after: &Bundle, inputs: &[PolicyInput]) -> Comparison {
    held_against(after, inputs.iter().map(|input| (input, before.decide(input).ok())))
}

/// What changes if `candidate` had made these decisions. Under the same bundle and evaluator there is no difference.
pub fn replay(candidate: &Bundle, stored: &[StoredDecision]) -> Comparison {
    held_against(candidate, stored.iter().map(|stored| (&stored.input, stored.decision.clone())))
}

fn held_against<'a>(
    candidate: &Bundle,
    decided: impl Iterator<Item = (&'a PolicyInput, Option<PolicyDecision>)>,
) -> Comparison {
    let mut comparison = Comparison::default();
    for (index, (input, before)) in decided.enumerate() {
        comparison.inputs += 1;
        let after = candidate.decide(input).ok();
        if before != after {
            comparison.add(Difference { index, before, after });
        }
    }
    comparison
}

/// Inputs as they are kept in a file: one JSON document in each line, an input or a stored decision. Those of a release that did not say
/// what a command runs are told it, so that both bundles judge the same.
pub fn read_inputs(text: &str) -> Result<Vec<PolicyInput>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            let json = Json::trusted(line);
            json.decode::<StoredDecision>()
                .map(|stored| stored.input)
                .or_else(|_| json.decode::<PolicyInput>())
                .map(PolicyInput::with_command)
                .map_err(|error| format!("line {}: not an input document: {}", index + 1, json_error(&error)))
        })
        .collect()
}
