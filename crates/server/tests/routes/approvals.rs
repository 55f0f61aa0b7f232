//! Votes over HTTP: whose they are comes from the credential.

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::{Value, json};

use crate::harness::{Api, ApiResponse, plan, task};

const PASSWORD: &str = "correct horse battery";

/// A person who is signed in, and asks with cookie and header.
pub struct Person<'a> {
    api: &'a Api,
    pub cookie: String,
    pub csrf: String,
    /// The change that requests carry out.
    change: Option<String>,
}

impl<'a> Person<'a> {
    pub async fn new(api: &'a Api, name: &str, roles: Value, groups: Value) -> Self {
        let body = json!({ "name": name, "roles": roles, "groups": groups, "password": PASSWORD });
        api.post("/users", body).await.ok();
        Self::signed_in(api, name).await
    }

    /// A person of another tenant than the one that people sign in to by default.
    pub async fn in_tenant(api: &'a Api, tenant: &str, name: &str, roles: Value) -> Self {
        api.post("/users", json!({ "name": name, "roles": roles, "password": PASSWORD })).await.ok();
        Self::sign_in(api, json!({ "tenant": tenant, "name": name, "password": PASSWORD })).await
    }

    /// A person who has an account with that password.
    pub async fn signed_in(api: &'a Api, name: &str) -> Self {
        Self::sign_in(api, json!({ "name": name, "password": PASSWORD })).await
    }

    async fn sign_in(api: &'a Api, body: Value) -> Self {
        let request = Request::post("/api/v1/auth/login")
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.to_string()));
        let answer = api.ask(request.unwrap()).await;
        let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
        Self { api, cookie, csrf: answer.text("csrf"), change: None }
    }

    /// The same person, with requests that carry a change out.
    pub fn carrying(&self, change: &str) -> Self {
        let (cookie, csrf) = (self.cookie.clone(), self.csrf.clone());
        Self { api: self.api, cookie, csrf, change: Some(change.to_owned()) }
    }

    pub async fn post(&self, path: &str, body: Value) -> ApiResponse {
        self.send("POST", path, body).await
    }

    pub async fn send(&self, method: &str, path: &str, body: Value) -> ApiResponse {
        let mut request = Request::builder().method(method).uri(format!("/api/v1{path}"));
        if let Some(change) = &self.change {
            request = request.header("interlock-change", change);
        }
        let request = request
            .header(header::HOST, "localhost")
            .header(header::ORIGIN, "http://localhost")
            .header(header::COOKIE, &self.cookie)
            .header("x-interlock-csrf", &self.csrf)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.to_string()));
        self.api.ask(request.unwrap()).await
    }
}

pub fn gate(quorum: u32, approvers: Value) -> Value {
    plan(
        json!([{ "key": "gate", "kind": "approval", "quorum": quorum, "approvers": approvers, "message": "ship it?" }]),
    )
}

#[tokio::test]
async fn a_person_of_the_right_group_decides() {
    let api = Api::new().await;
    let viewer = Person::new(&api, "vera", json!(["viewer"]), json!(["sre"])).await;
    let outsider = Person::new(&api, "otto", json!(["approver"]), json!(["sales"])).await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!(["sre"])).await;
    let run = api.post("/runs", json!({ "plan": gate(1, json!(["sre"])) })).await.text("run_id");
    let open = api.get("/approvals").await.ok()["approvals"][0].clone();
    assert_eq!((&open["run_id"], &open["message"]), (&json!(run), &json!("ship it?")));
    assert_eq!(open["step"], "gate", "the step by its key");
    let vote = format!("/approvals/{}/vote", open["approval"].as_str().unwrap());
    let word = json!({ "approve": true, "digest": open["digest"] });

    let by_key = api.post(&vote, word.clone()).await;
    assert_eq!(by_key.problem(), (403, "PERSON_REQUIRED"));
    assert_eq!(viewer.post(&vote, word.clone()).await.problem(), (403, "PERMISSION_DENIED"));
    assert_eq!(outsider.post(&vote, word.clone()).await.problem(), (409, "APPROVAL_VOTE_REFUSED"));
    let stale = ada.post(&vote, json!({ "approve": true, "digest": "0".repeat(64) })).await;
    assert_eq!(stale.problem(), (409, "APPROVAL_CHANGED"));
    assert_eq!(stale.body["approval"]["digest"], open["digest"], "the card as it is now comes along");

    let voted = ada.post(&vote, word).await.ok();
    assert_eq!((&voted["state"], &voted["run_state"]), (&json!("approved"), &json!("succeeded")));
    assert_eq!((&voted["votes"][0]["person"], &voted["votes"][0]["approve"]), (&json!("ada"), &json!(true)));
    let shown = api.get(&format!("/approvals?run={run}")).await.ok();
    assert_eq!(shown["approvals"][0]["state"], "approved");
    let decided = api.get(&format!("/approvals/{}", open["approval"].as_str().unwrap())).await.ok();
    assert_eq!((&decided["state"], &decided["step"]), (&json!("approved"), &json!("gate")), "also once it is decided");
    assert!(api.get("/approvals").await.ok()["approvals"].as_array().unwrap().is_empty());
    api.end().await;
}

/// It has made the key that started the run, and decides nowhere.
#[tokio::test]
async fn a_key_is_not_named_among_the_people_who_may_not_decide() {
    let api = Api::new().await;
    let bot = api.post("/keys", json!({ "name": "bot", "roles": ["operator"] })).await.text("text");
    let run = api.with_key(&bot).post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
    let open = card(&api, &run).await;
    assert_eq!((&open["excluded"], &open["started_by"]), (&json!([]), &json!("key bot")), "{open}");
    assert_eq!(open["self_approval"], Value::Null, "{open}");
    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    assert!(!why.to_string().contains("key_"), "{why}");
    api.end().await;
}

#[tokio::test]
async fn whoever_started_it_does_not_decide_unless_the_tenant_says_so() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["operator", "approver"]), json!([])).await;
    let run = ada.post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
    let own = ada.post(&format!("/runs/{run}/approve"), json!({ "approve": true })).await;
    assert_eq!(own.problem(), (409, "APPROVAL_VOTE_REFUSED"));

    // The same for the owner of the key that started it.
    let body = json!({ "name": "ci", "roles": ["operator"], "owner": "ada" });
    let key = api.post("/keys", body).await.text("text");
    let by_key = api.with_key(&key).post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
    let owners = ada.post(&format!("/runs/{by_key}/approve"), json!({ "approve": true })).await;
    assert_eq!(owners.problem(), (409, "APPROVAL_VOTE_REFUSED"));

    let tenant = format!("/api/v1/tenants/{}", api.tenant);
    api.send("PATCH", &tenant, json!({ "self_approval": true })).await.ok();
    let voted = ada.post(&format!("/runs/{run}/approve"), json!({ "approve": true, "notes": "mine" })).await.ok();
    assert_eq!((&voted["state"], &voted["votes"][0]["notes"]), (&json!("approved"), &json!("mine")));
    let over = ada.post(&format!("/runs/{run}/approve"), json!({ "approve": true })).await;
    assert_eq!(over.problem(), (409, "APPROVAL_NOT_OPEN"));
    api.end().await;
}

/// The first open approval of a run.
pub async fn card(api: &Api, run: &str) -> Value {
    api.get(&format!("/approvals?run={run}&state=requested")).await.ok()["approvals"][0].clone()
}

/// A yes on exactly what the run waits for.
pub async fn yes(api: &Api, run: &str) -> Value {
    json!({ "approve": true, "digest": card(api, run).await["digest"] })
}

#[tokio::test]
async fn two_keys_need_two_people() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    let bob = Person::new(&api, "bob", json!(["approver"]), json!([])).await;
    let run = api.post("/runs", json!({ "plan": gate(2, json!([])) })).await.text("run_id");
    let path = format!("/runs/{run}/approve");
    let yes = yes(&api, &run).await;
    assert_eq!(ada.post(&path, yes.clone()).await.ok()["state"], "requested");
    let again = ada.post(&path, yes.clone()).await.ok();
    let votes = again["votes"].as_array().unwrap().len();
    assert_eq!((&again["state"], votes), (&json!("requested"), 1), "a person has one vote");
    assert_eq!(bob.post(&path, yes).await.ok()["run_state"], "succeeded");
    api.end().await;
}

/// A run can be approved without a digest only where nothing can be mistaken, and the answer says what it was.
#[tokio::test]
async fn a_vote_without_a_digest_is_for_what_cannot_reach_far() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    let gate = json!({ "key": "sure", "kind": "approval", "message": "ship\u{7} it?" });
    let behind = |step: Value| json!({ "plan": plan(json!([gate, step])) });
    let harmless = api.post("/runs", behind(task("ship"))).await.text("run_id");
    let shown = card(&api, &harmless).await;
    let path = format!("/runs/{harmless}/approve");
    let by_key = api.post(&path, json!({ "approve": true })).await;
    assert_eq!(by_key.problem(), (403, "PERSON_REQUIRED"));
    let stale = ada.post(&path, json!({ "approve": true, "digest": "00" })).await;
    assert_eq!((stale.problem(), &stale.body["approval"]), ((409, "APPROVAL_CHANGED"), &shown));
    let other = json!({ "approve": true, "approval": "apr_000000000000000000000000000000ff" });
    let other = ada.post(&path, other).await;
    assert_eq!((other.problem(), &other.body["approvals"]), ((409, "APPROVAL_NOT_OPEN"), &json!([shown])));
    let voted = ada.post(&path, json!({ "approve": true })).await.ok();
    assert_eq!((&voted["approval"], &voted["digest"]), (&shown["approval"], &shown["digest"]));
    assert_eq!((&voted["step"], &voted["tier"], &voted["position"]), (&json!("sure"), &json!("medium"), &json!(0)));
    assert_eq!(voted["summary"], "ada approved step `sure` of demo version 1: ship\\u{7} it?");

    let mut destructive = task("drop");
    destructive["rules"] = json!({ "destructive": true });
    let mut far = task("ship");
    far["blast_radius"] = json!("high");
    for step in [destructive, far] {
        let run = api.post("/runs", behind(step)).await.text("run_id");
        let (path, shown) = (format!("/runs/{run}/approve"), card(&api, &run).await);
        let blind = ada.post(&path, json!({ "approve": true })).await;
        assert_eq!(blind.problem(), (409, "APPROVAL_DIGEST_REQUIRED"));
        assert_eq!(blind.body["approvals"], json!([shown]), "what is open comes along");
        let detail = blind.text("detail");
        assert!(detail.contains(shown["digest"].as_str().unwrap()) && detail.contains("`digest`"), "{detail}");
        let named = json!({ "approve": true, "approval": shown["approval"] });
        assert_eq!(ada.post(&path, named).await.problem(), (409, "APPROVAL_DIGEST_REQUIRED"));
        let no = json!({ "approve": false });
        assert_eq!(ada.post(&path, no).await.problem(), (409, "APPROVAL_DIGEST_REQUIRED"));
        let voted =
            ada.post(&path, json!({ "approve": false, "digest": shown["digest"], "notes": "too far" })).await.ok();
        assert_eq!((&voted["tier"], &voted["state"]), (&json!("high"), &json!("rejected")));
        assert!(voted["summary"].as_str().unwrap().starts_with("ada rejected step `sure`"), "{voted}");
    }
    api.end().await;
}

/// The requester is excluded: a person who has the gate ask again does not answer it.
#[tokio::test]
async fn whoever_directs_a_run_to_ask_again_does_not_decide() {
    let api = Api::new().await;
    let gate = json!({ "key": "gate", "kind": "approval", "on_reject": "pause" });
    let ada = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    let bob = Person::new(&api, "bob", json!(["operator", "approver"]), json!([])).await;
    let run = api.post("/runs", json!({ "plan": plan(json!([gate])) })).await.text("run_id");
    let path = format!("/runs/{run}/approve");
    assert_eq!(ada.post(&path, json!({ "approve": false, "notes": "no" })).await.ok()["run_state"], "paused");
    bob.post(&format!("/runs/{run}/retry"), json!({})).await.ok();
    let own = bob.post(&path, json!({ "approve": true })).await;
    assert_eq!(own.problem(), (409, "APPROVAL_VOTE_REFUSED"));
    assert!(own.text("detail").contains("bob started or directed"), "{}", own.body);
    assert_eq!(ada.post(&path, json!({ "approve": true })).await.ok()["run_state"], "succeeded");
    api.end().await;
}

#[tokio::test]
async fn whoever_wrote_the_version_is_none_of_two_keys() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["operator", "approver"]), json!([])).await;
    let bob = Person::new(&api, "bob", json!(["approver"]), json!([])).await;
    let source = "name: gated\nsteps:\n  - id: gate\n    approval: { message: ship it?, quorum: 2 }\n";
    ada.post("/workflows", json!({ "source": source })).await.ok();
    let run = api.post("/runs", json!({ "workflow": "gated" })).await.text("run_id");
    let path = format!("/runs/{run}/approve");
    let yes = yes(&api, &run).await;
    let own = ada.post(&path, yes.clone()).await;
    assert_eq!(own.problem(), (409, "APPROVAL_VOTE_REFUSED"));
    assert!(own.text("detail").contains("wrote this version"), "{}", own.body);
    bob.post(&path, yes).await.ok();
    api.end().await;
}

/// A command line keeps no cookies: its token is sent like a key, and stands for the person.
#[tokio::test]
async fn a_persons_token_votes_and_ends() {
    let api = Api::new().await;
    Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    let run = api.post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
    let ask = async |body: Value| {
        let request = Request::post("/api/v1/auth/token").header(header::HOST, "localhost");
        let request = request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body.to_string()));
        api.ask(request.unwrap()).await
    };
    let wrong = ask(json!({ "by": "password", "name": "ada", "password": "wrong" })).await;
    assert_eq!(wrong.problem(), (401, "LOGIN_FAILED"));
    let wrong = ask(json!({ "by": "code", "code": "a.b.c", "verifier": "v" })).await;
    assert_eq!(wrong.problem(), (401, "LOGIN_CODE_OVER"));
    let made = ask(json!({ "by": "password", "name": "ada", "password": PASSWORD })).await;
    assert_eq!(made.text("person"), "ada");
    let ada = api.with_key(&made.text("token"));
    assert_eq!(ada.get("/me").await.ok()["person"], "ada");
    let voted = ada.post(&format!("/runs/{run}/approve"), json!({ "approve": true })).await.ok();
    assert_eq!(voted["votes"][0]["person"], "ada");
    assert_eq!(ada.post("/auth/logout", json!({})).await.status, 204);
    assert_eq!(ada.get("/me").await.problem(), (401, "UNAUTHORIZED"));
    api.end().await;
}

/// A person who may not decide cannot make an account that may.
#[tokio::test]
async fn an_account_of_the_starters_making_does_not_decide() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["admin", "operator"]), json!([])).await;
    let bob = Person::new(&api, "bob", json!(["approver"]), json!([])).await;
    let carl =
        api.post("/users", json!({ "name": "carl", "roles": ["viewer"], "password": PASSWORD })).await.text("user");
    let run = ada.post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
    let path = format!("/runs/{run}/approve");

    // An account that she makes, one that she gives a role, and one whose password she sets.
    let new = json!({ "name": "puppet", "roles": ["approver"], "password": PASSWORD });
    ada.post("/users", new).await.ok();
    ada.send("PATCH", &format!("/users/{carl}"), json!({ "roles": ["approver"] })).await.ok();
    let dora = api.post("/users", json!({ "name": "dora", "roles": ["approver"] })).await.text("user");
    ada.post(&format!("/users/{dora}/password"), json!({ "password": PASSWORD })).await;
    for name in ["puppet", "carl", "dora"] {
        let vote = Person::signed_in(&api, name).await.post(&path, json!({ "approve": true })).await;
        assert_eq!(vote.problem(), (409, "APPROVAL_VOTE_REFUSED"), "{name}");
        assert!(vote.text("detail").contains("within the last day"), "{name}: {}", vote.body);
    }
    // A person whose account she has not changed decides.
    bob.post(&path, json!({ "approve": true })).await.ok();
    api.end().await;
}

/// Nor by way of an account that they have made, or of a key without an owner that they have made.
#[tokio::test]
async fn an_account_that_went_through_the_starters_hands_does_not_decide() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["admin", "operator"]), json!([])).await;
    let bob = Person::new(&api, "bob", json!(["approver"]), json!([])).await;
    let new = |name: &str, role: &str| json!({ "name": name, "roles": [role], "password": PASSWORD });
    ada.post("/users", new("middle", "admin")).await.ok();
    let middle = Person::signed_in(&api, "middle").await;
    middle.post("/users", new("second", "approver")).await.ok();
    // Made by her, and changed by a person who is not excluded after that.
    let third = ada.post("/users", new("third", "approver")).await.text("user");
    api.send("PATCH", &format!("/api/v1/users/{third}"), json!({ "groups": ["sre"] })).await.ok();
    let key = ada.post("/keys", json!({ "name": "nobody's", "roles": ["admin"] })).await;
    api.with_key(&key.text("text")).post("/users", new("fourth", "approver")).await.ok();
    let run = ada.post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
    let path = format!("/runs/{run}/approve");
    for name in ["second", "third", "fourth"] {
        let vote = Person::signed_in(&api, name).await.post(&path, json!({ "approve": true })).await;
        assert_eq!(vote.problem(), (409, "APPROVAL_VOTE_REFUSED"), "{name}");
        assert!(vote.text("detail").contains("ada may not decide here"), "{name}: {}", vote.body);
    }
    bob.post(&path, json!({ "approve": true })).await.ok();
    api.end().await;
}

/// A new account is not the second key, no matter who has made it; except in the tenant's first day, when all are new.
#[tokio::test(start_paused = true)]
async fn where_two_must_agree_an_account_of_today_is_not_one_of_them() {
    let api = Api::new().await;
    let day = std::time::Duration::from_hours(24);
    Person::new(&api, "root", json!(["admin"]), json!([])).await;
    let of_the_first_day = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    let path_of = async || {
        let run = api.post("/runs", json!({ "plan": gate(2, json!([])) })).await.text("run_id");
        (format!("/runs/{run}/approve"), yes(&api, &run).await)
    };
    let (path, vote) = path_of().await;
    of_the_first_day.post(&path, vote).await.ok();

    tokio::time::advance(day + std::time::Duration::from_mins(1)).await;
    let root = Person::signed_in(&api, "root").await;
    root.post("/users", json!({ "name": "bob", "roles": ["approver"], "password": PASSWORD })).await.ok();
    let (path, vote) = path_of().await;
    let bob = Person::signed_in(&api, "bob").await;
    let refused = bob.post(&path, vote.clone()).await;
    assert_eq!(refused.problem(), (409, "APPROVAL_VOTE_REFUSED"));
    assert!(refused.text("detail").contains("was changed within the last day"), "{}", refused.body);
    // An admin who gives herself the right is of today, too.
    let users = api.get("/users").await.ok()["users"].as_array().unwrap().clone();
    let own = users.iter().find(|user| user["name"] == "root").unwrap()["user"].as_str().unwrap().to_owned();
    root.send("PATCH", &format!("/users/{own}"), json!({ "roles": ["admin", "approver"] })).await.ok();
    let promoted = Person::signed_in(&api, "root").await;
    assert_eq!(promoted.post(&path, vote.clone()).await.problem(), (409, "APPROVAL_VOTE_REFUSED"));
    // She says no, and decides where one is enough.
    let one = api.post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
    bob.post(&format!("/runs/{one}/approve"), json!({ "approve": true })).await.ok();
    Person::signed_in(&api, "ada").await.post(&path, vote).await.ok();
    tokio::time::advance(day).await;
    let (path, vote) = path_of().await;
    Person::signed_in(&api, "bob").await.post(&path, vote).await.ok();
    api.end().await;
}

/// The maker of a key has had it in hand, no matter whose name stands on it.
#[tokio::test]
async fn the_maker_of_a_key_in_anothers_name_does_not_decide_on_what_it_starts() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["admin", "approver"]), json!([])).await;
    let bob = Person::new(&api, "bob", json!(["operator"]), json!([])).await;
    let cyd = Person::new(&api, "cyd", json!(["approver"]), json!([])).await;
    let dan = Person::new(&api, "dan", json!(["admin", "approver"]), json!([])).await;
    let made = ada.post("/keys", json!({ "name": "ci", "roles": ["operator"], "owner": "bob" })).await;
    let rotated = dan.post(&format!("/keys/{}/rotate", made.text("key")), json!({ "overlap_ms": 60_000 })).await;
    let start = json!({ "plan": gate(1, json!([])) });
    for (key, maker) in [(&made, &ada), (&rotated, &dan)] {
        let run = api.with_key(&key.text("text")).post("/runs", start.clone()).await.text("run_id");
        let path = format!("/runs/{run}/approve");
        assert_eq!(maker.post(&path, json!({ "approve": true })).await.problem(), (409, "APPROVAL_VOTE_REFUSED"));
        cyd.post(&path, json!({ "approve": true })).await.ok();
    }
    // Nor on a gate that it has asked again, for a run that another person started.
    let gates = json!([{ "key": "gate", "kind": "approval", "on_reject": "pause" }]);
    let run = bob.post("/runs", json!({ "plan": plan(gates) })).await.text("run_id");
    cyd.post(&format!("/runs/{run}/approve"), json!({ "approve": false, "notes": "no" })).await.ok();
    let retried = api.with_key(&made.text("text")).post(&format!("/runs/{run}/retry"), json!({})).await;
    assert!(retried.status.is_success(), "{}", retried.body);
    let open = card(&api, &run).await;
    assert_eq!(open["excluded"], json!(["bob", "ada"]), "{open}");
    api.end().await;
}

/// Nor on what is started with a key that they have made with that one: it is handed on.
#[tokio::test]
async fn the_maker_of_a_key_is_behind_the_keys_that_are_made_with_it() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["admin", "approver"]), json!([])).await;
    Person::new(&api, "bob", json!(["admin"]), json!([])).await;
    let lent = ada.post("/keys", json!({ "name": "lent", "roles": ["admin"], "owner": "bob" })).await;
    let lent_key = api.with_key(&lent.text("text"));
    let second = lent_key.post("/keys", json!({ "name": "second", "roles": ["admin"] })).await.ok();
    assert_eq!((&second["owner"], &second["created_by"]), (&json!("bob"), &json!("ada")));
    let third = api.with_key(second["text"].as_str().unwrap());
    let rotated = third.post(&format!("/keys/{}/rotate", lent.text("key")), json!({ "overlap_ms": 60_000 })).await;
    for key in [second["text"].as_str().unwrap(), &rotated.text("text")] {
        let run = api.with_key(key).post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
        let vote = ada.post(&format!("/runs/{run}/approve"), json!({ "approve": true })).await;
        assert_eq!(vote.problem(), (409, "APPROVAL_VOTE_REFUSED"));
    }
    // What keeps one name of who made it is not made with it: that would be the wrong one.
    let address = api.post("/webhooks", json!({ "name": "hook", "source": "generic" })).await.text("endpoint_id");
    api.post("/workflows", json!({ "source": "name: w\nsteps: [{ id: a, task: t }]\n" })).await.ok();
    for (path, body) in [
        ("/keys".to_owned(), json!({ "name": "x", "roles": ["admin"], "owner": "ada" })),
        ("/webhooks".to_owned(), json!({ "name": "x", "source": "generic" })),
        (format!("/webhooks/{address}/rotate"), json!({})),
        ("/schedules".to_owned(), json!({ "name": "x", "workflow": "w", "cron": "0 3 * * *" })),
    ] {
        for by in [&lent_key, &third] {
            assert_eq!(by.post(&path, body.clone()).await.problem(), (403, "PERSON_REQUIRED"), "{path}");
        }
        ada.post(&path, body).await.ok();
    }
    api.end().await;
}

/// No person answers for a key without an owner: it might be the starter's.
#[tokio::test(start_paused = true)]
async fn an_account_that_an_ownerless_key_made_for_a_run_does_not_decide_on_it() {
    let api = Api::new().await;
    let before = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    let bob =
        api.post("/users", json!({ "name": "bob", "roles": ["viewer"], "password": PASSWORD })).await.text("user");
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    let run = api.post("/runs", json!({ "plan": gate(2, json!([])) })).await.text("run_id");
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    let path = format!("/runs/{run}/approve");
    let vote = yes(&api, &run).await;
    api.send("PATCH", &format!("/api/v1/users/{bob}"), json!({ "roles": ["approver"] })).await.ok();
    let puppet = Person::new(&api, "puppet", json!(["approver"]), json!([])).await;
    for person in [&puppet, &Person::signed_in(&api, "bob").await] {
        let refused = person.post(&path, vote.clone()).await;
        assert_eq!(refused.problem(), (409, "APPROVAL_VOTE_REFUSED"));
        assert!(refused.text("detail").contains("has no owner"), "{}", refused.body);
    }
    before.post(&path, vote).await.ok();
    // On what comes later they decide.
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    let later = api.post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
    puppet.post(&format!("/runs/{later}/approve"), json!({ "approve": true })).await.ok();
    api.end().await;
}

/// The token of a command line that a browser's visit was handed over to.
async fn handed_over(api: &Api, person: &Person<'_>) -> String {
    let verifier = "v".repeat(43);
    let challenge = interlock_server::identity::oidc::flow::challenge(&verifier);
    let form = format!("csrf={}&challenge={challenge}&port=4999", person.csrf);
    let request = Request::post("/auth/cli")
        .header(header::HOST, "localhost")
        .header(header::ORIGIN, "http://localhost")
        .header(header::COOKIE, &person.cookie)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(form));
    let answer = api.raw(request.unwrap()).await;
    let location = answer.headers()[header::LOCATION].to_str().unwrap();
    let code = location.split(['?', '&']).find_map(|part| part.strip_prefix("code=")).unwrap();
    api.post("/auth/token", json!({ "by": "code", "code": code, "verifier": verifier })).await.text("token")
}

/// A browser that was left open is not the second key. To say no, it is good enough.
#[tokio::test(start_paused = true)]
async fn where_two_must_agree_the_sign_in_is_a_recent_one() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    let bob = Person::new(&api, "bob", json!(["approver"]), json!([])).await;
    tokio::time::advance(std::time::Duration::from_mins(15)).await;
    let run = api.post("/runs", json!({ "plan": gate(2, json!([])) })).await.text("run_id");
    let path = format!("/runs/{run}/approve");
    let vote = yes(&api, &run).await;
    assert_eq!(ada.post(&path, vote.clone()).await.problem(), (403, "SIGN_IN_AGAIN"));
    // A command line that takes over the browser's visit is no younger than it.
    let taken_over = handed_over(&api, &ada).await;
    assert_eq!(api.with_key(&taken_over).post(&path, vote.clone()).await.problem(), (403, "SIGN_IN_AGAIN"));
    Person::signed_in(&api, "ada").await.post(&path, vote.clone()).await.ok();
    // One of one may decide all day.
    let alone = api.post("/runs", json!({ "plan": gate(1, json!([])) })).await.text("run_id");
    bob.post(&format!("/runs/{alone}/approve"), json!({ "approve": true })).await.ok();
    bob.post(&path, json!({ "approve": false, "notes": "not today", "digest": vote["digest"] })).await.ok();
    api.end().await;
}

/// What is done with a key is its owner's doing, and a disabled person does nothing any more.
#[tokio::test]
async fn a_key_of_a_disabled_person_is_none() {
    let api = Api::new().await;
    let ada = api.post("/users", json!({ "name": "ada", "roles": ["operator"] })).await.text("user");
    let made = api.post("/keys", json!({ "name": "ci", "roles": ["operator"], "owner": "ada" })).await;
    let ci = api.with_key(&made.text("text"));
    assert_eq!(ci.get("/runs").await.status, 200);
    api.send("PATCH", &format!("/api/v1/users/{ada}"), json!({ "disabled": true })).await.ok();
    assert_eq!(ci.get("/runs").await.problem(), (401, "UNAUTHORIZED"));
    api.end().await;
}

/// With two keys the author of the workflow may not decide, and the card says so.
#[tokio::test(start_paused = true)]
async fn a_card_names_the_author_among_those_who_may_not_decide() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["admin", "approver"]), json!([])).await;
    let source = "name: w\nsteps:\n  - { id: gate, approval: { quorum: 2 } }\n  - { id: one, task: a }\n";
    let applied = ada.post("/workflows", json!({ "source": source })).await;
    assert!(applied.status.is_success(), "{}", applied.body);
    let run = api.post("/runs", json!({ "workflow": "w" })).await.text("run_id");
    let open = card(&api, &run).await;
    assert!(open["excluded"].as_array().unwrap().contains(&json!("ada")), "{open}");
    let listed = api.get(&format!("/approvals/{}", open["approval"].as_str().unwrap())).await.ok();
    assert_eq!((&listed["excluded"], &listed["digest"]), (&open["excluded"], &open["digest"]));
    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    assert_eq!(why["because"][0]["excluded"], open["excluded"], "{why}");
    api.end().await;
}
