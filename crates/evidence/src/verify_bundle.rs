//! Verifies a bundle with the public key alone. Two verdicts: integrity (what is there is what was sealed) and
//! completeness (nothing of the run is missing).

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::json::Hash;
use interlock_core::text::json_words::json_error;
use serde_json::Value;

use crate::bundle::{
    LogPart, PREDICATE_TYPE, Predicate, ProvenEntry, Record, RunFacts, STATEMENT_TYPE, Statement, model_steps,
    pinned_text, record_digest,
};
use crate::checkpoint::Checkpoint;
use crate::costs::costs;
use crate::credentials::credentials;
use crate::details::{PayloadFacts, ReadDetails, ended_by};
use crate::entry::Commitments;
use crate::envelope;
use crate::key::PublicKey;
use crate::leave::leave;
use crate::limits::PROOF_HASHES_MAX;
use crate::model_attempts::model_attempts;
use crate::page::instant;
use crate::tree::root_from_inclusion;

/// Findings of one kind are told up to this many.
const FINDINGS_MAX: usize = 100;

/// The verdicts. Without findings they are good.
#[derive(Debug, Clone, PartialEq)]
pub struct BundleReport {
    /// What is not as it was sealed.
    pub integrity: Vec<String>,
    /// What is missing. Means nothing where the integrity is not given.
    pub completeness: Vec<String>,
    /// What the bundle says; absent where not even its signature is good.
    pub statement: Option<Box<Statement>>,
}

impl BundleReport {
    pub fn is_intact(&self) -> bool {
        self.integrity.is_empty()
    }

    pub fn is_complete(&self) -> bool {
        self.is_intact() && self.completeness.is_empty()
    }

    fn refused(why: String) -> Self {
        let completeness = vec!["not judged: the bundle's integrity is not given".to_owned()];
        Self { integrity: vec![why], completeness, statement: None }
    }
}

pub fn verify_bundle(bundle: &str, key: &PublicKey) -> BundleReport {
    let payload = match envelope::open(bundle, key) {
        Ok(payload) => payload,
        Err(error) => return BundleReport::refused(error.to_string()),
    };
    let statement: Statement = match serde_json::from_slice(&payload) {
        Ok(statement) => statement,
        Err(error) => {
            let what = json_error(&error);
            return BundleReport::refused(format!("the payload is not an Interlock statement: {what}"));
        }
    };
    let mut integrity = Findings::default();
    check_head(&statement, &mut integrity);
    let mut origins = BTreeSet::new();
    for log in &statement.predicate.logs {
        if let Some(origin) = check_log(&statement, log, key, &mut integrity)
            && let Some(twice) = origins.replace(origin)
        {
            integrity.add(format!("the log `{twice}` is in the bundle twice"));
        }
    }
    let rows = opened_rows(&statement.predicate);
    check_record(&statement, &rows, &mut integrity);
    let completeness = missing(&statement, &rows);
    // The cost can be compared only where no event is missing.
    let told = || costs(rows.iter().flat_map(|(_, details)| &details.events));
    if completeness.0.is_empty() && told() != statement.predicate.record.costs {
        integrity.add("the record says otherwise than the log what the run has cost");
    }
    let record = &statement.predicate.record;
    let asked = || model_attempts(&model_steps(&record.steps), rows.iter().flat_map(|(_, details)| &details.events));
    if completeness.0.is_empty() && record.model_attempts.is_some() && asked() != record.model_attempts {
        integrity.add("the record says otherwise than the log how often models were asked, and at what known price");
    }
    let allowed = || leave(rows.iter().flat_map(|(_, details)| &details.events));
    if completeness.0.is_empty()
        && let Some(told) = &statement.predicate.record.leave
        && allowed() != *told
    {
        integrity.add("the record says otherwise than the log under which rules its steps were let happen");
    }
    let given = || credentials(rows.iter().filter_map(|(_, details)| details.context.as_ref()));
    if completeness.0.is_empty() && given() != statement.predicate.record.credentials_used {
        integrity.add("the record says otherwise than the log which credentials its steps were given");
    }
    BundleReport { integrity: integrity.0, completeness: completeness.0, statement: Some(Box::new(statement)) }
}

#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    fn add(&mut self, finding: impl Into<String>) {
        if self.0.len() < FINDINGS_MAX {
            self.0.push(finding.into());
        }
    }
}

fn check_head(statement: &Statement, findings: &mut Findings) {
    if statement.kind != STATEMENT_TYPE || statement.predicate_type != PREDICATE_TYPE {
        findings.add(format!("it is a `{}` of `{}`", statement.kind, statement.predicate_type));
    }
    let record = &statement.predicate.record;
    let digest = record_digest(record).to_string();
    let fits = statement.subject.len() == 1
        && statement.subject[0].name == record.run.run.to_string()
        && statement.subject[0].digest.get("sha256") == Some(&digest);
    if !fits {
        findings.add("the statement's subject is not the run that it records");
    }
}

/// Every entry is in the log of the run's tenant whose head the key has signed, and what is shown of it belongs to it.
/// Answers which log it is.
fn check_log(statement: &Statement, log: &LogPart, key: &PublicKey, findings: &mut Findings) -> Option<String> {
    let head = match Checkpoint::open(&log.checkpoint, key) {
        Ok(head) => head,
        Err(error) => {
            findings.add(error.to_string());
            return None;
        }
    };
    let RunFacts { run, tenant, .. } = &statement.predicate.record.run;
    let (run, tenant) = (*run, tenant.to_string());
    if head.origin.rsplit('/').nth(1) != Some(tenant.as_str()) {
        findings.add(format!("the log `{}` is not one of the run's tenant {tenant}", head.origin));
    }
    let mut last = None;
    for ProvenEntry { logged, proof } in &log.entries {
        let (entry, index) = (&logged.entry, logged.entry.index);
        if entry.origin != head.origin {
            findings.add(format!("entry {index} is of the log `{}`, not `{}`", entry.origin, head.origin));
        }
        if last.is_some_and(|last| last >= index) {
            findings.add(format!("entry {index} is not in the order of the log"));
        }
        last = Some(index);
        let about_run = entry.body.run == Some(run) || entry.body.subject == Some(run.to_string());
        if !about_run {
            findings.add(format!("entry {index} is not about {run}"));
        }
        let proof: Vec<Hash> = proof.iter().take(PROOF_HASHES_MAX + 1).map(|hash| hash.0).collect();
        if root_from_inclusion(entry.leaf(logged.leaf_salt), index, head.size, &proof) != Some(head.root) {
            findings.add(format!("entry {index} is not in the log: its proof does not lead to the signed head"));
        }
        if let Some(Err(field)) = logged.opened.as_ref().map(|opened| opened.check(&entry.body)) {
            let field = format!("{field:?}").to_lowercase();
            findings.add(format!("entry {index}: what is shown as its {field} does not belong to its hash"));
        }
    }
    Some(head.origin)
}

/// The details of the run's entries that are shown, in order.
fn opened_rows(predicate: &Predicate) -> Vec<(&ProvenEntry, ReadDetails)> {
    let read = |proven| {
        let proven: &ProvenEntry = proven;
        let opened = proven.logged.opened.as_ref()?;
        Some((proven, ReadDetails::parse(opened.details.as_deref()?)?))
    };
    predicate.entries().filter_map(read).collect()
}

/// What the record says is what the log says.
fn check_record(statement: &Statement, rows: &[(&ProvenEntry, ReadDetails)], findings: &mut Findings) {
    let record = &statement.predicate.record;
    let mut done: BTreeMap<u32, (&str, u32, Option<PayloadFacts>)> = BTreeMap::new();
    let mut ended = None;
    for (proven, details) in rows {
        if let Some(step) = &details.done {
            done.insert(step.position, (step.state.as_str(), step.attempt, details.output));
        }
        for event in &details.events {
            if let Some(state) = ended_by(event) {
                ended = Some((state, proven.logged.entry.body.at));
            }
        }
    }
    if let Some((state, at)) = ended
        && (state != record.run.state || at != record.run.finished_at)
    {
        let (told, finished, at) = (&record.run.state, instant(record.run.finished_at), instant(at));
        findings.add(format!("the record says that the run {told} at {finished}, the log that it {state} at {at}"));
    }
    check_origin(&record.run, rows, findings);
    for step in &record.steps {
        let Some((state, attempt, output)) = done.get(&step.position) else { continue };
        // A restart takes a step back, and a rollback's own step says that it was rolled back.
        let settled = matches!(step.state.as_str(), "succeeded" | "failed" | "skipped");
        if settled && (*state != step.state || *attempt != step.attempt || *output != step.output) {
            findings.add(format!("step `{}` is recorded otherwise than the log says", step.key));
        }
    }
    check_pins(record, statement, findings);
}

/// The run is of the workflow, and was started by whom the log says.
fn check_origin(run: &RunFacts, rows: &[(&ProvenEntry, ReadDetails)], findings: &mut Findings) {
    let created = rows.iter().find_map(|(proven, details)| {
        let event = details.events.iter().find(|event| event["event"] == "session.created")?;
        Some((proven, event))
    });
    let Some((proven, event)) = created else { return };
    if event["workflow"] != *run.workflow || event["version"] != run.workflow_version {
        return findings.add("the record names another workflow or version than the log");
    }
    // Runs of older versions have no origin in their first event.
    let origin = event["origin"].as_str();
    let actor = proven.logged.opened.as_ref().and_then(|opened| opened.actor.as_ref());
    // A key that nobody owns goes on with somebody's run in their name: who started such a run is told by its origin alone.
    let is_in_anothers_name = run.resumed_from.is_some() && origin.is_some();
    if let (Some(actor), Some(started_by)) = (actor, &run.started_by)
        && actor != started_by
        && !is_in_anothers_name
    {
        return findings.add("the record and the log name different people as the one who started the run");
    }
    if let Some(origin) = origin
        && run.origin().is_none_or(|recorded| recorded.to_string() != origin)
    {
        let what = "inputs, plan, subject, trigger, starter, workspace, earlier run or time of creation";
        findings.add(format!("the record says otherwise than the log what the run was made of: its {what}"));
    }
}

/// Decisions, receipts and approvals are as the log last saw them.
fn check_pins(record: &Record, statement: &Statement, findings: &mut Findings) {
    let mut check = |id: String, text: String| {
        let entries = statement.predicate.entries();
        let pinned = entries.rev().find_map(|proven| Some((proven, proven.logged.entry.body.pins.get(&id)?)));
        let Some((proven, pin)) = pinned else {
            return findings.add(format!("{id} is in the record, and the log does not know it"));
        };
        // Without its salt a pin says nothing; that it is missing is a matter of completeness.
        let Some(opened) = &proven.logged.opened else { return };
        if Commitments(opened.salt).pin(&id, &text) != pin.0 {
            findings.add(format!("{id} is recorded otherwise than the log says"));
        }
    };
    for decision in &record.decisions {
        check(decision.decision.to_string(), pinned_text(decision));
    }
    for approval in &record.approvals {
        check(approval.approval.to_string(), pinned_text(approval));
    }
    for receipt in &record.receipts {
        check(receipt.receipt.to_string(), pinned_text(receipt));
    }
}

fn missing(statement: &Statement, rows: &[(&ProvenEntry, ReadDetails)]) -> Findings {
    let mut findings = Findings::default();
    let record = &statement.predicate.record;
    let mut next = 1;
    for ProvenEntry { logged, .. } in statement.predicate.entries() {
        if logged.opened.as_ref().is_none_or(|opened| opened.details.is_none() && logged.entry.body.details.is_some()) {
            findings.add(format!("the details of entry {} are not there (erased)", logged.entry.index));
        }
        let Some((first, last)) = logged.entry.body.seq else { continue };
        if first != next {
            findings.add(format!("the run's events {next} to {} are not in the bundle", first.saturating_sub(1)));
        }
        next = last.saturating_add(1);
    }
    if next <= record.run.version {
        findings.add(format!("the run's events {next} to {} are not in the bundle", record.run.version));
    }
    let events = || rows.iter().flat_map(|(_, details)| &details.events);
    if !events().any(|event| ended_by(event).is_some()) {
        findings.add("no event says how the run has ended");
    }
    // A receipt of another run, which did the same before, is in that run's record.
    let own = |event: &&Value| event["event"] != "receipt.deduplicated";
    let named = |field: &str| -> BTreeSet<String> {
        events().filter(own).filter_map(|event| event[field].as_str().map(str::to_owned)).collect()
    };
    let approvals: BTreeSet<String> = record.approvals.iter().map(|approval| approval.approval.to_string()).collect();
    let receipts: BTreeSet<String> = record.receipts.iter().map(|receipt| receipt.receipt.to_string()).collect();
    let decisions: BTreeSet<String> = record.decisions.iter().map(|decision| decision.decision.to_string()).collect();
    for (what, listed) in [("decision", decisions), ("approval", approvals), ("receipt", receipts)] {
        for id in named(what).difference(&listed) {
            findings.add(format!("the {what} {id} happened and is not in the record"));
        }
    }
    let steps: BTreeSet<u64> = record.steps.iter().map(|step| u64::from(step.position)).collect();
    let touched: BTreeSet<u64> = events().filter_map(|event| event.get("step").and_then(Value::as_u64)).collect();
    for step in touched.difference(&steps) {
        findings.add(format!("step {step} is not in the record"));
    }
    findings
}
