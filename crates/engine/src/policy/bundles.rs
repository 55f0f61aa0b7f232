//! Versions of a tenant's policy: given, put in force or beside it, asked, and held against what was decided.

use std::collections::BTreeMap;
use std::sync::Arc;

use interlock_boxed::boxed;
use interlock_core::ids::{DecisionId, RunId, TenantId};
use interlock_core::json::{Hash, Json, check_exact};
use interlock_core::rejection::Rejection;
use interlock_core::run::decision::Basis;
use interlock_core::time::Timestamp;
use interlock_policy::{
    Bundle, BundleSources, LoadError, PolicyInput, StoredDecision, explain, replay, run_tests_while,
};
pub use interlock_policy::{RuleTest, TestOutcome};
use interlock_store::{
    Changed, FinishIdempotency, PolicyBundleRow, PolicyBundleSummary, PolicyRow, PutPolicyBundle, SetPolicy,
};
use interlock_workflow::expression::budget::Budget;
use serde_json::json;

use super::rules::shipped;
use super::standing_replay::ReplayedStanding;
use crate::audit::Actor;
use crate::error::EngineError;
use crate::parts::Policies;

/// How often a change is tried again after another change came first.
const TRIES_MAX: usize = 8;
/// The versions that one tenant may have.
pub const VERSIONS_MAX: u32 = 10_000;
/// How many decisions a replay holds a bundle against, and how many differences it tells.
pub const REPLAY_MAX: usize = 20_000;
pub const DIFFERENCES_MAX: usize = 200;
const REPLAY_PAGE: usize = 250;

/// A policy that is to be.
#[derive(Debug, Clone)]
pub struct NewPolicy {
    pub tenant: TenantId,
    /// Names of files and their texts.
    pub files: BTreeMap<String, String>,
    pub note: Option<String>,
    pub by: Actor,
}

/// What is in force.
#[derive(Debug, Clone)]
pub struct PolicyInForce {
    /// Nothing where the tenant has never given a policy.
    pub row: Option<PolicyRow>,
    pub active: Hash,
    pub shadow: Option<Hash>,
}

/// A change of what is in force. What is left out stays.
#[derive(Debug, Clone)]
pub struct PolicyChange {
    /// `Some(None)` goes back to the shipped policy.
    pub active: Option<Option<u32>>,
    pub shadow: Option<Option<u32>>,
    /// Refused if the policy has another revision by now.
    pub revision: Option<u64>,
    pub by: Actor,
}

/// What a policy says about an input document.
#[derive(Debug, Clone)]
pub struct PolicySays {
    pub verdict: &'static str,
    /// Nothing where it has no answer.
    pub answer: Option<Json>,
    /// The answer in words.
    pub explained: String,
}

const UNDECIDED: &str = "undecided";

/// What another policy would have decided.
#[derive(Debug, Clone, Default)]
pub struct Replayed {
    /// Decisions that were looked at; all that there are, unless `more`.
    pub decisions: usize,
    pub same: usize,
    pub newly_allowed: usize,
    pub newly_gated: usize,
    pub newly_denied: usize,
    pub newly_undecided: usize,
    /// The same verdict, for other reasons or with other obligations.
    pub otherwise: usize,
    /// Decisions whose input this release cannot read, or that left out fields at which these rules look.
    pub unreadable: usize,
    pub differences: Vec<ReplayedDifference>,
    /// There are more decisions than were looked at.
    pub more: bool,
    /// What is allowed in every run by the rules in force; no decision is kept of it.
    pub standing: ReplayedStanding,
}

#[derive(Debug, Clone)]
pub struct ReplayedDifference {
    pub decision: DecisionId,
    pub run: RunId,
    pub step: u32,
    pub operation: String,
    pub before: String,
    pub after: String,
    pub reasons: Vec<String>,
}

impl Policies {
    /// What the tenant's actions are held against.
    #[boxed]
    pub async fn in_force(&self, tenant: TenantId) -> Result<PolicyInForce, EngineError> {
        let row = self.0.0.store.policy(tenant).await?;
        let rules = self.0.rules_of(tenant).await?;
        let shadow = rules.shadow.map(|bundle| bundle.hash());
        Ok(PolicyInForce { row, active: rules.active.hash(), shadow })
    }

    /// Keeps a new version. Its rules must be sound and its own tests must pass; it is not in force by that. The same files
    /// again are the version that they were. `answer` is kept in the commit that adds the version.
    pub async fn put(
        &self,
        new: NewPolicy,
        answer: impl Fn(&PolicyBundleSummary) -> Result<Option<FinishIdempotency>, EngineError> + Send,
    ) -> Result<PolicyBundleSummary, EngineError> {
        let NewPolicy { tenant, files, note, by } = new;
        let text = serde_json::to_string(&files).map_err(|error| invalid(vec![error.to_string()]))?;
        let hash = self.0.evaluate_tests(tenant, move |budget| checked(files, budget)).await?.map_err(invalid)?;
        for _ in 0..TRIES_MAX {
            if let Some(known) = self.0.0.store.policy_bundle_hashed(tenant, hash).await? {
                return Ok(known.summary);
            }
            let latest = self.0.0.store.policy(tenant).await?.map_or(0, |row| row.latest);
            if latest >= VERSIONS_MAX {
                return Err(invalid(vec![format!("a tenant has at most {VERSIONS_MAX} versions of its policy")]));
            }
            let (created_at, created_by) = (self.0.now(), by.name().map(str::to_owned));
            let summary = PolicyBundleSummary { version: latest + 1, hash, note: note.clone(), created_at, created_by };
            let bundle = PolicyBundleRow { summary: summary.clone(), files: text.clone() };
            let details = json!({ "version": summary.version, "hash": hash.to_string(), "note": note });
            let what = by.did("policy.pushed", summary.version, &details);
            let put = PutPolicyBundle { tenant, bundle };
            if self.0.write_answering(tenant, put, what, answer(&summary)?).await? == Changed::Done {
                return Ok(summary);
            }
        }
        Err(EngineError::Overloaded)
    }

    /// Puts versions in force, or beside the one in force.
    #[boxed]
    pub async fn change(&self, tenant: TenantId, change: PolicyChange) -> Result<PolicyInForce, EngineError> {
        for version in [change.active.flatten(), change.shadow.flatten()].into_iter().flatten() {
            self.0.version_of_policy(tenant, version).await?;
        }
        for _ in 0..TRIES_MAX {
            let Some(row) = self.0.0.store.policy(tenant).await? else {
                // Nothing but the shipped policy has ever been there.
                return self.in_force(tenant).await;
            };
            if change.revision.is_some_and(|revision| revision != row.revision) {
                return Err(EngineError::PolicyChanged);
            }
            let set = SetPolicy {
                tenant,
                active: change.active.unwrap_or(row.active),
                shadow: change.shadow.unwrap_or(row.shadow),
                revision: row.revision,
                at: self.0.now(),
                by: change.by.name().map(str::to_owned),
            };
            let details = json!({ "active": set.active, "shadow": set.shadow });
            // The shipped policy has no version of its own.
            let what = change.by.did("policy.changed", set.active.unwrap_or_default(), &details);
            if self.0.write_noted(tenant, set, what).await? == Changed::Done {
                self.0.0.rules.forget(tenant);
                // The scan has workers judged anew whom the rules so far kept from steps.
                self.0.0.dispatch.rescan.notify_one();
                return self.in_force(tenant).await;
            }
        }
        Err(EngineError::Overloaded)
    }

    /// What a version, or the one in force, says about an input document.
    #[boxed]
    pub async fn ask(&self, tenant: TenantId, version: Option<u32>, input: &Json) -> Result<PolicySays, EngineError> {
        check_exact(input.as_str()).map_err(|what| Rejection::InvalidInput { what: format!("`input`: {what}") })?;
        let what = |error: serde_json::Error| format!("`input` is no input document: {error}");
        let input: PolicyInput = input.decode().map_err(|error| Rejection::InvalidInput { what: what(error) })?;
        let bundle = self.bundle(tenant, version).await?;
        let decided = self.0.evaluate(tenant, move |_| bundle.decide(&input.with_command())).await?;
        Ok(PolicySays {
            verdict: decided.as_ref().map_or(UNDECIDED, |decision| decision.verdict.as_str()),
            explained: explain(&decided),
            answer: decided.ok().and_then(|decision| Json::of(&decision).ok()),
        })
    }

    /// The files of a version; of the shipped policy for none.
    #[boxed]
    pub async fn files(&self, tenant: TenantId, version: Option<u32>) -> Result<BTreeMap<String, String>, EngineError> {
        let Some(version) = version else { return Ok(shipped().sources().files()) };
        let row = self.0.0.store.policy_bundle(tenant, version).await?;
        let row = row.ok_or(EngineError::UnknownPolicy { version })?;
        let unreadable = |error: serde_json::Error| {
            EngineError::Store(format!("version {version} of the policy cannot be read: {error}"))
        };
        serde_json::from_str(&row.files).map_err(unreadable)
    }

    /// Runs the tests of files that are no version yet. Files that could not become a version are refused instead.
    #[boxed]
    pub async fn test(&self, tenant: TenantId, files: BTreeMap<String, String>) -> Result<Vec<RuleTest>, EngineError> {
        let run = move |budget: &Budget| {
            let sources = BundleSources::of_files(files)?;
            let tests = tested(&sources, budget)?;
            Bundle::load(sources)?;
            Ok(tests)
        };
        self.0.evaluate_tests(tenant, run).await?.map_err(|error| invalid(problems(&error)))
    }

    /// Holds a version, or the one in force, against what has been decided since an instant.
    #[boxed]
    pub async fn replay(
        &self,
        tenant: TenantId,
        version: Option<u32>,
        since: Timestamp,
    ) -> Result<Replayed, EngineError> {
        let bundle = self.bundle(tenant, version).await?;
        let standing = Box::pin(self.replay_standing(tenant, &bundle)).await?;
        let mut result = Replayed { standing, ..Replayed::default() };
        let mut after = None;
        loop {
            let page = self.0.0.store.decisions_since(tenant, since, after, REPLAY_PAGE).await?;
            let Some(last) = page.last() else { return Ok(result) };
            after = Some(last.record.id);
            let full = page.len() == REPLAY_PAGE;
            let bundle = Arc::clone(&bundle);
            result = self.0.evaluate(tenant, move |budget| hold_against(&bundle, page, result, budget)).await?;
            if !full {
                return Ok(result);
            }
            if result.decisions >= REPLAY_MAX {
                result.more = true;
                return Ok(result);
            }
        }
    }

    async fn bundle(&self, tenant: TenantId, version: Option<u32>) -> Result<Arc<Bundle>, EngineError> {
        match version {
            // The shipped policy has no version of its own.
            Some(0) => Ok(shipped()),
            Some(version) => self.0.version_of_policy(tenant, version).await,
            None => Ok(self.0.rules_of(tenant).await?.active),
        }
    }
}

fn invalid(problems: Vec<String>) -> EngineError {
    EngineError::PolicyInvalid { problems }
}

fn problems(error: &LoadError) -> Vec<String> {
    error.0.iter().map(ToString::to_string).collect()
}

/// What became of each test. A request that was refused meanwhile computes no further.
fn tested(sources: &BundleSources, budget: &Budget) -> Result<Vec<RuleTest>, LoadError> {
    run_tests_while(sources, || budget.hand_over(0).is_ok())
}

/// The hash of files that are sound and whose tests pass; or what is wrong with them.
fn checked(files: BTreeMap<String, String>, budget: &Budget) -> Result<Hash, Vec<String>> {
    let sources = BundleSources::of_files(files).map_err(|error| problems(&error))?;
    let tests = tested(&sources, budget).map_err(|error| problems(&error))?;
    let failed: Vec<String> = tests.iter().filter(|test| !test.has_passed()).map(ToString::to_string).collect();
    if !failed.is_empty() {
        return Err(failed);
    }
    Ok(Bundle::load(sources).map_err(|error| problems(&error))?.hash())
}

fn hold_against(
    bundle: &Bundle,
    page: Vec<interlock_store::DecisionRow>,
    mut result: Replayed,
    budget: &Budget,
) -> Replayed {
    for row in page {
        if budget.hand_over(0).is_err() {
            // The caller has stopped waiting for it.
            break;
        }
        result.decisions += 1;
        let known = |stored: &StoredDecision| !(bundle.reads_fields() && stored.input.is_without_fields());
        let Some(stored) = stored(&row.record.basis).filter(known) else {
            result.unreadable += 1;
            continue;
        };
        let found = replay(bundle, std::slice::from_ref(&stored));
        let Some(difference) = found.differences().next() else {
            result.same += 1;
            continue;
        };
        result.newly_allowed += found.newly_allowed.len();
        result.newly_gated += found.newly_gated.len();
        result.newly_denied += found.newly_denied.len();
        result.newly_undecided += found.newly_undecided.len();
        result.otherwise += found.otherwise.len();
        if result.differences.len() < DIFFERENCES_MAX {
            let reasons = difference.after.iter().flat_map(|after| &after.reasons).map(ToString::to_string);
            result.differences.push(ReplayedDifference {
                decision: row.record.id,
                run: row.run,
                step: row.record.position,
                operation: row.record.operation.clone(),
                before: difference.from().as_str().to_owned(),
                after: difference.to().as_str().to_owned(),
                reasons: reasons.collect(),
            });
        }
    }
    result
}

fn stored(basis: &Basis) -> Option<StoredDecision> {
    let decision = match &basis.answer {
        Some(answer) => Some(answer.decode().ok()?),
        None => None,
    };
    let evaluator = basis.evaluator.clone();
    Some(StoredDecision { input: basis.input.decode().ok()?, bundle: basis.bundle, evaluator, decision })
}
