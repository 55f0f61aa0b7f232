//! What keeps a worker from a step that it could do otherwise: a bound of its certificate, a control that its host lacks, a label
//! that it lacks, the way to it.

use std::collections::BTreeSet;

use super::Skills;
use super::controls::required_controls;
use crate::plan::command::{
    commanded_profile, control_capability, is_control, needed_label, needed_latency, needed_segment,
};
use crate::run::Run;
use crate::run::skipped_worker::SkipReason;
use crate::time::Millis;

impl Skills {
    /// The first bound that keeps the worker from the step which the run stands at, in words: one of its certificate or of its host,
    /// else a label that it lacks, else how far away it is. Nothing where it may have the step, and where it lacks what decides on
    /// more than where a step is done: the task, a capability, the asking before effects.
    pub fn kept_by_bound(&self, run: &Run, distance: Option<Millis>) -> Option<(SkipReason, String)> {
        if run.has_named_effects() && !self.names_effects {
            return None;
        }
        let mut bound = None;
        let environment = run.plan.environment();
        if let Some(terms) = self.terms.as_ref().filter(|terms| !terms.allows_environment(environment)) {
            let allowed = named("environment", &terms.environments);
            let why = format!("it is bound to the {allowed}; the run is of `{environment}`");
            bound = Some((SkipReason::Environment, why));
        }
        let (spec, needs) = (run.spec(run.position), run.worker_needs());
        if needs.is_empty() {
            return bound.filter(|_| self.can_do(spec));
        }
        if spec.task_name().is_some_and(|task| !self.has_task(task)) {
            return None;
        }
        let none = BTreeSet::new();
        let capabilities = match &self.capabilities {
            Some(names) => names,
            // A worker that has said nothing gets no commands.
            None if spec.is_command() => return None,
            None => &none,
        };
        let mut missing = Vec::new();
        let mut far = None;
        for need in &needs {
            if let Some(segment) = needed_segment(need) {
                bound = bound.or_else(|| self.outside(segment));
            } else if let Some((name, value)) = needed_label(need) {
                missing.extend(self.lacked(name, value));
            } else if let Some(most) = needed_latency(need) {
                far = far.or_else(|| too_far(distance, most));
            } else if !capabilities.contains(need) {
                // What it lacks and may not or cannot have is told; what it merely lacks is no bound.
                let profile = commanded_profile(need)?;
                let kept = self.kept_by_profile(profile, capabilities);
                let kept = kept.or_else(|| kept_by_controls(profile, capabilities))?;
                bound = bound.or(Some(kept));
            }
        }
        let missing = (!missing.is_empty()).then(|| (SkipReason::Labels, missing.join("; ")));
        bound.or(missing).or(far)
    }

    /// What is wrong with the worker's label, where it is not the one that a step asks for.
    fn lacked(&self, name: &str, value: &str) -> Option<String> {
        match self.labels.get(name) {
            Some(own) if own == value => None,
            Some(own) => Some(format!("its label `{name}` is `{own}`; the step is for `{value}`")),
            None => Some(format!("it has no label `{name}`; the step is for `{name}={value}`")),
        }
    }

    fn outside(&self, segment: &str) -> Option<(SkipReason, String)> {
        let why = match &self.terms {
            Some(terms) if terms.segments.contains(segment) => return None,
            Some(terms) if terms.segments.is_empty() => {
                format!("its certificate names no network segment; the step is for `{segment}`")
            }
            Some(terms) => {
                let allowed = named("network segment", &terms.segments);
                format!("its certificate is for the {allowed}; the step is for `{segment}`")
            }
            None => {
                format!("it has no certificate, and only that places a worker in the network segment `{segment}`")
            }
        };
        Some((SkipReason::Segment, why))
    }

    /// Only a worker that runs commands at all is kept from them by the profile.
    fn kept_by_profile(&self, profile: &str, capabilities: &BTreeSet<String>) -> Option<(SkipReason, String)> {
        let terms = self.terms.as_ref().filter(|terms| !terms.allows_profile(profile))?;
        capabilities.iter().any(|name| commanded_profile(name).is_some()).then(|| {
            let allowed = named("profile", &terms.profiles);
            let why = format!("its certificate is for the {allowed}; the run is of `{profile}`");
            (SkipReason::Profile, why)
        })
    }
}

/// The controls that the profile requires and that did not hold on the worker's host when it tried them out. A worker that has named
/// no control at all has not said what it tried.
fn kept_by_controls(profile: &str, capabilities: &BTreeSet<String>) -> Option<(SkipReason, String)> {
    let is_absent = |control: &&str| !capabilities.contains(&control_capability(control));
    let absent: BTreeSet<String> = required_controls(profile).filter(is_absent).map(str::to_owned).collect();
    let has_tried = capabilities.iter().any(|name| is_control(name));
    (has_tried && !absent.is_empty()).then(|| {
        let lacked = named("control", &absent);
        let why = format!(
            "its host lacks the {lacked}, and `{profile}` runs nothing without; `interlock sandbox check` there shows what was \
             found"
        );
        (SkipReason::Controls, why)
    })
}

/// Why a worker this far away does not have a step that asks for one at most so far away.
fn too_far(distance: Option<Millis>, most: Millis) -> Option<(SkipReason, String)> {
    let most_ms = most.0;
    let why = match distance {
        Some(distance) if distance <= most => return None,
        Some(distance) => {
            let ms = distance.0;
            format!(
                "its calls take {ms} ms to be answered; the step is for workers whose calls take {most_ms} ms at most"
            )
        }
        None => format!(
            "how long its calls take to be answered is not known here yet; the step is for workers whose calls take {most_ms} ms \
             at most"
        ),
    };
    Some((SkipReason::Latency, why))
}

fn named(what: &str, names: &BTreeSet<String>) -> String {
    let plural = if names.len() == 1 { "" } else { "s" };
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    format!("{what}{plural} {}", names.join(", "))
}
