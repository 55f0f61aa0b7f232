//! Every change of configuration is in the tenant's audit log: once, with who asked for it, and without any secret. Held
//! against the matrix, so that a new route cannot be forgotten.

use std::time::Duration;

use interlock_core::ids::{OutboxId, TenantId};
use interlock_core::json::Json;
use interlock_core::tenant::identity::Role;
use interlock_server::identity::NewKey;
use interlock_server::matrix::MATRIX;
use interlock_store::{NewMessage, OutboxFailed, OutboxRetry, ReplayMessages};
use serde_json::{Value, json};

use crate::harness::{Api, task};
use crate::repeats::{named, source};

const OLGA: &str = "olga";
const PASSWORD: &str = "correct horse battery";
const GIVEN_SECRET: &str = "a secret of theirs";
const BOT_TOKEN: &str = "xoxb-of-nobody";
/// A secret: who knows such a path can post.
const SECRET_URL: &str = "https://example.org/hooks/T0KEN";

/// The run's own events tell of them, and of the worker that carries a step out.
const OF_RUNS: &[&str] = &[
    "POST /runs",
    "POST /runs/{run}/cancel",
    "POST /runs/{run}/pause",
    "POST /runs/{run}/resume",
    "POST /runs/{run}/retry",
    "POST /runs/{run}/skip",
    "POST /runs/{run}/reassign",
    "POST /runs/{run}/restart",
    "POST /runs/{run}/rollback",
    "POST /runs/{run}/steps/{step}/resolve",
    "POST /runs/{run}/signals",
    "POST /runs/{run}/approve",
    "POST /approvals/{approval}/decision",
    "POST /approvals/{approval}/vote",
    "POST /executions",
    "POST /executions/{session_id}/approve",
    "POST /executions/{session_id}/rollback",
    "POST /schedules/{schedule}/trigger",
    "POST /agent/register",
    "POST /agent/heartbeat",
    "POST /agent/poll",
    "POST /agent/{session}/complete-step",
    "POST /agent/{session}/effects",
    "POST /agent/{session}/outcomes",
    "POST /agent/{session}/output",
    "POST /agent/{session}/assignments",
    "POST /agent/unregister",
    "POST /agent/broker",
];

/// What comes from outside: the runs that it starts or wakes tell of it.
const ARRIVALS: &[&str] = &["POST /signals", "POST /webhooks/{endpoint}", "POST /slack/interactions/{connection}"];

/// Questions that change nothing.
const QUESTIONS: &[&str] = &[
    "POST /bulk/preview",
    "POST /workflows/validate",
    "POST /workflows/plan",
    "POST /policy/eval",
    "POST /policy/replay",
    "POST /policy/tests",
];

/// People come and go, and say who they are elsewhere: `login.*`, `invite.used`, `slack.linked`.
const SIGN_INS: &[&str] = &[
    "POST /setup",
    "POST /login",
    "POST /logout",
    "POST /auth/cli",
    "POST /slack/link",
    "POST /auth/login",
    "POST /auth/token",
    "POST /auth/logout",
    "POST /auth/ws-token",
];

/// A worker's own certificate, which takes HTTPS: `enrolment`.
const CERTIFICATES: &[&str] = &["POST /agent/enrol", "POST /agent/renew"];

/// Only people decide, one of two admins: `two_keys`.
const BY_TWO: &[&str] = &["POST /changes/{change}/decision"];

/// What it erases is in the log already: `audit`.
const ERASURES: &[&str] = &["POST /audit/erasures"];

/// What a note is about.
enum Subject {
    /// The thing that the path names.
    Named,
    /// This field of the answer.
    Field(&'static str),
    Is(String),
}

/// A request that changes configuration, and the notes that it leaves.
struct Change {
    route: &'static str,
    id: String,
    body: Value,
    kinds: &'static [&'static str],
    subject: Subject,
}

fn made(route: &'static str, body: Value, kind: &'static [&'static str], id: &'static str) -> Change {
    Change { route, id: String::new(), body, kinds: kind, subject: Subject::Field(id) }
}

fn changed(route: &'static str, id: &str, body: Value, kinds: &'static [&'static str]) -> Change {
    Change { route, id: id.to_owned(), body, kinds, subject: Subject::Named }
}

/// All of them, in an order in which they work.
async fn changes(api: &Api) -> Vec<Change> {
    for workflow in ["there", "other"] {
        api.post("/workflows", json!({ "source": source(workflow) })).await.ok();
    }
    let key = |name: &str| json!({ "name": name, "roles": ["viewer"] });
    let slots = |name: &str| json!({ "name": name, "workflow": "there", "cron": "0 3 * * *" });
    let made_as = async |path: &str, body: Value, id: &str| api.post(path, body).await.text(id);
    let [spare, lost] = [made_as("/keys", key("spare"), "key").await, made_as("/keys", key("lost"), "key").await];
    let terms = |name: &str| json!({ "name": name, "terms": { "environments": ["dev"] } });
    let [drained, kept, over] = [api.register().await, api.register().await, api.register().await];
    api.post("/agent/unregister", json!({ "session": over })).await.ok();
    let identity = made_as("/worker-identities", terms("spare"), "identity").await;
    let ada = made_as("/users", json!({ "name": "ada", "roles": ["viewer"], "password": PASSWORD }), "user").await;
    let bob = made_as("/users", json!({ "name": "bob", "roles": ["viewer"] }), "user").await;
    let eve = made_as("/users", json!({ "name": "eve", "roles": ["viewer"] }), "user").await;
    let sign_in = json!({ "by": "password", "name": "ada", "password": PASSWORD });
    api.post("/auth/token", sign_in).await.ok();
    let until = api.engine.now().0 + 86_400_000;
    let lent = |to: &str| json!({ "delegator": "bob", "delegate": to, "until": until, "reason": "away" });
    let delegation = made_as("/delegations", lent("eve"), "delegation").await;
    let [daily, paused] = [
        made_as("/schedules", slots("daily"), "schedule_id").await,
        made_as("/schedules", slots("paused"), "schedule_id").await,
    ];
    let address = made_as("/webhooks", json!({ "name": "in", "source": "github" }), "endpoint_id").await;
    // An event that does not come, so that nothing is sent.
    let quiet = json!({ "url": SECRET_URL, "events": ["approval.expired"] });
    let endpoint = made_as("/webhook-endpoints", quiet.clone(), "endpoint_id").await;
    let mailbox = made_as("/webhook-endpoints", quiet.clone(), "endpoint_id").await;
    api.post(&format!("/webhook-endpoints/{mailbox}/disable"), json!({})).await.ok();
    let dead = dead_letter(api, &mailbox).await;
    let files = crate::policy::shipped_and(api, crate::policy::BY_NAME).await;
    let slack = crate::slack::connected(api, api.tenant, "eve").await.to_string();
    let team = json!({ "team": "T0ONE", "channel": "C0TWO", "bot_token": BOT_TOKEN });
    let nobody = json!({ "action": "cancel", "filter": { "subject": "nobody" }, "expected_count": 0, "reason": "x" });
    let ended = api.start(json!([task("a")])).await;
    api.post(&format!("/runs/{ended}/cancel"), json!({ "reason": "seen" })).await.ok();
    vec![
        changed("PATCH /runs/{run}/labels", &ended, json!({ "labels": { "team": "web" } }), &["run.labeled"]),
        made("POST /policy/versions", json!({ "files": files }), &["policy.pushed"], "version"),
        Change {
            subject: Subject::Is("1".into()),
            ..changed("PATCH /policy", "", json!({ "active": 1 }), &["policy.changed"])
        },
        made("POST /keys", key("one"), &["key.created"], "key"),
        changed("POST /keys/{key}/rotate", &spare, json!({}), &["key.rotated"]),
        changed("DELETE /keys/{key}", &lost, json!({}), &["key.revoked"]),
        changed("POST /workers/{session}/drain", &drained, json!({}), &["worker.drained"]),
        changed(
            "POST /workers/{session}/maintenance",
            &kept,
            json!({ "reason": "a new disk" }),
            &["worker.maintenance_begun"],
        ),
        changed("DELETE /workers/{session}/maintenance", &kept, json!({}), &["worker.maintenance_ended"]),
        changed("DELETE /workers/{session}", &over, json!({}), &["worker.forgotten"]),
        made("POST /worker-identities", terms("one"), &["worker_identity.created"], "identity"),
        changed("DELETE /worker-identities/{identity}", &identity, json!({}), &["worker_identity.revoked"]),
        made("POST /users", json!({ "name": "cyd", "roles": ["viewer"] }), &["user.created"], "user"),
        changed("POST /users/{user}/invite", &eve, json!({}), &["user.invited"]),
        changed("POST /users/{user}/password", &bob, json!({ "password": PASSWORD }), &["user.password_set"]),
        changed("PATCH /users/{user}", &ada, json!({ "disabled": true }), &["user.changed", "login.ended"]),
        made("POST /delegations", lent("cyd"), &["delegation.created"], "delegation"),
        changed("DELETE /delegations/{delegation}", &delegation, json!({}), &["delegation.revoked"]),
        made("POST /tenants", json!({ "name": "three" }), &["tenant.created"], "tenant"),
        changed(
            "PATCH /tenants/{tenant}",
            &api.tenant.to_string(),
            json!({ "self_approval": true }),
            &["tenant.changed"],
        ),
        made("POST /workflows", json!({ "source": source("new") }), &["workflow.applied"], "workflow"),
        changed("PUT /workflows/{workflow}", "newer", json!({ "source": source("newer") }), &["workflow.applied"]),
        changed("POST /workflows/{workflow}/disable", "other", json!({}), &["workflow.disabled"]),
        changed("POST /workflows/{workflow}/enable", "other", json!({}), &["workflow.enabled"]),
        made("POST /schedules", slots("nightly"), &["schedule.created"], "schedule_id"),
        changed("POST /schedules/{schedule}/pause", &paused, json!({ "reason": "rest" }), &["schedule.changed"]),
        changed("POST /schedules/{schedule}/resume", &daily, json!({}), &["schedule.changed"]),
        changed("DELETE /schedules/{schedule}", &daily, json!({}), &["schedule.removed"]),
        made(
            "POST /webhooks",
            json!({ "name": "theirs", "source": "slack", "secret": GIVEN_SECRET }),
            &["webhook.created"],
            "endpoint_id",
        ),
        changed("PATCH /webhooks/{endpoint}", &address, json!({ "paused": true }), &["webhook.changed"]),
        changed("POST /webhooks/{endpoint}/rotate", &address, json!({}), &["webhook.rotated"]),
        changed("DELETE /webhooks/{endpoint}", &address, json!({}), &["webhook.removed"]),
        made("POST /webhook-endpoints", quiet, &["webhook_endpoint.created"], "endpoint_id"),
        changed("POST /webhook-endpoints/{endpoint}/rotate", &endpoint, json!({}), &["webhook_endpoint.rotated"]),
        changed("POST /webhook-endpoints/{endpoint}/disable", &endpoint, json!({}), &["webhook_endpoint.disabled"]),
        changed("POST /webhook-endpoints/{endpoint}/enable", &endpoint, json!({}), &["webhook_endpoint.enabled"]),
        changed("DELETE /webhook-endpoints/{endpoint}", &endpoint, json!({}), &["webhook_endpoint.removed"]),
        changed(
            "POST /webhook-endpoints/{endpoint}/replay",
            &mailbox,
            json!({ "delivery_id": dead }),
            &["webhook_endpoint.replayed"],
        ),
        Change {
            subject: Subject::Is(dead.clone()),
            ..changed("POST /dead-letters/replay", "", json!({ "message_id": dead }), &["dead_letter.replayed"])
        },
        Change { subject: Subject::Is(slack.clone()), ..changed("PUT /slack", "", team, &["slack.changed"]) },
        changed("DELETE /slack/links/{person}", "eve", json!({}), &["slack.unlinked"]),
        Change { subject: Subject::Is(slack), ..changed("DELETE /slack", "", json!({}), &["slack.removed"]) },
        made("POST /bulk", nobody, &["bulk.started"], "job_id"),
    ]
}

/// A message to a disabled endpoint that was given up.
async fn dead_letter(api: &Api, endpoint: &str) -> String {
    let (tenant, at, id) = (api.tenant, api.engine.now(), OutboxId(api.engine.fresh_id()));
    let run = api.start(json!([task("a")])).await.parse().unwrap();
    let payload = Json::of(&json!({ "type": "session.created" })).unwrap();
    let messages = vec![NewMessage { id, run, payload, place: 1 }];
    api.engine
        .store()
        .write(ReplayMessages { tenant, endpoint: endpoint.parse().unwrap(), messages, at })
        .await
        .unwrap();
    let failed = OutboxFailed { tenant, id, error: "no".into(), retry: OutboxRetry::Dead(at) };
    api.engine.store().write(failed).await.unwrap();
    id.to_string()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The whole log, in its own order.
async fn log(api: &Api) -> Vec<Value> {
    let (mut entries, mut from) = (Vec::new(), json!(0));
    while !from.is_null() {
        let page = api.get(&format!("/audit?from={from}&limit=500")).await.ok();
        entries.extend(page["entries"].as_array().unwrap().iter().cloned());
        from = page["next"].clone();
    }
    entries
}

/// The log, once everything that was committed is in it.
async fn whole_log(api: &Api) -> Vec<Value> {
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let logged = log(api).await;
        if api.engine.store().audit_notes(api.tenant, 1).await.unwrap().is_empty() && !logged.is_empty() {
            return logged;
        }
    }
    panic!("some notes are never logged");
}

fn about<'a>(log: &'a [Value], kind: &str, subject: &str) -> Vec<&'a Value> {
    log.iter()
        .filter(|logged| logged["entry"]["types"] == json!([kind]) && logged["entry"]["subject"] == subject)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn every_change_of_configuration_is_in_the_log_once() {
    let api = Api::new().await;
    let all = Role::ALL.iter().copied().collect();
    let new = NewKey { installation: true, owner: Some(OLGA.into()), ..NewKey::new(api.tenant, "all", all) };
    let api = api.with_key(&api.new_key(new).await);
    let changes = changes(&api).await;
    let mut secrets = vec![PASSWORD.to_owned(), GIVEN_SECRET.to_owned(), "T0KEN".to_owned(), api.key.clone()];
    secrets.push(BOT_TOKEN.to_owned());
    let (mut expected, mut made_tenant) = (Vec::new(), None);
    for Change { route, id, body, kinds, subject } in &changes {
        let (method, path) = route.split_once(' ').unwrap();
        let path = if path.contains('{') { named(path, id) } else { path.to_owned() };
        let answer = api.send(method, &format!("/api/v1{path}"), body.clone()).await.ok();
        let subject = match subject {
            Subject::Named => id.clone(),
            Subject::Field(field) => text(&answer[*field]),
            Subject::Is(text) => text.clone(),
        };
        secrets.extend(
            ["text", "secret", "admin_key"].iter().filter_map(|field| answer[*field].as_str()).map(str::to_owned),
        );
        secrets.extend(
            answer["link"].as_str().and_then(|link| link.split_once("token=")).map(|(_, token)| token.to_owned()),
        );
        made_tenant = made_tenant.or(answer["admin_key"].as_str().map(|key| (subject.clone(), key.to_owned())));
        expected.extend(kinds.iter().map(|kind| (*route, *kind, subject.clone())));
    }
    assert_eq!(secrets.len(), 12, "every secret that an answer holds is looked for");

    let logged = whole_log(&api).await;
    let documented =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/audit.md")).unwrap();
    for (route, kind, subject) in expected {
        let found = about(&logged, kind, &subject);
        assert_eq!(found.len(), 1, "{route}: {kind} of {subject} in {logged:#?}");
        assert_eq!(found[0]["opened"]["actor"], OLGA, "{route}: {kind}");
        assert_eq!(found[0]["entry"]["initiator"], "user", "{route}: {kind}");
        assert!(documented.contains(&format!("`{kind}`")), "{kind} is not in docs/reference/audit.md");
    }
    let whole = Value::from(logged).to_string();
    for secret in &secrets {
        assert!(!whole.contains(secret.as_str()), "a secret is in the log: {secret}");
    }

    // What is done to a tenant from outside stands in its own log too, with its first key.
    let (tenant, admin_key) = made_tenant.unwrap();
    let own = api.with_key(&admin_key);
    let first = loop {
        let logged = log(&own).await;
        if !logged.is_empty() {
            break logged;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    assert_eq!(about(&first, "tenant.created", &tenant)[0]["opened"]["actor"], OLGA);
    assert!(first.iter().any(|logged| logged["entry"]["types"] == json!(["key.created"])), "{first:#?}");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn every_route_that_changes_something_is_noted_or_told_by_runs() {
    let api = Api::new().await.in_charge().await;
    let changes = changes(&api).await;
    let others = [OF_RUNS, ARRIVALS, QUESTIONS, SIGN_INS, CERTIFICATES, BY_TWO, ERASURES].concat();
    let noted: Vec<_> = changes.iter().map(|change| change.route).collect();
    let mutating = MATRIX.iter().filter(|line| line.method != "GET");
    let routes: Vec<_> = mutating
        .map(|line| format!("{} {}", line.method, line.path.strip_prefix("/api/v1").unwrap_or(line.path)))
        .collect();
    for route in &routes {
        let listed = [&noted, &others].into_iter().flatten().filter(|listed| **listed == route.as_str()).count();
        assert_eq!(listed, 1, "{route} changes something: give it a line in `changes`, or say here who tells of it");
    }
    for listed in noted.iter().chain(&others) {
        assert!(routes.iter().any(|route| route == listed), "{listed} is in no line of the matrix");
    }
    api.end().await;
}

/// One that fails is told with the name that was typed, each time and without the password; for a tenant that does not
/// exist there is no log, and nothing is kept.
#[tokio::test(start_paused = true)]
async fn every_sign_in_is_in_the_log() {
    let api = Api::new().await;
    let account = json!({ "name": "ada", "roles": ["viewer"], "password": PASSWORD });
    let ada = api.post("/users", account).await.text("user");
    for (name, tenant) in [("ada", None), ("ada", None), ("nobody", None), ("ghost", Some("no-such-tenant"))] {
        let wrong = json!({ "by": "password", "name": name, "tenant": tenant, "password": GIVEN_SECRET });
        assert_eq!(api.post("/auth/token", wrong).await.problem(), (401, "LOGIN_FAILED"), "{name}");
    }
    let right = json!({ "by": "password", "name": "ada", "password": PASSWORD });
    let token = api.post("/auth/token", right).await.text("token");
    let logged = whole_log(&api).await;
    let succeeded = about(&logged, "login.succeeded", &ada);
    assert_eq!((succeeded.len(), &succeeded[0]["opened"]["actor"]), (1, &json!("ada")));
    let failed = about(&logged, "login.failed", &api.tenant.to_string());
    let mut names: Vec<_> = failed.iter().filter_map(|logged| logged["opened"]["details"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, [r#"{"name":"ada"}"#, r#"{"name":"ada"}"#, r#"{"name":"nobody"}"#]);
    let whole = Value::from(logged).to_string();
    assert!([GIVEN_SECRET, PASSWORD, token.as_str()].iter().all(|secret| !whole.contains(secret)));
    let nowhere = TenantId::from_bytes([0; 16]);
    assert!(api.engine.store().audit_notes(nowhere, 1).await.unwrap().is_empty(), "nobody would ever read it");
    api.end().await;
}

/// Names that nobody has cost their sender nothing: they do not fill the log, and none is lost.
#[tokio::test]
async fn many_failed_sign_ins_from_one_source_are_counted() {
    let api = Api::new().await;
    let account = json!({ "name": "ada", "roles": ["viewer"], "password": PASSWORD });
    api.post("/users", account).await.ok();
    for number in 0..33 {
        let name = if number == 30 { "ada".to_owned() } else { format!("made-up-{number}") };
        let wrong = json!({ "by": "password", "name": name, "password": GIVEN_SECRET });
        assert_eq!(api.post("/auth/token", wrong).await.problem(), (401, "LOGIN_FAILED"), "{name}");
    }
    // What was counted is told after a minute, or when the engine stops.
    api.engine.stop().await;
    let logged = log(&api).await;
    let failed = about(&logged, "login.failed", &api.tenant.to_string());
    let mut told: Vec<_> = failed.iter().filter_map(|logged| logged["opened"]["details"].as_str()).collect();
    let notes = api.engine.store().audit_notes(api.tenant, 1_000).await.unwrap();
    told.extend(notes.iter().filter(|note| note.kind == "login.failed").map(|note| note.details.as_str()));
    assert_eq!(told.len(), 21, "{told:?}");
    assert_eq!(told.iter().filter(|told| told.contains("made-up-")).count(), 20);
    let counted: Value = serde_json::from_str(told.iter().find(|told| told.contains("more")).unwrap()).unwrap();
    assert_eq!(counted, json!({ "more": 13, "accounts": ["ada"] }));
    api.end().await;
}

/// No caller asks for them: the server makes its first keys and the first admin's link by itself.
#[tokio::test(start_paused = true)]
async fn the_first_admin_is_in_the_log() {
    let api = Api::new().await;
    let token = api.identity().invite_first_admin(api.tenant).await.unwrap().token;
    let ada = api.identity().accept_invite(&token, Some("ada".into()), PASSWORD.into()).await.unwrap();
    let logged = whole_log(&api).await;
    let tenant = api.tenant.to_string();
    let invited = about(&logged, "user.invited", &tenant);
    assert_eq!((invited.len(), &invited[0]["entry"]["initiator"]), (1, &json!("system")), "{invited:#?}");
    let used = about(&logged, "invite.used", &tenant);
    assert_eq!((used.len(), &used[0]["opened"]["actor"]), (1, &json!("ada")), "{used:#?}");
    assert_eq!(about(&logged, "user.created", &ada.id.to_string()).len(), 1);
    let whole = Value::from(logged).to_string();
    assert!(!whole.contains(&token) && !whole.contains(PASSWORD));
    api.end().await;
}
