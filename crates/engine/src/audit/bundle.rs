//! The evidence of a run: made once, kept with its hash, and the same bytes whenever it is asked for. What comes to light
//! after it was made goes into a numbered addendum, which tells everything anew and names the bundle before it.

use std::time::Duration;

use interlock_boxed::boxed;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::{Hash, HashHex, Json};
use interlock_core::rejection::Rejection;
use interlock_core::time::Millis;
use interlock_evidence::bundle::{Predicate, Record, Statement, StepFacts};
use interlock_evidence::envelope;
use interlock_evidence::page::page;
use interlock_evidence::verify_bundle::verify_bundle;
use interlock_store::{BundleRow, JournalRow, PutBundle, Stored, TenantStore};

use super::facts::{self, DECISIONS_MAX};
use super::{broken, proof};
use crate::error::EngineError;
use crate::parts::Audit;

/// How long an answer waits until a run's events are in the log, and how often it looks.
const SEALED_WITHIN: Millis = Millis::from_secs(3);
const SEALED_LOOK_EVERY: Duration = Duration::from_millis(50);

/// Events whose rows are read at a time.
const EVENTS_READ: u64 = 1_000;
/// What an entry takes in a bundle beside its events, at the least: hashes, salts, ids and the origin.
const ENTRY_BYTES_MIN: usize = 400;

/// A bundle as it was made.
#[derive(Debug, Clone)]
pub struct Evidence {
    pub number: u32,
    pub sha256: Hash,
    /// The DSSE envelope.
    pub bundle: Json,
}

impl Audit {
    /// Makes a run's bundle, or an addendum, where what there is does not tell everything.
    pub(crate) async fn bundle(&self, tenant: TenantId, run: RunId) -> Result<(), EngineError> {
        let store = self.0.for_tenant(tenant);
        let made = store.bundles(run).await?;
        let Some(predicate) = self.predicate(tenant, run, made.last()).await? else { return Ok(()) };
        let number = predicate.number;
        let entries = predicate.entries().count() as u64;
        let bundle = Statement::new(predicate).sign(self.signing_key()?);
        let max = self.0.0.options.evidence_bytes_max;
        if bundle.len() > max {
            return Err(EngineError::EvidenceTooLarge { run, max });
        }
        // A receipt may have been settled a moment ago, and the log does not know it yet: what would not verify is not made.
        let report = verify_bundle(bundle.as_str(), self.key()?);
        if let Some(finding) = report.integrity.into_iter().next() {
            let under_way = !self.0.0.store.audit_notes(tenant, 1).await?.is_empty();
            return Err(if under_way { EngineError::EvidenceNotSealed { run } } else { broken(finding) });
        }
        let (sha256, bytes, now) = (Hash::of(bundle.as_str().as_bytes()), bundle.len() as u64, self.0.now());
        let body = match self.0.payloads() {
            Some(payloads) => payloads.keep(tenant, run.into(), &bundle, now).await?,
            None => bundle,
        };
        let row = BundleRow { tenant, run, number, sha256, bytes, entries, made_at: now, body };
        match self.0.0.store.write(PutBundle(row)).await? {
            // A duplicate: another request or server has made the same bundle.
            Stored::Stored | Stored::Duplicate => Ok(()),
        }
    }

    /// Makes a bundle of a run that may have ended a moment ago: what is on its way into the log is waited for.
    async fn bundle_soon(&self, tenant: TenantId, run: RunId) -> Result<(), EngineError> {
        let until = self.0.now() + SEALED_WITHIN;
        loop {
            match self.bundle(tenant, run).await {
                Err(EngineError::EvidenceNotSealed { .. }) if self.0.now() < until => {
                    self.0.0.wake_audit.notify_one();
                    tokio::time::sleep(SEALED_LOOK_EVERY).await;
                }
                made => return made,
            }
        }
    }

    /// What the next bundle says; none where the last one says it already.
    async fn predicate(
        &self,
        tenant: TenantId,
        run: RunId,
        previous: Option<&BundleRow>,
    ) -> Result<Option<Predicate>, EngineError> {
        let store = self.0.for_tenant(tenant);
        let summary = store.run_overview(run).await?.ok_or(Rejection::UnknownRun { run })?;
        if !summary.state.is_terminal() {
            return Err(EngineError::EvidenceNotDue { run });
        }
        let (receipts, approvals) = (store.receipts(run).await?, store.approvals_of(run).await?);
        let rows = self.rows(&store, run, summary.version).await?;
        let late: Vec<_> =
            receipts.iter().filter(|row| row.receipt.late).filter_map(|row| row.receipt.outcome_at).collect();
        let found = proof::logs(&store, run, &rows, &late).await?;
        let logs = found.filter(|logs| !logs.is_empty()).ok_or(EngineError::EvidenceNotSealed { run })?;
        let entries: usize = logs.iter().map(|log| log.entries.len()).sum();
        if previous.is_some_and(|previous| previous.entries >= entries as u64) {
            return Ok(None);
        }
        let steps: Vec<StepFacts> = store.steps(run).await?.iter().map(facts::step).collect();
        let record = Record {
            run: facts::run(&summary, store.plan_hash_of(run).await?),
            model_attempts: facts::model_attempts(&steps, &rows),
            steps,
            decisions: store.decisions_of(run, DECISIONS_MAX).await?.iter().map(facts::decision).collect(),
            leave: Some(facts::leave(&rows)),
            approvals: approvals.iter().map(facts::approval).collect(),
            receipts: facts::receipts(&receipts),
            costs: facts::costs(&rows),
            credentials_used: facts::credentials(&rows),
        };
        let number = previous.map_or(0, |previous| previous.number + 1);
        Ok(Some(Predicate { number, previous: previous.map(|previous| HashHex(previous.sha256)), record, logs }))
    }

    /// The rows of a run's journal, without inputs and outputs: a bundle has only their hashes, which the entries bring. A run
    /// whose rows alone are too long for a bundle is refused before all of them are in memory.
    async fn rows(&self, store: &TenantStore, run: RunId, version: u64) -> Result<Vec<JournalRow>, EngineError> {
        let max = self.0.0.options.evidence_bytes_max;
        let (mut rows, mut bytes, mut next) = (Vec::new(), 0, 1);
        while next <= version {
            let last = version.min(next + EVENTS_READ - 1);
            for mut row in store.journal_rows(&[(run, next, last)]).await?.into_iter().flatten() {
                (row.input, row.output) = (None, None);
                bytes += ENTRY_BYTES_MIN + row.events.len() + row.error.as_ref().map_or(0, Json::len);
                rows.push(row);
            }
            // Base64 makes four bytes of three.
            if bytes / 3 * 4 > max {
                return Err(EngineError::EvidenceTooLarge { run, max });
            }
            next = last + 1;
        }
        Ok(rows)
    }

    /// A run's evidence: the newest, or the one with this number. Made now, if it was not made yet.
    #[boxed]
    pub async fn evidence(&self, tenant: TenantId, run: RunId, number: Option<u32>) -> Result<Evidence, EngineError> {
        let store = self.0.for_tenant(tenant);
        let mut made = store.bundles(run).await?;
        if made.is_empty() {
            self.bundle_soon(tenant, run).await?;
            made = store.bundles(run).await?;
        }
        let row = match number {
            None => made.pop(),
            Some(number) => made.into_iter().find(|row| row.number == number),
        };
        let row = row.ok_or(EngineError::UnknownBundle { run, number: number.unwrap_or_default() })?;
        let bundle = match self.0.payloads() {
            Some(payloads) => payloads.fetch(tenant, &row.body).await?,
            None => row.body,
        };
        if Hash::of(bundle.as_str().as_bytes()) != row.sha256 {
            return Err(broken(format!("the bundle {} of {run} is not what was made", row.number)));
        }
        Ok(Evidence { number: row.number, sha256: row.sha256, bundle })
    }
}

impl Evidence {
    /// The page that shows it to people.
    pub fn page(&self) -> Result<String, EngineError> {
        let payload = envelope::payload_unverified(self.bundle.as_str()).map_err(|error| broken(error.to_string()))?;
        let statement: Statement = serde_json::from_slice(&payload).map_err(|error| broken(error.to_string()))?;
        Ok(page(&statement, self.sha256))
    }
}
