//! Deciding on an approval: with a comment to reject, safe to repeat, knowing what a denial leads to.

use serde_json::{Value, json};

use crate::approvals::{Person, card, gate};
use crate::harness::{Api, ApiResponse, plan, task};

/// Every way to decide over HTTP, on the run's open approval as it was when it was looked at.
struct Ways {
    run: String,
    approval: String,
    digest: Value,
}

impl Ways {
    async fn of(api: &Api, run: &str) -> Self {
        let open = card(api, run).await;
        let approval = open["approval"].as_str().unwrap().to_owned();
        Self { run: run.to_owned(), approval, digest: open["digest"].clone() }
    }

    /// The paths and bodies of the same word, and what each calls its comment.
    fn all(&self, approve: bool, comment: Option<&str>) -> [(String, Value, &'static str); 4] {
        let Self { run, approval, digest } = self;
        let word = if approve { "approve" } else { "reject" };
        let mut all = [
            (format!("/approvals/{approval}/decision"), json!({ "decision": word, "digest": digest }), "comment"),
            (format!("/approvals/{approval}/vote"), json!({ "approve": approve, "digest": digest }), "notes"),
            (format!("/runs/{run}/approve"), json!({ "approve": approve, "digest": digest }), "notes"),
            (
                format!("/executions/{run}/approve"),
                json!({ "step_number": 1, "approved": approve, "digest": digest }),
                "notes",
            ),
        ];
        for (_, body, field) in &mut all {
            if let Some(comment) = comment {
                body[*field] = json!(comment);
            }
        }
        all
    }
}

/// An answer's approval, whichever surface it is of.
fn votes_of(answer: ApiResponse) -> usize {
    let body = answer.ok();
    let votes = if body["votes"].is_array() { &body["votes"] } else { &body["approval"]["votes"] };
    votes.as_array().unwrap().len()
}

#[tokio::test]
async fn a_decision_is_a_vote_under_its_documented_name() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    let vera = Person::new(&api, "vera", json!(["viewer"]), json!([])).await;
    let run = api.post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
    let path = format!("/approvals/{}/decision", card(&api, &run).await["approval"].as_str().unwrap());
    let yes = json!({ "decision": "approve", "comment": "looks right" });
    assert_eq!(api.post(&path, yes.clone()).await.problem(), (403, "PERSON_REQUIRED"));
    assert_eq!(vera.post(&path, yes.clone()).await.problem(), (403, "PERMISSION_DENIED"));
    assert_eq!(ada.post(&path, json!({ "decision": "maybe" })).await.problem(), (400, "REQUEST_INVALID"));
    let stale = json!({ "decision": "approve", "digest": "0".repeat(64) });
    assert_eq!(ada.post(&path, stale).await.problem(), (409, "APPROVAL_CHANGED"));
    let voted = ada.post(&path, yes).await.ok();
    assert_eq!((&voted["state"], &voted["run_state"]), (&json!("approved"), &json!("succeeded")));
    assert_eq!((&voted["votes"][0]["person"], &voted["votes"][0]["notes"]), (&json!("ada"), &json!("looks right")));
    let bob = Person::new(&api, "bob", json!(["approver"]), json!([])).await;
    assert_eq!(bob.post(&path, json!({ "decision": "approve" })).await.problem(), (409, "APPROVAL_NOT_OPEN"));

    // Where much hangs on it, the decision says what was looked at.
    let mut destructive = task("drop");
    destructive["rules"] = json!({ "destructive": true });
    let steps = json!([{ "key": "sure", "kind": "approval" }, destructive]);
    let run = api.post("/runs", json!({ "plan": plan(steps) })).await.text("run_id");
    let open = card(&api, &run).await;
    let path = format!("/approvals/{}/decision", open["approval"].as_str().unwrap());
    let blind = ada.post(&path, json!({ "decision": "approve" })).await;
    assert_eq!(blind.problem(), (409, "APPROVAL_DIGEST_REQUIRED"));
    ada.post(&path, json!({ "decision": "approve", "digest": open["digest"] })).await.ok();
    api.end().await;
}

#[tokio::test]
async fn a_rejection_needs_a_comment_however_it_comes() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    for way in 0..4 {
        let run = api.post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
        let ways = Ways::of(&api, &run).await;
        for comment in [None, Some(""), Some("  \n"), Some("\u{200b}")] {
            let (path, body, field) = ways.all(false, comment)[way].clone();
            let silent = ada.post(&path, body).await;
            assert_eq!(silent.problem(), (422, "INPUT_INVALID"), "{path} {comment:?}");
            assert!(silent.text("detail").contains(&format!("`{field}`")), "{path}: {}", silent.body);
        }
        assert_eq!(card(&api, &run).await["state"], "requested", "nothing is decided");
        let (path, body, _) = ways.all(false, Some("not today"))[way].clone();
        assert_eq!(votes_of(ada.post(&path, body).await), 1, "{path}");
        let shown = api.get(&format!("/approvals/{}", ways.approval)).await.ok();
        assert_eq!((&shown["state"], &shown["votes"][0]["notes"]), (&json!("rejected"), &json!("not today")));
    }
    api.end().await;
}

async fn sent_several_times_at_once(api: Api) {
    let ada = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    for approve in [true, false].repeat(5) {
        let run = api.post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
        let ways = Ways::of(&api, &run).await.all(approve, Some("the same"));
        let words = ways.iter().chain(&ways).chain(&ways).map(|(path, body, _)| ada.post(path, body.clone()));
        for answer in futures::future::join_all(words).await {
            assert_eq!(answer.status, 200, "{}", answer.body);
        }
    }
    api.end().await;
}

#[tokio::test]
async fn the_same_word_at_once_is_one_vote() {
    sent_several_times_at_once(Api::new().await).await;
}

#[tokio::test]
async fn the_same_word_at_once_is_one_vote_on_postgresql() {
    sent_several_times_at_once(Api::on_postgres("votes_at_once").await).await;
}

#[tokio::test]
async fn the_same_word_once_more_is_answered_with_how_things_stand() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    let bob = Person::new(&api, "bob", json!(["approver"]), json!([])).await;
    let run = api.post("/runs", json!({ "plan": gate(2, json!([])) })).await.text("run_id");
    let ways = Ways::of(&api, &run).await;
    let (path, body, _) = ways.all(true, None)[1].clone();
    ada.post(&path, body.clone()).await.ok();
    // Another word, or on something else.
    let refused = async |when: &str| {
        for (path, body, _) in ways.all(false, Some("after all not")) {
            let opposite = ada.post(&path, body).await;
            assert_eq!(opposite.status, 409, "{when}, {path}: {}", opposite.body);
        }
        for (path, mut body, _) in ways.all(true, None) {
            body["digest"] = json!("0".repeat(64));
            let other = ada.post(&path, body).await;
            assert_eq!(other.status, 409, "{when}, {path}: {}", other.body);
        }
    };
    for (path, body, _) in ways.all(true, Some("said twice")) {
        assert_eq!(votes_of(ada.post(&path, body).await), 1, "{path}");
    }
    refused("while it is open").await;
    let decided = bob.post(&path, body).await.ok();
    assert_eq!(decided["run_state"], "succeeded");
    // Also when it is decided, and the run has ended.
    for (path, body, _) in ways.all(true, None) {
        assert_eq!(votes_of(ada.post(&path, body).await), 2, "{path}");
    }
    let shown = json!({ "decision": "approve" });
    let again = ada.post(&format!("/approvals/{}/decision", ways.approval), shown).await.ok();
    assert_eq!((&again["state"], &again["run_state"]), (&json!("approved"), &json!("succeeded")));
    assert!(again["summary"].as_str().unwrap().starts_with("ada approved step `gate`"), "{again}");
    refused("when it is decided").await;
    assert_eq!(again["run_version"], decided["run_version"], "what is repeated is no event");
    api.end().await;
}

/// In another's right it is another word.
#[tokio::test]
async fn the_same_word_in_another_right_is_no_repetition() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    let ann = Person::new(&api, "ann", json!(["approver"]), json!([])).await;
    let until = api.engine.now().0 + 86_400_000;
    ann.post("/delegations", json!({ "delegate": "ada", "until": until, "reason": "away" })).await.ok();
    let run = api.post("/runs", json!({ "plan": gate(2, json!([])) })).await.text("run_id");
    let (path, mut body, _) = Ways::of(&api, &run).await.all(true, None)[0].clone();
    ada.post(&path, body.clone()).await.ok();
    body["on_behalf_of"] = json!("ada");
    assert_eq!(votes_of(ada.post(&path, body.clone()).await), 1, "her own right, by its name");
    body["on_behalf_of"] = json!("ann");
    assert_eq!(ada.post(&path, body).await.problem(), (409, "APPROVAL_VOTE_REFUSED"));
    api.end().await;
}

#[tokio::test]
async fn of_several_that_come_at_once_all_are_told_the_same() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    let run = api.post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
    let (path, body, _) = Ways::of(&api, &run).await.all(true, None)[0].clone();
    let votes = futures::future::join_all((0..5).map(|_| ada.post(&path, body.clone()))).await;
    for vote in votes {
        let voted = vote.ok();
        assert_eq!((&voted["state"], &voted["run_state"]), (&json!("approved"), &json!("succeeded")));
        assert_eq!(voted["votes"].as_array().unwrap().len(), 1);
    }
    api.end().await;
}

#[tokio::test]
async fn an_open_approval_says_what_a_denial_leads_to() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    let bob = Person::new(&api, "bob", json!(["approver"]), json!([])).await;
    let gate = json!({ "key": "gate", "kind": "approval", "quorum": 2, "on_reject": "pause" });
    api.post("/runs", json!({ "plan": plan(json!([gate])) })).await.ok();
    let of = |view: &Value| (view["on_reject"].clone(), view["on_expiry"].clone());
    let said = (json!("pause"), json!("fail"));
    let open = api.get("/approvals").await.ok()["approvals"][0].clone();
    assert_eq!(of(&open), said, "{open}");
    let path = format!("/approvals/{}", open["approval"].as_str().unwrap());
    assert_eq!(api.get(&path).await.ok(), open);
    let first = ada.post(&format!("{path}/decision"), json!({ "decision": "approve", "digest": open["digest"] })).await;
    assert_eq!(of(&first.ok()), said);
    let no = json!({ "decision": "reject", "digest": open["digest"], "comment": "no" });
    assert_eq!(bob.post(&format!("{path}/decision"), no).await.ok()["run_state"], "paused", "as it was said");
    assert_eq!(of(&api.get(&path).await.ok()), (Value::Null, Value::Null), "nothing is to come any more");
    api.end().await;
}
