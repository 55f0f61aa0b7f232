//! Which runs have evidence without being asked for it, what it says of their credentials, and what becomes of it when
//! something comes late, a person is erased or retention removes the run; on both databases.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::cost::Cost;
use interlock_core::governance::action::Action;
use interlock_core::governance::judge::{Decision, Judge, Ruling};
use interlock_core::ids::{KeyId, RunId, TenantId};
use interlock_core::json::{HashHex, Json};
use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_core::plan::{StepSpec, Work};
use interlock_core::run::Run;
use interlock_core::run::change::Context;
use interlock_core::state::{Initiator, RunState};
use interlock_core::time::{Millis, Timestamp};
use interlock_core::work::credential::CredentialUsed;
use interlock_core::work::{EFFECTS, EffectOutcome, Report, ReportedOutcome, WorkerHello};
use interlock_engine::audit::erase::LogPlace;
use interlock_engine::{Engine, EngineOptions, JudgedBy, StartRun};
use interlock_evidence::model_attempts::ModelAttempts;
use interlock_evidence::verify_bundle::verify_bundle;
use interlock_store::{EraseAuditDetails, Sweep};

use crate::audit::{bundles, caught_up, copy, key, logging, verify};
use crate::effects::canceled_in_doubt;
use crate::harness::{Database, PATIENCE, done, ends, engine_with, hello, plan, start, stop, tenant, work};
use crate::on_both;

#[derive(Debug)]
struct DenyAll;

impl Judge for DenyAll {
    fn judge(&self, _: &Action, _: &Run) -> Ruling {
        Decision::Deny { reasons: vec!["nothing is allowed".to_owned()] }.into()
    }
}

/// How many bundles of a run are made by themselves.
async fn bundled(engine: &Engine, tenant: TenantId, run: RunId) -> usize {
    bundles(engine, tenant, run).await.len()
}

on_both! {
    async fn a_tenant_that_wants_it_has_evidence_of_every_run(database: &Database) {
        let engine = engine_with(database, logging()).await;
        let plain = tenant(&engine, |_| {}).await;
        let always = tenant(&engine, |tenant| tenant.settings.evidence_always = true).await;
        work(&engine, 2, |assignment| async move {
            if assignment.input.as_str() == "0" { ReportedOutcome::Dead { error: StepError::new(ErrorClass::Invalid, "NO", "no") } } else { done("1") }
        });
        let steps = plan(vec![StepSpec::task("a", "a")]);
        let none = engine.runs().start(start(plain, &steps, "1")).await.unwrap().run;
        ends(&engine, plain, none).await;
        let mut runs = Vec::new();
        for input in ["1", "0"] {
            let run = engine.runs().start(start(always, &steps, input)).await.unwrap().run;
            ends(&engine, always, run).await;
            runs.push(run);
        }
        for run in runs {
            let made = bundled(&engine, always, run).await;
            assert_eq!(made, 1, "each run is bundled at its end, without being asked for");
        }
        caught_up(&engine, plain).await;
        assert!(engine.store().bundles(plain, none).await.unwrap().is_empty());
        stop(engine).await;
    }

    async fn evidence_that_is_too_long_is_told_once_and_not_tried_again(database: &Database) {
        let engine = engine_with(database, EngineOptions { evidence_bytes_max: 40_000, ..logging() }).await;
        let tenant = tenant(&engine, |tenant| tenant.settings.evidence_always = true).await;
        work(&engine, 2, |_| async { done("1") });
        let one = plan(vec![StepSpec::task("a", "a")]);
        let many = plan((0..60).map(|number| StepSpec::task(format!("a{number}"), "a")).collect());
        let long = engine.runs().start(start(tenant, &many, "1")).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, long).await, RunState::Succeeded);
        let noted = async {
            loop {
                let logged = copy(&engine, tenant, None).await;
                let told = logged.entries.iter().filter(|logged| logged.entry.body.types == ["evidence.too_large"]);
                let subjects: Vec<_> = told.map(|logged| logged.entry.body.subject.clone()).collect();
                if !subjects.is_empty() {
                    return subjects;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let noted = tokio::time::timeout(PATIENCE, noted).await.expect("the log tells of it");
        assert_eq!(noted, [Some(long.to_string())]);
        // Those after it have theirs, and nothing of it is left to do.
        let short = engine.runs().start(start(tenant, &one, "1")).await.unwrap().run;
        ends(&engine, tenant, short).await;
        assert_eq!(bundled(&engine, tenant, short).await, 1);
        assert!(engine.store().evidence_due(10).await.unwrap().iter().all(|(_, run, _)| *run != long));
        assert!(engine.health().set_aside().is_empty());
        let refused = engine.audit().evidence(tenant, long, None).await.unwrap_err();
        assert_eq!(refused.code(), "EVIDENCE_TOO_LARGE");
        assert!(refused.to_string().contains("interlock audit export"), "{refused}");
        assert!(engine.store().bundles(tenant, long).await.unwrap().is_empty());
        verify(&copy(&engine, tenant, None).await).unwrap();
        stop(engine).await;
    }

    async fn a_denied_run_has_its_evidence_soon(database: &Database) {
        let engine = engine_with(database, EngineOptions { judge: JudgedBy::Judge(Arc::new(DenyAll)), ..logging() }).await;
        let tenant = tenant(&engine, |_| {}).await;
        let run = engine.runs().start(start(tenant, &plan(vec![StepSpec::task("a", "a")]), "1")).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Failed);
        assert!(engine.store().receipts(tenant, run).await.unwrap().is_empty());
        assert_eq!(bundled(&engine, tenant, run).await, 1);
        let evidence = engine.audit().evidence(tenant, run, None).await.unwrap();
        let report = verify_bundle(evidence.bundle.as_str(), key().public());
        assert_eq!((report.integrity, report.completeness), (Vec::new(), Vec::new()));
        assert_eq!(report.statement.unwrap().predicate.record.run.reason.as_deref(), Some("policy_denied"));
        stop(engine).await;
    }

    async fn a_run_that_a_key_goes_on_with_in_somebodys_name_has_its_evidence(database: &Database) {
        let engine = engine_with(database, logging()).await;
        let tenant = tenant(&engine, |tenant| tenant.settings.evidence_always = true).await;
        work(&engine, 2, |_| async { ReportedOutcome::Dead { error: StepError::new(ErrorClass::Invalid, "NO", "no") } });
        let steps = plan(vec![StepSpec::task("a", "a")]);
        let anns = StartRun {
            by: Context::operator("ann"),
            started_by: Some("ann".into()),
            ..start(tenant, &steps, "1")
        };
        let run = engine.runs().start(anns).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Failed);
        let by = Context::by(Initiator::Operator).with_key(KeyId::from_bytes([8; 16]), "bot");
        let successor = engine.runs().resume_as_new(tenant, run, None, None, by).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, successor).await, RunState::Failed);
        for run in [run, successor] {
            assert_eq!(bundled(&engine, tenant, run).await, 1);
            let evidence = engine.audit().evidence(tenant, run, None).await.unwrap();
            let report = verify_bundle(evidence.bundle.as_str(), key().public());
            assert_eq!((report.integrity, report.completeness), (Vec::new(), Vec::new()));
            assert_eq!(report.statement.unwrap().predicate.record.run.started_by.as_deref(), Some("ann"));
        }
        assert!(engine.health().set_aside().is_empty());
        stop(engine).await;
    }

    async fn the_credentials_of_a_step_are_in_the_log_and_in_its_evidence(database: &Database) {
        let engine = engine_with(database, logging()).await;
        let tenant = tenant(&engine, |tenant| tenant.settings.evidence_always = true).await;
        let session = engine.workers().register(hello(1)).await.unwrap().session;
        let steps = plan(vec![StepSpec::task("a", "a")]);
        let used = CredentialUsed {
            credential_id: "corp/DB".into(), vault_request_id: Some("req-1".into()), lease_id: Some("lease-1".into()),
            fetched_at: Timestamp(5), revoked_at: Some(Timestamp(6)), fetch_ms: None,
        };
        // However the attempt ends: given back, tried again, done.
        let run = engine.runs().start(start(tenant, &steps, "1")).await.unwrap().run;
        for outcome in [ReportedOutcome::Released, done("1")] {
            let assignment = engine.workers().poll(session, 1, PATIENCE).await.unwrap().remove(0);
            let report = Report {
                at: assignment.at, epoch: assignment.epoch, outcome, claim_next: false, cost: None,
                credentials: vec![used.clone()],
            };
            engine.workers().complete(session, report.clone()).await.unwrap();
            // A repeat tells nothing twice, whether it is answered or refused.
            let _ = engine.workers().complete(session, report).await;
        }
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        assert_eq!(bundled(&engine, tenant, run).await, 1);
        let evidence = engine.audit().evidence(tenant, run, None).await.unwrap();
        let report = verify_bundle(evidence.bundle.as_str(), key().public());
        assert_eq!((report.integrity, report.completeness), (Vec::new(), Vec::new()));
        let facts = report.statement.unwrap().predicate.record.credentials_used;
        let told: Vec<_> = facts.iter().map(|facts| (facts.position, facts.attempt, facts.lease_id.as_deref())).collect();
        assert_eq!(told, [(0, 1, Some("lease-1")), (0, 2, Some("lease-1"))]);
        let logged = copy(&engine, tenant, None).await;
        verify(&logged).unwrap();
        let naming = logged.entries.iter().filter(|logged| {
            logged.opened.as_ref().and_then(|opened| opened.details.as_deref()).is_some_and(|text| text.contains("req-1"))
        });
        assert_eq!(naming.count(), 2, "the tenant's log has them too");
        stop(engine).await;
    }

    async fn evidence_says_how_many_model_attempts_have_no_known_price(database: &Database) {
        let engine = engine_with(database, logging()).await;
        let tenant = tenant(&engine, |tenant| tenant.settings.evidence_always = true).await;
        let capabilities = Some(vec![EFFECTS.into(), "model".into()]);
        let session = engine.workers().register(WorkerHello { capabilities, ..hello(1) }).await.unwrap().session;
        let steps = plan(vec![StepSpec::new("ask", Work::Model { model: "m".into(), with: None })]);
        let input = r#"{"connection":"openai","max_tokens":10,"model":"m","prompt":"hi","timeout_s":60}"#;
        let run = engine.runs().start(start(tenant, &steps, input)).await.unwrap().run;
        let known = Some(Box::new(Cost { micros: 7, ..Cost::default() }));
        // Given back without a word on what it has cost, and with one; and a report that says nothing of it.
        for (outcome, cost) in [(ReportedOutcome::Released, None), (ReportedOutcome::Released, known), (done("1"), None)] {
            let assignment = engine.workers().poll(session, 1, PATIENCE).await.unwrap().remove(0);
            let (at, epoch) = (assignment.at, assignment.epoch);
            let report = Report { at, epoch, outcome, claim_next: false, cost, credentials: Vec::new() };
            engine.workers().complete(session, report).await.unwrap();
        }
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        assert_eq!(bundled(&engine, tenant, run).await, 1);
        let evidence = engine.audit().evidence(tenant, run, None).await.unwrap();
        let report = verify_bundle(evidence.bundle.as_str(), key().public());
        assert_eq!((report.integrity, report.completeness), (Vec::new(), Vec::new()));
        let record = report.statement.unwrap().predicate.record;
        assert_eq!(record.model_attempts, Some(ModelAttempts { begun: 3, unpriced: 2 }));
        assert_eq!(record.costs.iter().map(|cost| cost.micros).sum::<u64>(), 7);
        let page = evidence.page().unwrap();
        assert!(page.contains("Attempts of model steps: 3. Without a known price: 2."), "{page}");
        stop(engine).await;
    }

    async fn a_person_is_erased_and_log_and_evidence_still_verify(database: &Database) {
        let engine = engine_with(database, logging()).await;
        let tenant = tenant(&engine, |_| {}).await;
        work(&engine, 2, |_| async { done("1") });
        let steps = plan(vec![StepSpec::task("a", "a")]);
        let by = |person: &str| StartRun { by: Context::operator(person), ..start(tenant, &steps, "1") };
        let mut runs = Vec::new();
        for person in ["ann", "bob"] {
            let run = engine.runs().start(by(person)).await.unwrap().run;
            ends(&engine, tenant, run).await;
            runs.push(run);
        }
        let log = caught_up(&engine, tenant).await;
        let telling = engine.audit().telling_of(tenant, "ann", LogPlace::FIRST).await.unwrap();
        assert_eq!((telling.number, telling.next), (log.number, None));
        assert!(!telling.entries.is_empty());
        let erase = EraseAuditDetails { tenant, number: telling.number, entries: telling.entries.clone() };
        engine.store().write(erase).await.unwrap();
        let none = engine.audit().telling_of(tenant, "ann", LogPlace::FIRST).await.unwrap();
        assert_eq!(none.entries, Vec::<u64>::new(), "a second time there is nothing left");

        let whole = copy(&engine, tenant, None).await;
        assert_eq!(verify(&whole).unwrap().closed, telling.entries.len() as u64);
        assert!(!serde_json::to_string(&whole.entries).unwrap().contains("\"ann\""));
        for (run, is_erased) in runs.into_iter().zip([true, false]) {
            let evidence = engine.audit().evidence(tenant, run, None).await.unwrap();
            let report = verify_bundle(evidence.bundle.as_str(), key().public());
            assert_eq!(report.integrity, Vec::<String>::new());
            let told = report.completeness.iter().any(|finding| finding.contains("(erased)"));
            assert_eq!(told, is_erased, "{:?}", report.completeness);
        }
        stop(engine).await;
    }

    async fn a_late_receipt_makes_an_addendum_that_names_the_bundle_before(database: &Database) {
        let engine = engine_with(database, logging()).await;
        let (tenant, run, session, assignment, receipt) = canceled_in_doubt(&engine).await;
        let first = bundles(&engine, tenant, run).await;
        assert_eq!(first.len(), 1, "the run has ended, and its effect is in doubt");
        let (at, epoch) = (assignment.at, assignment.epoch);
        let outcome = EffectOutcome { at, epoch, receipt, happened: true, response: Some(Json::trusted("7")) };
        engine.workers().outcome(session, outcome).await.unwrap();
        let looking = async {
            while engine.store().bundles(tenant, run).await.unwrap().len() < 2 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looking).await.expect("what came late makes an addendum by itself");

        let addendum = engine.audit().evidence(tenant, run, None).await.unwrap();
        let report = verify_bundle(addendum.bundle.as_str(), key().public());
        assert_eq!((report.integrity, report.completeness), (Vec::new(), Vec::new()));
        let predicate = report.statement.unwrap().predicate;
        assert_eq!((predicate.number, predicate.previous), (1, Some(HashHex(first[0].sha256))));
        let told = &predicate.record.receipts[0];
        assert_eq!((told.receipt, told.state.as_str(), told.late), (receipt, "succeeded", true));
        assert!(addendum.page().unwrap().contains("Evidence, addendum 1"));

        let before = engine.audit().evidence(tenant, run, Some(0)).await.unwrap();
        assert_eq!(before.sha256, first[0].sha256, "the first bundle stays as it was");
        let report = verify_bundle(before.bundle.as_str(), key().public());
        assert_eq!((report.integrity, report.completeness), (Vec::new(), Vec::new()));
        stop(engine).await;
    }

    async fn log_and_evidence_outlive_the_runs_that_retention_removes(database: &Database) {
        let engine = engine_with(database, logging()).await;
        let tenant = tenant(&engine, |_| {}).await;
        work(&engine, 2, |_| async { done("1") });
        let run = engine.runs().start(start(tenant, &plan(vec![StepSpec::task("a", "a")]), "1")).await.unwrap().run;
        ends(&engine, tenant, run).await;
        let log = caught_up(&engine, tenant).await;
        let evidence = engine.audit().evidence(tenant, run, None).await.unwrap();
        let kept = Millis::from_hours(24 * 30);
        let mut sweep = Sweep::new(engine.now() + Millis::from_hours(24));
        (sweep.runs_kept, sweep.sessions_kept, sweep.groups_kept) = (Some(Millis::from_hours(1)), kept, kept);
        engine.store().write(sweep).await.unwrap();
        assert!(engine.store().run_overview(tenant, run).await.unwrap().is_none(), "the run is gone");

        let whole = copy(&engine, tenant, None).await;
        let verified = verify(&whole).unwrap();
        assert!(verified.head.size >= log.size && verified.closed > 0, "{verified:?}");
        assert!(whole.entries.iter().any(|logged| logged.entry.body.run == Some(run)), "its entries stay");
        let later = engine.audit().evidence(tenant, run, None).await.unwrap();
        assert_eq!(later.bundle, evidence.bundle);
        stop(engine).await;
    }
}
