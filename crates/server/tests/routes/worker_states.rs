//! Workers that are connected and are given less, over HTTP: errored, and in maintenance.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::plan::control_capability;
use interlock_core::time::Millis;
use interlock_core::work::WorkerHello;
use interlock_core::work::controls::required_controls;
use interlock_store::{NoFaults, Tenant};
use serde_json::json;

use crate::assignments::{answer, keeper, poll, start, take};
use crate::harness::{Api, completed, engine_of, two_tenants};

#[tokio::test(start_paused = true)]
async fn a_worker_at_fault_is_shown_with_its_reason_and_leaves_the_state_by_its_canaries() {
    let api = Api::new().await;
    let run = start(&api).await;
    let session = keeper(&api, "box").await;
    let polled = poll(&api, &session).await;
    let refused = json!({ "status": "refused", "check": "workdir", "why": "the disk is full", "own_fault": true });
    let path = format!("/agent/{session}/assignments");
    assert_eq!(api.post(&path, answer(&polled["offers"][0], refused)).await.status, 204);
    let worker = api.get(&format!("/workers/{session}")).await.ok();
    assert_eq!((&worker["state"], &worker["fault"]["check"]), (&json!("errored"), &json!("workdir")), "{worker}");
    assert_eq!((&worker["fault"]["run_id"], &worker["fault"]["why"]), (&json!(run), &json!("the disk is full")));

    let other = api.post("/runs", json!({ "workflow": "shares" })).await.text("run_id");
    let why = api.get(&format!("/runs/{other}/why")).await.ok();
    assert_eq!((&why["because"][0]["cause"], &why["because"][0]["workers"]), (&json!("assigning"), &json!(0)), "{why}");
    let skipped = &why["because"][1];
    assert_eq!(skipped["cause"], "passed_over", "{why}");
    let skipped = &skipped["workers"][0];
    assert_eq!((&skipped["worker"], &skipped["reason"]), (&json!("box"), &json!("errored")));
    assert_eq!((&skipped["check"], &skipped["run"]), (&json!("workdir"), &json!(run)));

    let beat = api.post("/agent/heartbeat", json!({ "session": session, "held": [] })).await.ok();
    assert_eq!(beat["prove"], true, "{beat}");
    let passed = json!({ "session": session, "held": [], "canary": { "passed": true } });
    assert_eq!(api.post("/agent/heartbeat", passed).await.ok().get("prove"), None);
    let worker = api.get(&format!("/workers/{session}")).await.ok();
    assert_eq!((&worker["state"], worker.get("fault")), (&json!("online"), None), "{worker}");
    assert_eq!(poll(&api, &session).await["offers"][0]["run"], json!(other));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_keeps_new_work_from_a_worker_and_ends_that() {
    let api = Api::new().await;
    let session = keeper(&api, "box").await;
    let path = format!("/workers/{session}/maintenance");
    assert_eq!(api.post(&path, json!({ "reason": " " })).await.problem(), (422, "INPUT_INVALID"));
    let past = json!({ "reason": "a new disk", "until": api.engine.now().0 });
    assert_eq!(api.post(&path, past).await.problem(), (422, "INPUT_INVALID"));
    let until = api.engine.now().0 + 7_200_000;
    let kept = api.post(&path, json!({ "reason": "a new disk", "until": until })).await.ok();
    assert_eq!(kept["state"], "maintenance", "{kept}");
    assert_eq!(kept["maintenance"]["reason"], "a new disk");
    assert_eq!(kept["maintenance"]["until"], json!(until));
    assert!(kept["maintenance"]["by"].is_string(), "{kept}");

    let run = start(&api).await;
    assert_eq!(poll(&api, &session).await.get("offers"), None);
    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    assert_eq!(why["because"][1]["workers"][0]["reason"], "maintenance", "{why}");
    let beat = api.post("/agent/heartbeat", json!({ "session": session, "held": [] })).await.ok();
    assert!(beat["notice"].as_str().is_some_and(|notice| notice.contains("maintenance")), "{beat}");
    assert_eq!(beat.get("drain"), None, "it stays");

    let ended = api.send("DELETE", &format!("/api/v1{path}"), json!({})).await.ok();
    assert_eq!((&ended["state"], ended.get("maintenance")), (&json!("online"), None), "{ended}");
    assert_eq!(poll(&api, &session).await["offers"][0]["run"], json!(run));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_in_maintenance_keeps_no_run_from_itself_that_it_has_already() {
    let api = Api::new().await;
    let run = start(&api).await;
    let session = keeper(&api, "box").await;
    take(&api, &session).await;
    api.post(&format!("/workers/{session}/maintenance"), json!({ "reason": "a new disk" })).await.ok();
    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    assert_eq!((&why["because"][0]["cause"], &why["because"][0]["workers"]), (&json!("unclaimed"), &json!(1)), "{why}");
    assert_eq!(why["because"].as_array().unwrap().len(), 1, "nobody is passed over: {why}");
    assert_eq!(poll(&api, &session).await["assignments"][0]["run"], json!(run));
    // Another run waits for it, and says so.
    let other = api.post("/runs", json!({ "workflow": "shares" })).await.text("run_id");
    let why = api.get(&format!("/runs/{other}/why")).await.ok();
    assert_eq!(
        (&why["because"][0]["cause"], &why["because"][0]["waits"]),
        (&json!("assigning"), &json!(true)),
        "{why}"
    );
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_because_of_the_flag_names_it_and_one_that_a_worker_has_goes_on() {
    let api = Api::new().await;
    let run = start(&api).await;
    let session = keeper(&api, "box").await;
    take(&api, &session).await;
    let mut tenant = api.engine.store().tenant(api.tenant).await.unwrap().unwrap();
    tenant.settings.worker_orchestration = false;
    api.engine.tenants().put(tenant.clone()).await.unwrap();
    let other = api.post("/runs", json!({ "workflow": "shares" })).await.text("run_id");
    let why = api.get(&format!("/runs/{other}/why")).await.ok();
    let cause = &why["because"][0];
    assert_eq!((&cause["cause"], &cause["only_embedded"]), (&json!("assigning"), &json!(true)), "{why}");
    assert_eq!((&cause["waits"], &why["next"]), (&json!(true), &json!(["switch_on", "cancel"])), "{why}");

    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    let cause = &why["because"][0];
    assert_eq!((&cause["cause"], &cause["workers"]), (&json!("unclaimed"), &json!(1)), "{why}");
    assert_eq!(cause.get("only_embedded"), None, "the worker goes on with it: {why}");
    for _ in 0..2 {
        let step = poll(&api, &session).await["assignments"][0].clone();
        assert_eq!(step["run"], json!(run));
        api.report(&session, &step, completed(json!(1))).await.ok();
    }
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["state"], "succeeded");

    // Far longer than a worker is looked for.
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        api.post("/agent/heartbeat", json!({ "session": session, "held": [] })).await.ok();
    }
    assert_eq!(api.get(&format!("/runs/{other}")).await.ok()["state"], "pending");
    tenant.settings.worker_orchestration = true;
    api.engine.tenants().put(tenant).await.unwrap();
    assert_eq!(poll(&api, &session).await["offers"][0]["run"], json!(other));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_was_offline_a_moment_ago_is_named_while_others_are_asked_first() {
    let api = Api::new().await;
    keeper(&api, "box").await;
    // Its lease runs out.
    tokio::time::sleep(Duration::from_secs(25)).await;
    let stays = keeper(&api, "stays").await;
    let back = keeper(&api, "box").await;
    let run = start(&api).await;
    let passed_over = async || {
        let why = api.get(&format!("/runs/{run}/why")).await.ok();
        why["because"].as_array().unwrap().iter().find(|cause| cause["cause"] == "passed_over").cloned()
    };
    let told = passed_over().await.expect("another worker comes first");
    let skipped = &told["workers"][0];
    assert_eq!((&skipped["worker"], &skipped["session"]), (&json!("box"), &json!(back)), "{told}");
    assert_eq!((&skipped["reason"], told["workers"].as_array().unwrap().len()), (&json!("recently_offline"), 1));
    assert!(skipped["until"].as_i64().is_some_and(|until| until > api.engine.now().0), "{told}");

    assert_eq!(poll(&api, &back).await.get("offers"), None, "as it is told");
    // No other is left, so it is skipped no more.
    api.engine.workers().unregister(stays.parse().unwrap()).await.unwrap();
    assert_eq!(passed_over().await, None);
    assert_eq!(poll(&api, &back).await["offers"][0]["run"], json!(run));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_was_offline_is_not_passed_over_for_one_without_room() {
    let api = Api::new().await;
    keeper(&api, "box").await;
    // Its lease runs out.
    tokio::time::sleep(Duration::from_secs(25)).await;
    let stays = keeper(&api, "stays").await;
    for _ in 0..2 {
        start(&api).await;
        let offer = poll(&api, &stays).await["offers"][0].clone();
        let path = format!("/agent/{stays}/assignments");
        assert_eq!(api.post(&path, answer(&offer, json!({ "status": "acked" }))).await.status, 204);
        let polled = poll(&api, &stays).await;
        assert_eq!(polled["assignments"][0]["run"], offer["run"], "{polled}");
    }
    let back = keeper(&api, "box").await;
    let run = start(&api).await;
    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    assert_eq!((&why["because"][0]["cause"], &why["because"][0]["workers"]), (&json!("assigning"), &json!(2)), "{why}");
    assert_eq!(why["because"].as_array().unwrap().len(), 1, "nobody is passed over: {why}");
    assert_eq!(poll(&api, &back).await["offers"][0]["run"], json!(run));
    api.end().await;
}

/// With a lease of two minutes a worker says every half minute that it lives.
#[tokio::test(start_paused = true)]
async fn a_worker_is_silent_by_the_lease_that_is_set() {
    let database = "worker-states-lease";
    let engine = engine_of(database, Arc::new(NoFaults), |options| {
        (options.session_lease, options.session_renewal) = (Millis::from_mins(2), Millis::from_secs(30));
    })
    .await;
    let tenants = two_tenants(&engine).await;
    let api = Api::of(engine, tenants, database.to_owned()).await;
    keeper(&api, "box").await;
    tokio::time::sleep(Duration::from_secs(125)).await;
    let (stays, back) = (keeper(&api, "stays").await, keeper(&api, "box").await);
    tokio::time::sleep(Duration::from_secs(40)).await;
    let run = start(&api).await;
    let silent = async || api.get(&format!("/workers/{stays}")).await.ok()["silent"].clone();
    assert_eq!(silent().await, json!(false));
    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    let (takers, passed_over) = (&why["because"][0]["workers"], &why["because"][1]["workers"][0]);
    assert_eq!((takers, &passed_over["reason"]), (&json!(2), &json!("recently_offline")), "{why}");
    assert_eq!(poll(&api, &back).await.get("offers"), None, "the other one comes first");
    tokio::time::sleep(Duration::from_secs(25)).await;
    assert_eq!(silent().await, json!(true));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_command_is_for_workers_that_are_near_and_have_its_labels() {
    let api = Api::new().await;
    let requires = "{ labels: { rack: a }, max_latency_ms: 50 }";
    let step = format!("{{ id: a, run: [/usr/bin/true], effect: read, requires: {requires} }}");
    let source = format!("name: near\nprofile: dev-flex\nsteps: [{step}]\n");
    api.post("/workflows", json!({ "source": source })).await.ok();
    let run = api.post("/runs", json!({ "workflow": "near" })).await.text("run_id");
    let register = async |name: &str, rack: &str| {
        let capabilities = json!(["effects", "command:dev-flex"]);
        let labels = json!({ "rack": rack });
        let hello = json!({ "worker": name, "queues": ["default"], "slots": 1, "capabilities": capabilities, "labels": labels });
        api.post("/agent/register", hello).await.text("session")
    };
    let passed_over = async |name: &str| {
        let why = api.get(&format!("/runs/{run}/why")).await.ok();
        let causes = why["because"].as_array().unwrap().clone();
        let told = causes.iter().find(|cause| cause["cause"] == "passed_over").unwrap_or_else(|| panic!("{why}"));
        let worker = told["workers"].as_array().unwrap().iter().find(|worker| worker["worker"] == name).cloned();
        let worker = worker.unwrap_or_else(|| panic!("{why}"));
        (worker["reason"].as_str().unwrap().to_owned(), worker["why"].as_str().unwrap().to_owned())
    };
    let elsewhere = register("elsewhere", "b").await;
    let asked = json!({ "session": elsewhere, "max": 1, "wait_ms": 500, "round_trip_ms": 1 });
    assert_eq!(api.post("/agent/poll", asked).await.ok()["assignments"], json!([]));
    let (reason, why) = passed_over("elsewhere").await;
    assert!(reason == "labels" && why.contains("its label `rack` is `b`"), "{why}");

    let here = register("here", "a").await;
    let asked = json!({ "session": here, "max": 1, "wait_ms": 500 });
    assert_eq!(
        api.post("/agent/poll", asked.clone()).await.ok()["assignments"],
        json!([]),
        "nobody knows how near it is"
    );
    assert!(passed_over("here").await.1.contains("not known here yet"));
    let beat = json!({ "session": here, "held": [], "round_trip_ms": 90 });
    api.post("/agent/heartbeat", beat).await.ok();
    assert_eq!(api.post("/agent/poll", asked).await.ok()["assignments"], json!([]), "it is too far away");
    let (reason, why) = passed_over("here").await;
    assert!(reason == "latency" && why.contains("take 90 ms"), "{why}");
    let nearer = json!({ "session": here, "max": 1, "wait_ms": 500, "round_trip_ms": 50 });
    let polled = api.post("/agent/poll", nearer).await.ok();
    assert_eq!((&polled["assignments"][0]["run"], &polled["assignments"][0]["step"]), (&json!(run), &json!("a")));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_is_for_workers_that_have_what_it_requires() {
    let api = Api::new().await;
    let source = "name: resize\nsteps:\n\
                  - { id: a, task: resize, requires: { capabilities: [gpu], labels: { rack: a } } }\n\
                  - { id: b, task: resize }\n";
    api.post("/workflows", json!({ "source": source })).await.ok();
    let register = async |name: &str, capabilities: &[&str], rack: &str| {
        let mut hello = json!({ "worker": name, "queues": ["default"], "slots": 2, "tasks": ["resize"] });
        (hello["capabilities"], hello["labels"]) = (json!(capabilities), json!({ "rack": rack }));
        api.post("/agent/register", hello).await.text("session")
    };
    let asked = async |session: &str| {
        let asked = json!({ "session": session, "max": 1, "wait_ms": 500 });
        api.post("/agent/poll", asked).await.ok()["assignments"].clone()
    };
    let plain = register("plain", &["effects"], "a").await;
    let elsewhere = register("elsewhere", &["effects", "gpu"], "b").await;
    let run = api.post("/runs", json!({ "workflow": "resize" })).await.text("run_id");
    assert_eq!((asked(&plain).await, asked(&elsewhere).await), (json!([]), json!([])));
    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    let causes = why["because"].as_array().unwrap();
    let unclaimed = causes.iter().find(|cause| cause["cause"] == "unclaimed").unwrap_or_else(|| panic!("{why}"));
    assert_eq!((&unclaimed["task"], &unclaimed["workers"]), (&json!("resize"), &json!(0)), "{why}");
    assert_eq!(unclaimed["needs"], json!(["gpu", "label:rack=a"]), "{why}");
    let passed_over = causes.iter().find(|cause| cause["cause"] == "passed_over").unwrap_or_else(|| panic!("{why}"));
    assert_eq!(passed_over["workers"][0]["worker"], "elsewhere", "what a worker lacks is no bound: {why}");

    let fitting = register("fitting", &["effects", "gpu"], "a").await;
    let taken = asked(&fitting).await;
    assert_eq!((&taken[0]["run"], &taken[0]["step"]), (&json!(run), &json!("a")));
    // The next step asks for nothing, and is anybody's.
    api.report(&fitting, &taken[0], completed(json!(1))).await.ok();
    let next = asked(&plain).await;
    assert_eq!((&next[0]["run"], &next[0]["step"]), (&json!(run), &json!("b")));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_control_that_the_host_of_a_worker_lacks_is_named() {
    let api = Api::new().await;
    let source = "name: critical\nprofile: prod-critical\nsteps: [{ id: a, run: [/usr/bin/true], effect: read }]\n";
    api.post("/workflows", json!({ "source": source })).await.ok();
    let register = async |name: &str, lacks: Option<&str>| {
        let controls = required_controls("prod-critical").filter(|control| Some(*control) != lacks);
        let capabilities: Vec<String> =
            controls.map(control_capability).chain(["effects", "command:dev-flex"].map(str::to_owned)).collect();
        let hello = json!({ "worker": name, "queues": ["default"], "slots": 1, "capabilities": capabilities });
        api.post("/agent/register", hello).await.text("session")
    };
    register("weak", Some("landlock_scopes")).await;
    register("not-told-to", None).await;
    keeper(&api, "old").await;
    let run = api.post("/runs", json!({ "workflow": "critical" })).await.text("run_id");
    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    let causes = why["because"].as_array().unwrap();
    let told = causes.iter().find(|cause| cause["cause"] == "passed_over").unwrap_or_else(|| panic!("{why}"));
    let [weak] = told["workers"].as_array().unwrap().as_slice() else {
        panic!("what the others lack is no bound: {why}")
    };
    assert_eq!((&weak["worker"], &weak["reason"]), (&json!("weak"), &json!("controls")), "{why}");
    let named = "its host lacks the control `landlock_scopes`, and `prod-critical` runs nothing without";
    assert!(weak["why"].as_str().unwrap().starts_with(named), "{why}");
    api.end().await;
}

/// The worker inside a server runs commands of one tenant, and there are two here.
#[tokio::test(start_paused = true)]
async fn the_servers_own_worker_is_told_to_take_no_commands_of_several_tenants() {
    let api = Api::new().await;
    let hello = json!({ "worker": "inside", "queues": ["default"], "slots": 1, "capabilities": ["effects", "command:dev-flex"] });
    let hello: WorkerHello = serde_json::from_value(hello).unwrap();
    let session = api.engine.workers().register(hello).await.unwrap().session;
    let source = "name: one\nprofile: dev-flex\nsteps: [{ id: a, run: [/usr/bin/true], effect: read }]\n";
    api.post("/workflows", json!({ "source": source })).await.ok();
    let run = api.post("/runs", json!({ "workflow": "one" })).await.text("run_id");
    let causes = async || api.get(&format!("/runs/{run}/why")).await.ok()["because"].clone();
    let told = causes().await;
    assert_eq!((&told[0]["cause"], &told[0]["workers"]), (&json!("unclaimed"), &json!(0)), "{told}");
    let skipped = &told[1]["workers"][0];
    assert_eq!((&skipped["worker"], &skipped["reason"]), (&json!("inside"), &json!("several_tenants")), "{told}");
    assert!(skipped["why"].as_str().unwrap().contains("serves all tenants, and there are several"), "{told}");
    let poll = async || api.engine.workers().poll(session, 1, Duration::from_millis(500)).await.unwrap();
    assert_eq!(poll().await, []);

    let other = api.engine.store().tenant(api.other_tenant).await.unwrap().unwrap();
    let disabled_at = Some(api.engine.now());
    api.engine.tenants().put(Tenant { disabled_at, ..other }).await.unwrap();
    let told = causes().await;
    assert_eq!((&told[0]["workers"], told.as_array().unwrap().len()), (&json!(1), 1), "{told}");
    assert_eq!(poll().await[0].at.run.to_string(), run);
    api.end().await;
}
