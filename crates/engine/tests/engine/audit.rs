//! The audit log and the evidence of runs: everything that was committed is in the log within seconds, in order and once,
//! on both databases, with several servers, across crashes and restores; and it verifies with the public key alone.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::ids::{RunId, ServerId, TenantId};
use interlock_core::json::Json;
use interlock_core::plan::{StepSpec, Work};
use interlock_core::run::approval::Voter;
use interlock_core::state::RunState;
use interlock_core::time::Millis;
use interlock_engine::audit::AuditEvent;
use interlock_engine::audit::progress::AuditProgress;
use interlock_engine::audit::read::{AuditFilter, AuditQuery};
use interlock_engine::commands::vote::VoteRequest;
use interlock_engine::deliver::NoOtherDestinations;
use interlock_engine::{Engine, EngineError, EngineOptions};
use interlock_evidence::SigningKey;
use interlock_evidence::export::LogCopy;
use interlock_evidence::verify_bundle::verify_bundle;
use interlock_evidence::verify_log::{BadEntry, Expected, Tampering, VerifiedLog, verify_log};
use interlock_store::{AttachedWrites, AuditLogRow, BundleRow, EraseAuditDetails, Options, SetOnce, Store, StoreUrl};

use crate::harness::{Database, PATIENCE, done, ends, engine_with, options, plan, reaches, start, stop, tenant, work};
use crate::on_both;

pub fn key() -> SigningKey {
    SigningKey::from_seed("interlock/test", &[9; 32])
}

pub fn logging() -> EngineOptions {
    EngineOptions { audit_key: Some(key()), ..options() }
}

/// The whole log, as `audit verify` fetches it.
pub async fn copy(engine: &Engine, tenant: TenantId, number: Option<u64>) -> LogCopy {
    let (number, head) = engine.audit().checkpoint(tenant, number).await.unwrap();
    let mut copy = LogCopy { checkpoints: vec![head], ..LogCopy::default() };
    let mut from = Some(0);
    while let Some(next) = from {
        let filter = AuditFilter::default();
        let query = AuditQuery { number: Some(number), newest_first: false, from: Some(next), limit: 7, filter };
        let Ok(page) = engine.audit().entries(tenant, &query).await else { break };
        copy.entries.extend(page.entries);
        copy.leaves.extend(page.leaves);
        copy.checkpoints.extend(page.checkpoints);
        from = page.next;
    }
    copy
}

pub fn verify(copy: &LogCopy) -> Result<VerifiedLog, BadEntry> {
    verify_log(copy, Expected::default(), key().public())
}

/// Waits until all that was committed is in the log.
pub async fn caught_up(engine: &Engine, tenant: TenantId) -> AuditLogRow {
    let looking = async {
        loop {
            // In the order in which events go, so that none slips through between two looks.
            let unsealed = engine.store().unsealed_since().await.unwrap().is_some();
            let behind = engine.store().audit_behind(None, 100).await.unwrap().contains(&tenant);
            let log = engine.store().audit_log(tenant).await.unwrap();
            if let Some(log) = log.filter(|_| !behind && !unsealed) {
                return log;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("the log of {tenant} does not catch up"))
}

/// Waits until the evidence of a run is made by itself.
pub async fn bundles(engine: &Engine, tenant: TenantId, run: RunId) -> Vec<BundleRow> {
    let looking = async {
        loop {
            let made = engine.store().bundles(tenant, run).await.unwrap();
            if !made.is_empty() {
                return made;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.expect("the run has its evidence")
}

fn gate() -> StepSpec {
    StepSpec::new("gate", Work::Approval(serde_json::from_str(r#"{"approvers":["sre"]}"#).unwrap()))
}

async fn approve(engine: &Engine, tenant: TenantId, run: RunId) {
    reaches(engine, tenant, run, RunState::WaitingApproval).await;
    let approval = engine.store().approvals_of(tenant, run).await.unwrap().remove(0);
    let voter = Voter::new("ann", vec!["sre".into()]);
    let vote = VoteRequest { approval: approval.id, voter, approve: true, notes: Some("fine".into()) };
    engine.runs().vote(tenant, run, vote).await.unwrap();
}

on_both! {
    async fn what_was_committed_is_in_the_log_and_verifies(database: &Database) {
        let engine = engine_with(database, logging()).await;
        let (tenant, other) = (tenant(&engine, |_| {}).await, tenant(&engine, |_| {}).await);
        work(&engine, 8, |_| async { done("1") });
        let plan = plan(vec![StepSpec::task("a", "a"), StepSpec::task("b", "b")]);
        let mut runs = Vec::new();
        for _ in 0..20 {
            runs.push(engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run);
            engine.runs().start(start(other, &plan, "null")).await.unwrap();
        }
        for run in &runs {
            ends(&engine, tenant, *run).await;
        }
        // What happens apart from runs is committed with its note.
        let what = AuditEvent {
            kind: "key.created",
            initiator: "user",
            actor: Some("ann".into()),
            subject: Some("key_1".into()),
            details: Json::trusted(r#"{"name":"deploy"}"#),
        };
        let note = engine.note_of(tenant, what).unwrap();
        engine.store().write_with(SetOnce { name: "test", value: "1".into() }, AttachedWrites { answer: None, notes: vec![note.clone()] }).await.unwrap();
        engine.store().write_with(SetOnce { name: "test", value: "2".into() }, AttachedWrites { answer: None, notes: vec![note] }).await.unwrap();

        let log = caught_up(&engine, tenant).await;
        let whole = copy(&engine, tenant, None).await;
        let verified = verify(&whole).unwrap();
        assert_eq!(verified.head.size, log.size);
        assert_eq!((verified.opened, verified.closed), (log.size, 0));
        for run in &runs {
            let seqs: Vec<_> = whole.entries.iter().filter(|logged| logged.entry.body.run == Some(*run))
                .filter_map(|logged| logged.entry.body.seq).collect();
            let version = engine.store().run_overview(tenant, *run).await.unwrap().unwrap().version;
            assert_eq!(seqs.iter().map(|(first, last)| last - first + 1).sum::<u64>(), version, "each event once");
            assert!(seqs.windows(2).all(|pair| pair[1].0 == pair[0].1 + 1), "in order: {seqs:?}");
        }
        let noted = |kind: &str, actor: &str| AuditQuery {
            number: None, newest_first: true, from: None, limit: 10,
            filter: AuditFilter { kind: Some(kind.into()), actor: Some(actor.into()), ..AuditFilter::default() },
        };
        let found = engine.audit().entries(tenant, &noted("key", "ann")).await.unwrap().entries;
        assert_eq!(found.len(), 1, "what did not happen a second time is not told a second time");
        assert_eq!(found[0].opened.as_ref().unwrap().details.as_deref(), Some(r#"{"name":"deploy"}"#));
        assert!(engine.audit().entries(tenant, &noted("key", "bob")).await.unwrap().entries.is_empty());
        assert!(engine.audit().entries(other, &noted("key", "ann")).await.unwrap().entries.is_empty());

        // Erased, it is gone, and the log still verifies.
        let (number, entry) = (log.number, found[0].entry.index);
        engine.store().write(EraseAuditDetails { tenant, number, entries: vec![entry] }).await.unwrap();
        let erased = copy(&engine, tenant, None).await;
        assert_eq!(verify(&erased).unwrap().closed, 1);
        assert!(!serde_json::to_string(&erased.entries).unwrap().contains("deploy"));
        stop(engine).await;
    }

    async fn two_servers_keep_one_log(database: &Database) {
        if matches!(database.url, StoreUrl::Sqlite(_)) {
            return;
        }
        let (one, two) = (engine_with(database, logging()).await, engine_with(database, logging()).await);
        let tenant = tenant(&one, |_| {}).await;
        work(&one, 8, |_| async { done("1") });
        work(&two, 8, |_| async { done("1") });
        let plan = plan(vec![StepSpec::task("a", "a")]);
        let mut runs = Vec::new();
        for number in 0..60 {
            let engine = if number % 2 == 0 { &one } else { &two };
            runs.push(engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run);
        }
        for run in &runs {
            ends(&one, tenant, *run).await;
        }
        caught_up(&one, tenant).await;
        let whole = copy(&two, tenant, None).await;
        verify(&whole).unwrap();
        let mut spans: Vec<_> = whole.entries.iter().filter_map(|logged| Some((logged.entry.body.run?, logged.entry.body.seq?))).collect();
        let count = spans.len();
        spans.sort();
        spans.dedup();
        assert_eq!(spans.len(), count, "nothing is logged twice");
        stop(two).await;
        stop(one).await;
    }

    // At the pace of a server as it is shipped, and with nobody asking it for anything once something was committed. That
    // the loops' own pace is within a second is held where it is written down (`loops/audit.rs`).
    async fn what_was_committed_is_sealed_without_further_traffic(database: &Database) {
        let seal_every = EngineOptions::new(Arc::new(NoOtherDestinations)).seal_every;
        assert!(seal_every <= Millis(500), "{seal_every:?}");
        let engine = engine_with(database, EngineOptions { seal_every, ..logging() }).await;
        let mut tenants = Vec::new();
        for _ in 0..3 {
            tenants.push(tenant(&engine, |_| {}).await);
        }
        work(&engine, 4, |_| async { done("1") });
        let plan = plan(vec![StepSpec::task("a", "a")]);
        for round in 0..2 {
            let mut runs = Vec::new();
            for tenant in &tenants {
                let run = engine.runs().start(start(*tenant, &plan, "null")).await.unwrap().run;
                runs.push((*tenant, run));
            }
            for (tenant, run) in &runs {
                ends(&engine, *tenant, *run).await;
            }
            // From here on the store is only read.
            for (tenant, run) in &runs {
                caught_up(&engine, *tenant).await;
                let whole = copy(&engine, *tenant, None).await;
                verify(&whole).unwrap();
                let ended = whole.entries.iter().filter(|logged| logged.entry.body.run == Some(*run))
                    .any(|logged| logged.entry.body.types.iter().any(|name| name == "session.completed"));
                assert!(ended, "the end of {run} is in the log, round {round}");
            }
            // Nothing happens for longer than any loop waits; then something that no run tells of.
            tokio::time::sleep(Duration::from_secs(2)).await;
            for tenant in &tenants {
                let before = caught_up(&engine, *tenant).await.size;
                let what = AuditEvent {
                    kind: "key.created", initiator: "user", actor: None, subject: None,
                    details: Json::trusted(r#"{"name":"deploy"}"#),
                };
                let notes = vec![engine.note_of(*tenant, what).unwrap()];
                // One name for each, because a note is committed only with what it tells of.
                let name = ["first", "second", "third", "fourth", "fifth", "sixth"]
                    [round * tenants.len() + tenants.iter().position(|other| other == tenant).unwrap()];
                let attached = AttachedWrites { answer: None, notes };
                engine.store().write_with(SetOnce { name, value: "1".into() }, attached).await.unwrap();
                let looking = async {
                    while caught_up(&engine, *tenant).await.size == before {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                };
                tokio::time::timeout(PATIENCE, looking).await.expect("the note is sealed");
            }
        }
        stop(engine).await;
    }

    async fn a_governed_run_has_its_evidence_soon_and_others_when_asked(database: &Database) {
        let engine = engine_with(database, logging()).await;
        let tenant = tenant(&engine, |_| {}).await;
        work(&engine, 2, |_| async { done(r#"{"ok":true}"#) });
        let governed = plan(vec![gate(), StepSpec::task("a", "a")]);
        let run = engine.runs().start(start(tenant, &governed, r#"{"who":"me"}"#)).await.unwrap().run;
        reaches(&engine, tenant, run, RunState::WaitingApproval).await;
        let early = engine.audit().evidence(tenant, run, None).await;
        assert!(matches!(early, Err(EngineError::EvidenceNotDue { .. })), "{early:?}");
        approve(&engine, tenant, run).await;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        let made = bundles(&engine, tenant, run).await;
        assert_eq!(made.len(), 1, "a governed run is bundled without being asked for");
        let evidence = engine.audit().evidence(tenant, run, None).await.unwrap();
        assert_eq!((evidence.number, evidence.sha256), (0, made[0].sha256));
        let report = verify_bundle(evidence.bundle.as_str(), key().public());
        assert_eq!((report.integrity, report.completeness), (Vec::new(), Vec::new()));
        let statement = report.statement.unwrap();
        assert_eq!(statement.predicate.record.approvals[0].votes[0].person, "ann");
        assert!(evidence.page().unwrap().contains("ann approved"));

        let plain = engine.runs().start(start(tenant, &plan(vec![StepSpec::task("a", "a")]), "null")).await.unwrap().run;
        ends(&engine, tenant, plain).await;
        caught_up(&engine, tenant).await;
        assert!(engine.store().bundles(tenant, plain).await.unwrap().is_empty());
        let first = engine.audit().evidence(tenant, plain, None).await.unwrap();
        let report = verify_bundle(first.bundle.as_str(), key().public());
        assert_eq!((report.integrity, report.completeness), (Vec::new(), Vec::new()));
        let again = engine.audit().evidence(tenant, plain, None).await.unwrap();
        assert_eq!(first.bundle, again.bundle);
        // However much has followed in the log: an early run's tree ends inside of what is read.
        let early = engine.runs().start(start(tenant, &plan(vec![StepSpec::task("a", "a")]), "1")).await.unwrap().run;
        ends(&engine, tenant, early).await;
        for _ in 0..4 {
            caught_up(&engine, tenant).await;
            let later = engine.runs().start(start(tenant, &plan(vec![StepSpec::task("a", "a")]), "2")).await.unwrap().run;
            ends(&engine, tenant, later).await;
        }
        caught_up(&engine, tenant).await;
        let evidence = engine.audit().evidence(tenant, early, None).await.unwrap();
        let report = verify_bundle(evidence.bundle.as_str(), key().public());
        assert_eq!((report.integrity, report.completeness), (Vec::new(), Vec::new()));
        let unknown = engine.audit().evidence(tenant, plain, Some(4)).await;
        assert!(matches!(unknown, Err(EngineError::UnknownBundle { number: 4, .. })));
        stop(engine).await;
    }
}

/// A server that dies between any two lines goes on where the log stands: here it never says goodbye.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_died_is_continued() {
    let database = Database::sqlite();
    let silent = EngineOptions { audit_key: None, ..options() };
    let engine = engine_with(&database, silent).await;
    let tenant = tenant(&engine, |_| {}).await;
    work(&engine, 2, |_| async { done("1") });
    let plan = plan(vec![StepSpec::task("a", "a")]);
    let mut runs = Vec::new();
    for _ in 0..10 {
        runs.push(engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run);
    }
    for run in &runs {
        ends(&engine, tenant, *run).await;
    }
    stop(engine).await;
    for _ in 0..2 {
        let engine = engine_with(&database, logging()).await;
        caught_up(&engine, tenant).await;
        let whole = copy(&engine, tenant, None).await;
        verify(&whole).unwrap();
        let logged = whole.entries.iter().filter(|logged| logged.entry.body.run == Some(runs[0])).count();
        assert!(logged > 0, "what happened before there was a log is in it");
        stop(engine).await;
    }
}

/// Does one run of one step, and waits until the log has it.
async fn logs_one_run(engine: &Engine, tenant: TenantId) -> (RunId, AuditLogRow) {
    work(engine, 2, |_| async { done("1") });
    let plan = plan(vec![StepSpec::task("a", "a")]);
    let run = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
    ends(engine, tenant, run).await;
    (run, caught_up(engine, tenant).await)
}

/// A change of the database under the log is found, at the entry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_journal_row_is_found() {
    let database = Database::sqlite();
    let engine = engine_with(&database, logging()).await;
    let tenant = tenant(&engine, |_| {}).await;
    let (run, _) = logs_one_run(&engine, tenant).await;
    stop(engine).await;
    let StoreUrl::Sqlite(path) = &database.url else { unreachable!() };
    let file = rusqlite::Connection::open(path).unwrap();
    file.execute(
        "UPDATE journal SET person = 'eve' WHERE run_id = ?1 AND seq = first_seq",
        [run.as_bytes().as_slice()],
    )
    .unwrap();
    let changed = file
        .execute("UPDATE journal SET output = '2' WHERE run_id = ?1 AND output = '1'", [run.as_bytes().as_slice()])
        .unwrap();
    assert_eq!(changed, 1);
    drop(file);
    let engine = engine_with(&database, logging()).await;
    let bad = verify(&copy(&engine, tenant, None).await).unwrap_err();
    assert_eq!(bad.kind, Tampering::Altered);
    stop(engine).await;
}

/// A block of another tenant's, moved in with its head, is named as what it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_block_of_another_tenant_is_found() {
    let database = Database::sqlite();
    // Without a key at first, so that a log is one block.
    let silent = engine_with(&database, EngineOptions { audit_key: None, ..options() }).await;
    let (tenant, other) = (tenant(&silent, |_| {}).await, tenant(&silent, |_| {}).await);
    work(&silent, 2, |_| async { done("1") });
    let plan = plan(vec![StepSpec::task("a", "a")]);
    for owner in [tenant, other] {
        let run = silent.runs().start(start(owner, &plan, "null")).await.unwrap().run;
        ends(&silent, owner, run).await;
    }
    stop(silent).await;
    let engine = engine_with(&database, logging()).await;
    let theirs = caught_up(&engine, other).await;
    caught_up(&engine, tenant).await;
    verify(&copy(&engine, tenant, None).await).unwrap();
    stop(engine).await;
    let StoreUrl::Sqlite(path) = &database.url else { unreachable!() };
    let file = rusqlite::Connection::open(path).unwrap();
    let (to, from) = (tenant.as_bytes().as_slice(), other.as_bytes().as_slice());
    file.execute("DELETE FROM audit_blocks WHERE tenant_id = ?1", [to]).unwrap();
    let moved = file.execute("UPDATE audit_blocks SET tenant_id = ?1 WHERE tenant_id = ?2", [to, from]).unwrap();
    assert!(moved > 0, "there is a block to move");
    drop(file);
    let engine = engine_with(&database, logging()).await;
    let bad = verify(&copy(&engine, tenant, None).await).unwrap_err();
    assert_eq!((bad.index, bad.kind), (0, Tampering::Spliced), "{bad}");
    assert!(bad.what.contains(&format!("`{}`, the log of another tenant", theirs.origin)), "{bad}");
    stop(engine).await;
}

/// Events and what happens apart from runs wait for a log that cannot be continued; it says since when.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_cannot_be_continued_says_since_when_it_is_behind() {
    let database = Database::sqlite();
    let engine = engine_with(&database, logging()).await;
    let tenant = tenant(&engine, |_| {}).await;
    let (_, log) = logs_one_run(&engine, tenant).await;
    let whole = AuditProgress { entries: log.size, missing_since: None };
    assert_eq!(engine.audit().progress(tenant).await.unwrap(), Some(whole));
    stop(engine).await;
    let StoreUrl::Sqlite(path) = &database.url else { unreachable!() };
    let file = rusqlite::Connection::open(path).unwrap();
    assert_eq!(file.execute("UPDATE audit_logs SET peaks = x''", []).unwrap(), 1);
    drop(file);

    let engine = engine_with(&database, logging()).await;
    let (initiator, details) = ("user", Json::trusted(r#"{"name":"deploy"}"#));
    let what = AuditEvent { kind: "key.created", initiator, actor: None, subject: None, details };
    let note = engine.note_of(tenant, what).unwrap();
    let behind = AuditProgress { missing_since: Some(note.at), ..whole };
    let notes = AttachedWrites { answer: None, notes: vec![note] };
    engine.store().write_with(SetOnce { name: "test", value: "1".into() }, notes).await.unwrap();
    assert_eq!(engine.audit().progress(tenant).await.unwrap(), Some(behind));
    work(&engine, 2, |_| async { done("1") });
    let plan = plan(vec![StepSpec::task("a", "a")]);
    let run = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
    ends(&engine, tenant, run).await;
    assert_eq!(engine.audit().progress(tenant).await.unwrap(), Some(behind), "the oldest counts");
    stop(engine).await;

    let other = Database::sqlite();
    let silent = engine_with(&other, options()).await;
    assert_eq!(silent.audit().progress(tenant).await.unwrap(), None, "a server without a log is not behind");
    stop(silent).await;
}

/// A restored store begins a new log, which names the old one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_begins_a_new_log() {
    let database = Database::sqlite();
    let StoreUrl::Sqlite(path) = database.url.clone() else { unreachable!() };
    let engine = engine_with(&database, logging()).await;
    let tenant = tenant(&engine, |_| {}).await;
    let (_, old) = logs_one_run(&engine, tenant).await;
    let backup = path.with_extension("backup");
    interlock_store::backup_file(&path, &backup).await.unwrap();
    stop(engine).await;

    let restored = Database::sqlite();
    let server = || ServerId(logging().ids.fresh());
    interlock_store::restore(Some(&backup), &restored.url, Options::new(server())).await.unwrap();
    let store = Store::open(&restored.url, Options::new(server())).await.unwrap();
    let engine = Engine::open(store, logging()).await.unwrap();
    let (_, new) = logs_one_run(&engine, tenant).await;
    assert_eq!(new.number, old.number + 1);
    let whole = copy(&engine, tenant, None).await;
    verify(&whole).unwrap();
    let opened = whole.entries[0].opened.as_ref().unwrap().details.clone().unwrap();
    assert!(opened.contains(&old.origin), "{opened}");
    let before = copy(&engine, tenant, Some(old.number)).await;
    assert_eq!(verify(&before).unwrap().head.size, old.size, "the old log stays as it was");
    stop(engine).await;
}
