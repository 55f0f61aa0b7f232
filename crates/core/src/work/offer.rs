//! A run that is offered to a worker as a whole, because its commands share a directory; and the worker's answer.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::{RunId, TenantId};
use crate::plan::{Undo, Work, is_template};
use crate::run::Run;
use crate::state::PreflightCheck;
use crate::time::Millis;

/// Names a run to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub struct RunRef {
    pub tenant: TenantId,
    pub run: RunId,
}

/// Asks a worker whether it could run the commands of a run. Nothing of the run is its own yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunOffer {
    #[serde(flatten)]
    pub at: RunRef,
    pub epoch: u64,
    /// Which offer it is; the answer names it.
    pub number: u32,
    pub workflow: String,
    /// How long the worker may take to answer.
    pub ack_within_ms: Millis,
    /// The sandbox that confines its commands.
    pub profile: String,
    /// The environment in which the run acts: `prod`, `staging`, `dev`, `none` or `unknown`.
    pub environment: String,
    /// The commands that are known before the run begins: those without expressions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<OfferedCommand>,
    /// Names of the credentials that its commands are given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<String>,
}

/// A command of an offered run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OfferedCommand {
    /// The key of the step.
    pub step: String,
    pub argv: Vec<String>,
    /// Names of the variables that the workflow sets for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
}

/// A worker's answer to a [`RunOffer`]. A repeat is harmless.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OfferAnswer {
    pub tenant: TenantId,
    pub run: RunId,
    pub epoch: u64,
    pub number: u32,
    pub answer: OfferVerdict,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum OfferVerdict {
    /// Every check has passed: the worker takes the run, and has made its directory.
    Acked,
    /// A check has failed: another worker is asked.
    Refused {
        check: PreflightCheck,
        why: String,
        /// The fault is the worker's or its host's, and no other worker need fail alike: it counts as `errored`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        own_fault: bool,
    },
}

impl RunOffer {
    /// What a worker is asked about the run as it stands; nothing where it is not being offered.
    pub fn of(run: &Run, epoch: u64) -> Option<Self> {
        let assignment = run.notes.assignment.as_deref()?;
        let with = assignment.offered()?;
        let mut credentials: Vec<String> = Vec::new();
        let mut commands = Vec::new();
        for spec in &run.plan.steps {
            let offered = |argv: &[String], variables: Vec<String>| OfferedCommand {
                step: spec.key.clone(),
                argv: argv.to_vec(),
                variables,
            };
            let command = match &spec.work {
                Work::Command { argv, env } => Some(offered(argv, env.keys().cloned().collect())),
                _ => None,
            };
            let undo = match spec.rollback.as_ref().map(|rollback| &rollback.by) {
                Some(Undo::Argv(argv)) => Some(offered(argv, Vec::new())),
                _ => None,
            };
            if command.is_some() || undo.is_some() {
                credentials.extend(spec.rules.credentials.iter().cloned());
            }
            let is_known = |command: &OfferedCommand| !command.argv.iter().any(|text| is_template(text));
            commands.extend(command.into_iter().chain(undo).filter(is_known));
        }
        credentials.sort_unstable();
        credentials.dedup();
        Some(Self {
            at: RunRef { tenant: run.tenant, run: run.id },
            epoch,
            number: assignment.number,
            workflow: run.plan.workflow.clone(),
            ack_within_ms: with.ack_by.since(with.offered_at),
            profile: run.plan.rules.profile.clone().unwrap_or_default(),
            environment: run.plan.environment().to_owned(),
            commands,
            credentials,
        })
    }
}
