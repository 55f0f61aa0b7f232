//! Bundles: one that is whole passes, and whatever is done to it is told by the right verdict.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use interlock_core::ids::{ApprovalId, ReceiptId, RunId, TenantId};
use interlock_core::json::{Hash, HashHex, Json};
use interlock_core::run::approval::Vote;
use interlock_core::time::Timestamp;
use interlock_evidence::bundle::{
    ApprovalFacts, LogPart, Predicate, ProvenEntry, ReceiptFacts, Record, RunFacts, Statement, StepFacts, pinned_text,
};
use interlock_evidence::costs::costs;
use interlock_evidence::credentials::credentials;
use interlock_evidence::details::{DoneStep, PayloadFacts, RowDetails};
use interlock_evidence::export::LoggedEntry;
use interlock_evidence::leave::LeaveFacts;
use interlock_evidence::model_attempts::ModelAttempts;
use interlock_evidence::page::page;
use interlock_evidence::tree::{MemoryTree, inclusion};
use interlock_evidence::verify_bundle::{BundleReport, verify_bundle};
use interlock_evidence::writer::{LogState, entries};
use interlock_evidence::{Body, Commitments, EntryOpening, EntrySalts, SigningKey};
use serde_json::json;

fn key() -> SigningKey {
    SigningKey::from_seed("interlock/test", &[1; 32])
}

fn run() -> RunId {
    RunId::from_bytes([7; 16])
}

fn approval() -> ApprovalFacts {
    let vote = Vote {
        person: "ann".into(),
        on_behalf_of: None,
        approve: true,
        notes: Some("fine <script>alert(1)</script> \u{202e}gnp.exe".into()),
        at: Timestamp(15),
        groups: vec![],
    };
    ApprovalFacts {
        approval: ApprovalId::from_bytes([2; 16]),
        position: 0,
        purpose: "gate".into(),
        state: "approved".into(),
        quorum: 1,
        approvers: vec!["sre".into()],
        excluded: vec!["bob".into()],
        message: None,
        action: None,
        requested_at: Timestamp(10),
        expires_at: Timestamp(99),
        resolved_at: Some(Timestamp(15)),
        votes: vec![vote],
    }
}

fn receipt() -> ReceiptFacts {
    ReceiptFacts {
        receipt: ReceiptId::from_bytes([3; 16]),
        position: 1,
        iteration: 0,
        attempt: 1,
        key: "slack:post".into(),
        effect: "unsafe".into(),
        state: "succeeded".into(),
        request: PayloadFacts::of(&Json::trusted("{}")),
        response: None,
        intent_at: Timestamp(20),
        outcome_at: Some(Timestamp(21)),
        late: false,
    }
}

fn cost() -> serde_json::Value {
    json!({ "micros": 1_200, "unit": "EUR", "provider": "acme", "model": "m-1",
            "input_tokens": 10, "output_tokens": 2 })
}

/// The context of the change that ends the second step.
fn used() -> serde_json::Value {
    let used = json!({ "position": 1, "attempt": 1, "credential_id": "corp/DB", "vault_request_id": "req-1",
                       "lease_id": "lease-1", "fetched_at": 20, "revoked_at": 21 });
    json!({ "credentials_used": [used] })
}

fn output() -> PayloadFacts {
    PayloadFacts::of(&Json::trusted("{\"ok\":true}"))
}

fn record() -> Record {
    let step = |position, key: &str, output| StepFacts {
        position,
        key: key.into(),
        kind: "task".into(),
        state: "succeeded".into(),
        attempt: 1,
        failures: 0,
        iteration: 0,
        started_at: Some(Timestamp(10)),
        finished_at: Some(Timestamp(22)),
        output,
        error: None,
    };
    Record {
        run: RunFacts {
            tenant: TenantId::from_bytes([9; 16]),
            run: run(),
            workspace: "default".into(),
            workflow: "restart & <b>verify</b>".into(),
            workflow_version: 3,
            plan: Some(HashHex(Hash([8; 32]))),
            subject: None,
            trigger: "api".into(),
            started_by: Some("bob".into()),
            root_run_id: None,
            resumed_from: None,
            state: "succeeded".into(),
            reason: None,
            created_at: Timestamp(9),
            finished_at: Timestamp(22),
            version: 5,
            inputs: PayloadFacts::of(&Json::trusted("{}")),
            output: Some(output()),
            error: None,
        },
        steps: vec![step(0, "gate", None), step(1, "notify", Some(output()))],
        decisions: Vec::new(),
        leave: Some(vec![LeaveFacts {
            position: 1,
            attempt: 1,
            receipt: Some(receipt().receipt),
            bundle: HashHex(Hash([4; 32])),
        }]),
        approvals: vec![approval()],
        receipts: vec![receipt()],
        costs: costs([json!({ "cost": cost() })].iter()),
        model_attempts: None,
        credentials_used: credentials([used()].iter()),
    }
}

/// The run's entries, between those of other runs.
fn statement(change: impl FnOnce(&mut Record)) -> Statement {
    let done = |position, output| {
        let step = DoneStep { attempt: 1, failures: 0, iteration: 0, position, state: "succeeded".into() };
        (Some(step), output)
    };
    let approval_id = approval().approval.to_string();
    let receipt_id = receipt().receipt.to_string();
    let origin = record().run.origin().unwrap().to_string();
    let rows = [
        (
            9,
            (1, 2),
            json!([{"event": "session.created", "workflow": "restart & <b>verify</b>", "version": 3, "origin": origin}, {"event": "approval.requested", "step": 0, "approval": approval_id}]),
            (None, None),
        ),
        (15, (3, 3), json!([{"event": "approval.resolved", "step": 0, "approval": approval_id}]), done(0, None)),
        (
            20,
            (4, 4),
            json!([{"event": "receipt.recorded", "step": 1, "attempt": 1, "receipt": receipt_id, "bundle": HashHex(Hash([4; 32]))}]),
            (None, None),
        ),
        (
            22,
            (5, 5),
            json!([{"event": "execution.step.completed", "step": 1, "cost": cost()}, {"event": "session.completed"}]),
            done(1, Some(output())),
        ),
    ];
    let mut state = LogState::new(format!("interlock/test/{}/1", TenantId::from_bytes([9; 16])));
    let (mut bodies, mut shown) = (Vec::new(), Vec::new());
    for (number, (at, seq, events, (done, output))) in (0u64..).zip(rows) {
        // An entry of another run comes before each.
        let salts = EntrySalts::draw(&[5; 32], 2 * number);
        let stranger = Body {
            actor: None,
            at: Timestamp(at),
            details: None,
            initiator: "system".into(),
            pins: BTreeMap::new(),
            run: Some(RunId::from_bytes([1; 16])),
            seq: None,
            subject: None,
            types: vec!["session.created".into()],
        };
        bodies.push((stranger.clone(), salts));
        shown.push(None);
        let salts = EntrySalts::draw(&[5; 32], 2 * number + 1);
        let commitments = Commitments(salts.commitments);
        let details = RowDetails {
            context: (seq.0 == 5).then(|| Json::of(&used()).unwrap()),
            done,
            error: None,
            events: Json::of(&events).unwrap(),
            input: None,
            output,
            why: None,
        }
        .to_text();
        let mut pins = BTreeMap::new();
        if seq.0 <= 3 {
            pins.insert(approval_id.clone(), HashHex(commitments.pin(&approval_id, &pinned_text(&approval()))));
        }
        if seq.0 == 4 {
            pins.insert(receipt_id.clone(), HashHex(commitments.pin(&receipt_id, &pinned_text(&receipt()))));
        }
        let actor = (seq.0 == 3).then_some("ann");
        let body = Body {
            actor: actor.map(|name| HashHex(commitments.actor(name))),
            details: Some(HashHex(commitments.details(&details))),
            pins,
            run: Some(run()),
            seq: Some(seq),
            ..stranger
        };
        bodies.push((body, salts));
        shown.push(Some(EntryOpening {
            actor: actor.map(str::to_owned),
            details: Some(details),
            salt: salts.commitments,
        }));
    }
    let block = state.append(bodies);
    let tree = MemoryTree::of(block.leaves.iter().copied());
    let chained = entries(&state.origin, 0, block.prev, block.bodies);
    let proven = chained.into_iter().zip(&block.salts).zip(shown).filter_map(|((entry, salts), opened)| {
        let proof = inclusion(&tree, entry.index, state.size()).unwrap().into_iter().map(HashHex).collect();
        let logged = LoggedEntry { entry, leaf_salt: salts.leaf, opened: Some(opened?) };
        Some(ProvenEntry { logged, proof })
    });
    let mut record = record();
    change(&mut record);
    let log = LogPart { checkpoint: state.head().sign(&key()), entries: proven.collect() };
    Statement::new(Predicate { number: 0, previous: None, record, logs: vec![log] })
}

fn verify(statement: &Statement) -> BundleReport {
    verify_bundle(statement.sign(&key()).as_str(), key().public())
}

#[test]
fn a_whole_bundle_is_intact_and_complete() {
    let statement = statement(|_| {});
    let report = verify(&statement);
    assert_eq!((report.integrity.as_slice(), report.completeness.as_slice()), (&[] as &[String], &[] as &[String]));
    assert!(report.is_complete());
    assert_eq!(report.statement.as_deref(), Some(&statement));
    assert_eq!(statement.sign(&key()), statement.sign(&key()), "to the same bytes");
}

#[test]
fn another_key_or_a_changed_byte_breaks_the_integrity() {
    let bundle = statement(|_| {}).sign(&key());
    let stranger = SigningKey::from_seed("interlock/test", &[2; 32]);
    let report = verify_bundle(bundle.as_str(), stranger.public());
    assert!(!report.is_intact() && !report.is_complete() && report.statement.is_none());
    for at in (0..bundle.len()).step_by(37) {
        let mut bytes = bundle.as_str().as_bytes().to_vec();
        bytes[at] ^= 1;
        let Ok(text) = String::from_utf8(bytes) else { continue };
        // The key id is a hint that is not trusted, and may be left out; everything else counts.
        if text.contains(&format!("\"keyid\":\"{}\"", key().public().id())) {
            assert!(!verify_bundle(&text, key().public()).is_intact(), "byte {at}");
        }
    }
}

/// Signed by the right key, and still not what the log says: a server that lies about a run after it was sealed.
#[test]
fn a_record_that_the_log_contradicts_is_not_intact() {
    type Change = fn(&mut Record);
    let changes: [(&str, Change); 27] = [
        ("models were asked", |record| record.model_attempts = Some(ModelAttempts { begun: 1, unpriced: 0 })),
        ("under which rules", |record| record.leave = Some(Vec::new())),
        ("under which rules", |record| record.leave.as_mut().unwrap()[0].bundle = HashHex(Hash([5; 32]))),
        ("credentials", |record| record.credentials_used.clear()),
        ("credentials", |record| record.credentials_used[0].lease_id = None),
        ("has cost", |record| record.costs[0].micros = 1),
        ("has cost", |record| record.costs[0].unit = Some("USD".into())),
        ("has cost", |record| record.costs[0].unit = None),
        ("has cost", |record| record.costs.clear()),
        ("made of", |record| record.run.inputs = output()),
        ("made of", |record| record.run.plan = Some(HashHex(Hash([9; 32])))),
        ("made of", |record| record.run.plan = None),
        ("made of", |record| record.run.subject = Some("INC-1".into())),
        ("made of", |record| record.run.created_at = Timestamp(8)),
        ("made of", |record| record.run.started_by = None),
        ("made of", |record| record.run.trigger = "schedule".into()),
        ("made of", |record| record.run.workspace = "other".into()),
        ("made of", |record| record.run.resumed_from = Some(run())),
        ("another workflow", |record| record.run.workflow = "innocent".into()),
        ("another workflow", |record| record.run.workflow_version = 77),
        ("the run", |record| record.run.state = "failed".into()),
        ("the run", |record| record.run.finished_at = Timestamp(23)),
        ("step `notify`", |record| record.steps[1].output = None),
        ("step `gate`", |record| record.steps[0].state = "skipped".into()),
        ("apr_", |record| record.approvals[0].votes[0].person = "eve".into()),
        ("rcp_", |record| record.receipts[0].state = "failed".into()),
        ("rcp_", |record| record.receipts[0].receipt = ReceiptId::from_bytes([8; 16])),
    ];
    for (what, change) in changes {
        let report = verify(&statement(change));
        assert_eq!(report.integrity.len(), 1, "{what}: {:?}", report.integrity);
        assert!(report.integrity[0].contains(what), "{what}: {:?}", report.integrity);
    }
}

#[test]
fn what_is_missing_is_told_and_leaves_the_integrity_alone() {
    type Change = fn(&mut Statement);
    let changes: [(&str, Change); 6] = [
        ("events 3 to 3 are not", |statement| drop(statement.predicate.logs[0].entries.remove(1))),
        ("events 5 to 5 are not", |statement| drop(statement.predicate.logs[0].entries.pop())),
        ("no event says how", |statement| drop(statement.predicate.logs[0].entries.pop())),
        ("are not there (erased)", |statement| statement.predicate.logs[0].entries[2].logged.opened = None),
        ("approval apr_", |statement| statement.predicate.record.approvals.clear()),
        ("step 0 is not", |statement| drop(statement.predicate.record.steps.remove(0))),
    ];
    for (what, change) in changes {
        let mut changed = statement(|_| {});
        change(&mut changed);
        let report = verify(&Statement::new(changed.predicate));
        assert!(report.is_intact(), "{what}: {:?}", report.integrity);
        assert!(report.completeness.iter().any(|finding| finding.contains(what)), "{what}: {:?}", report.completeness);
        assert!(!report.is_complete());
    }
}

/// The entries of another tenant's log prove nothing of this tenant's run, whoever has signed its head.
#[test]
fn the_log_of_another_tenant_is_not_the_runs() {
    let report = verify(&statement(|record| record.run.tenant = TenantId::from_bytes([8; 16])));
    let is_told = |what: &str| report.integrity.iter().any(|finding| finding.contains(what));
    assert!(is_told("is not one of the run's tenant"), "{:?}", report.integrity);
    assert!(is_told("what the run was made of"), "{:?}", report.integrity);
}

#[test]
fn entries_and_logs_that_are_there_twice_are_found() {
    let mut twice = statement(|_| {});
    let again = twice.predicate.logs[0].entries[1].clone();
    twice.predicate.logs[0].entries.insert(1, again);
    let report = verify(&twice);
    assert!(report.integrity.iter().any(|finding| finding.contains("not in the order")), "{:?}", report.integrity);
    let mut twice = statement(|_| {});
    let again = twice.predicate.logs[0].clone();
    twice.predicate.logs.push(again);
    let report = verify(&twice);
    assert!(report.integrity.iter().any(|finding| finding.contains("twice")), "{:?}", report.integrity);
}

#[test]
fn an_entry_that_is_not_in_the_log_is_found() {
    let mut moved = statement(|_| {});
    moved.predicate.logs[0].entries[1].logged.entry.body.at = Timestamp(1);
    let report = verify(&moved);
    assert!(report.integrity.iter().any(|finding| finding.contains("is not in the log")), "{:?}", report.integrity);
    let mut other = statement(|_| {});
    other.predicate.logs[0].entries[1].proof[0] = HashHex(Hash([0; 32]));
    assert!(!verify(&other).is_intact());
}

#[test]
fn the_page_shows_everything_and_obeys_nothing() {
    let shown = page(&statement(|_| {}), Hash([4; 32]));
    assert!(shown.contains("restart &amp; &lt;b&gt;verify&lt;/b&gt;"));
    assert!(shown.contains("&lt;script&gt;alert(1)&lt;/script&gt; \\u{202e}gnp.exe"));
    assert!(!shown.contains("<script") && !shown.contains('\u{202e}'));
    let bundle = Hash([4; 32]).to_string();
    let words = ["ann approved at 1970-01-01T00:00:00.015Z", "slack:post", "notify", "1200 millionths of EUR", &bundle];
    for word in words {
        assert!(shown.contains(word), "{word} is missing");
    }
    assert!(!shown.contains("http://") && !shown.contains("src="), "nothing is loaded");
    let asked = Some(ModelAttempts { begun: 3, unpriced: 1 });
    let shown = page(&statement(|record| record.model_attempts = asked), Hash([4; 32]));
    assert!(shown.contains("Attempts of model steps: 3. Without a known price: 1."), "{shown}");
}

/// in-toto's own library takes the envelope, with the key as it is given away, and does not take it with a byte changed.
#[test]
fn in_totos_own_library_verifies_a_bundle() {
    let python = std::env::var("INTERLOCK_TEST_INTOTO")
        .expect("INTERLOCK_TEST_INTOTO is not set: run `make test`, or `scripts/need in-toto`");
    let script = "import base64, copy, json, sys\n\
        from cryptography.hazmat.primitives.serialization import load_pem_public_key\n\
        from in_toto.models.metadata import Metadata\n\
        from securesystemslib.exceptions import VerificationError\n\
        from securesystemslib.signer import SSlibKey\n\
        given = json.load(sys.stdin)\n\
        bundle = given['bundle']\n\
        key = SSlibKey.from_crypto(load_pem_public_key(given['key'].encode()), keyid=bundle['signatures'][0]['keyid'])\n\
        Metadata.from_dict(copy.deepcopy(bundle)).verify([key], 1)\n\
        statement = json.loads(base64.b64decode(bundle['payload']))\n\
        assert statement['_type'] == 'https://in-toto.io/Statement/v1'\n\
        assert statement['subject'][0]['digest']['sha256']\n\
        changed = base64.b64decode(bundle['payload']).replace(b'succeeded', b'failed!!!')\n\
        bundle['payload'] = base64.b64encode(changed).decode()\n\
        try: Metadata.from_dict(bundle).verify([key], 1)\n\
        except VerificationError: sys.exit(0)\n\
        sys.exit('a changed bundle was taken')\n";
    let bundle: serde_json::Value = serde_json::from_str(statement(|_| {}).sign(&key()).as_str()).unwrap();
    let given = json!({ "bundle": bundle, "key": key().public().to_pem() });
    let mut child = Command::new(python).args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(given.to_string().as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "in-toto's own library does not take our bundle");
}
