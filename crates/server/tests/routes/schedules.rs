//! Schedules over HTTP, in paused time: slots come, overlap, are missed and made up for, once each.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::ids::{ServerId, TenantId};
use interlock_core::time::Timestamp;
use interlock_engine::audit::Actor;
use interlock_engine::clock::Clock;
use interlock_engine::ids::IdSource;
use interlock_engine::{ApplyWorkflow, Engine, EngineOptions, Expected};
use interlock_store::{
    Mode, NoFaults, Options, Page, RunFilter, ScheduleRow, ScheduleSpec, Store, StoreUrl, Tenant, forget_memory,
};
use serde_json::{Value, json};
use tokio::time::sleep;
use uuid::Uuid;

use crate::harness::{self, Api};
use crate::webhooks::counted;

const QUICK: &str = "name: quick\ninputs: { since: { type: string, required: false } }\nsteps:\n  - id: a\n    transform: ${{ inputs }}\n";
const LONG: &str = "name: long\nsteps:\n  - id: a\n    wait: { for: 150s }\n";

pub async fn apply(engine: &Engine, tenant: TenantId, source: &str) {
    let request = ApplyWorkflow {
        tenant,
        file: "test.yaml".into(),
        source: source.into(),
        name: None,
        expected: Expected::Anything,
        person: None,
        by: Actor::system(),
    };
    engine.workflows().apply(request).await.unwrap();
}

async fn create(engine: &Engine, tenant: TenantId, spec: ScheduleSpec) -> ScheduleRow {
    let row = engine.schedules().draft(tenant, spec, None).await.unwrap();
    engine.schedules().add(row.clone(), &Actor::system(), None).await.unwrap();
    row
}

fn every_minute(name: &str, workflow: &str, overlap: &str) -> Value {
    json!({ "name": name, "workflow": workflow, "cron": "* * * * *", "overlap": overlap })
}

async fn slots(api: &Api, name: &str) -> Vec<String> {
    let detail = api.get(&format!("/schedules/{name}")).await.ok();
    let slots = detail["slots"].as_array().unwrap();
    slots.iter().rev().map(|slot| slot["state"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_schedule_is_made_previewed_rests_and_goes() {
    let api = Api::new().await;
    apply(&api.engine, api.tenant, QUICK).await;
    let body = json!({
        "name": "mondays", "workflow": "quick", "cron": "0 3 * * 1", "timezone": "Europe/Berlin", "dst": "once",
        "inputs": { "since": "${{ trigger.slot }}" },
    });
    let made = api.post("/schedules", body.clone()).await;
    assert_eq!(made.status, 201);
    assert_eq!(made.body["next"]["utc"], "2024-07-08T01:00:00Z");
    assert_eq!(made.body["next"]["local"], "Mon 2024-07-08 03:00:00 CEST (+02:00)");
    assert_eq!(api.post("/schedules", body).await.problem(), (409, "NAME_TAKEN"));
    let next = api.get("/schedules/mondays/next?count=3").await.ok();
    assert_eq!(next["slots"].as_array().unwrap().len(), 3);
    let paused = api.post("/schedules/mondays/pause", json!({ "reason": "holidays" })).await.ok();
    assert_eq!((&paused["paused"], &paused["note"], &paused["next"]), (&json!(true), &json!("holidays"), &Value::Null));
    let resumed = api.post("/schedules/mondays/resume", json!({})).await.ok();
    assert_eq!(resumed["paused"], false);
    let listed = api.get("/schedules").await.ok();
    assert_eq!(listed["schedules"][0]["name"], "mondays");

    let run = api.post_with("/schedules/mondays/trigger", json!({}), &[("idempotency-key", "k")]).await.text("run_id");
    let again =
        api.post_with("/schedules/mondays/trigger", json!({}), &[("idempotency-key", "k")]).await.text("run_id");
    assert_eq!(run, again);
    let ended = api.get(&format!("/runs/{run}?wait_ms=5000")).await.ok();
    assert_eq!(ended["trigger"]["type"], "schedule");
    assert!(ended["output"]["since"].as_str().unwrap().starts_with("2024-07-03T"), "{ended}");
    let id = made.text("schedule_id");
    assert_eq!(api.get(&format!("/schedules/{id}")).await.text("name"), "mondays");
    let elsewhere = api.with_key(&api.other_key);
    assert_eq!(elsewhere.get(&format!("/schedules/{id}")).await.problem(), (404, "SCHEDULE_NOT_FOUND"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_a_schedule_is_refused() {
    let api = Api::new().await;
    apply(&api.engine, api.tenant, QUICK).await;
    let with = |name: &str, value: Value| {
        let mut body = every_minute("s", "quick", "skip");
        body[name] = value;
        body
    };
    for (name, value) in [
        ("cron", json!("61 * * * *")),
        ("cron", json!("0 0 30 2 *")),
        ("timezone", json!("Mars/Olympus")),
        ("name", json!("a b")),
        ("name", json!("sch_1")),
        ("jitter_ms", json!(86_400_000)),
    ] {
        assert_eq!(
            api.post("/schedules", with(name, value.clone())).await.problem(),
            (422, "INPUT_INVALID"),
            "{value}"
        );
    }
    let near = api.post("/schedules", with("timezone", json!("Europe/Berln"))).await;
    assert!(near.text("detail").contains("did you mean `Europe/Berlin`?"), "{}", near.body);
    let strict =
        "name: strict\ninputs: { host: { type: string, required: true } }\nsteps:\n  - id: a\n    transform: done\n";
    apply(&api.engine, api.tenant, strict).await;
    let missing = api.post("/schedules", with("workflow", json!("strict"))).await;
    assert_eq!(missing.problem(), (422, "INPUT_INVALID"), "every slot would fail");
    assert!(missing.text("detail").contains("inputs.host"), "{}", missing.body);
    let mut rendered = with("workflow", json!("strict"));
    rendered["inputs"] = json!({ "host": "${{ trigger.slot }}" });
    api.post("/schedules", rendered).await.ok();
    assert_eq!(api.post("/schedules", with("workflow", json!("none"))).await.problem(), (404, "WORKFLOW_NOT_FOUND"));
    assert_eq!(api.post("/schedules", with("overlap", json!("maybe"))).await.problem(), (400, "REQUEST_INVALID"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn overlapping_slots_follow_their_policy() {
    let api = Api::new().await;
    apply(&api.engine, api.tenant, LONG).await;
    for overlap in ["allow", "skip", "queue", "cancel_previous"] {
        assert_eq!(api.post("/schedules", every_minute(overlap, "long", overlap)).await.status, 201);
    }
    // The clock stands at 09:46:40: slots come after 20, 80, 140, 200 and 260 seconds.
    sleep(Duration::from_secs(265)).await;
    assert_eq!(slots(&api, "allow").await, ["started"; 5]);
    assert_eq!(slots(&api, "skip").await, ["started", "skipped", "skipped", "started", "skipped"]);
    assert_eq!(slots(&api, "queue").await, ["started", "started", "queued", "queued", "queued"]);
    assert_eq!(slots(&api, "cancel_previous").await, ["started"; 5]);
    let canceled = api.get("/runs?state=canceled").await.ok();
    assert_eq!(canceled["runs"].as_array().unwrap().len(), 4);
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn slots_and_triggers_are_counted_by_result() {
    let api = Api::new().await;
    apply(&api.engine, api.tenant, QUICK).await;
    api.post("/schedules", every_minute("s", "quick", "allow")).await.ok();
    for _ in 0..2 {
        api.post_with("/schedules/s/trigger", json!({}), &[("idempotency-key", "k")]).await.ok();
    }
    counted(&api, "schedule triggers", &[("new", 1), ("replayed", 1)]).await;
    sleep(Duration::from_secs(130)).await;
    api.post("/workflows/quick/disable", json!({})).await.ok();
    sleep(Duration::from_secs(70)).await;
    api.post("/schedules/s/pause", json!({})).await.ok();
    let slots = slots(&api, "s").await;
    let of = |state: &str| slots.iter().filter(|slot| *slot == state).count() as u64;
    assert!(of("started") >= 2 && of("failed") >= 1, "{slots:?}");
    counted(&api, "scheduler", &[("new", of("started")), ("replayed", 0)]).await;
    let (_, numbers) = crate::numbers::shown_to(&api.in_charge().await, "text/plain").await;
    assert!(!numbers.contains(r#"source="scheduler",result="failed"} 0"#), "{numbers}");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_files_schedules_follow_the_file() {
    let api = Api::new().await;
    let file = |on: &str| format!("name: nightly\n{on}steps:\n  - id: a\n    transform: done\n");
    let two = "on:\n  schedule:\n    - { cron: \"0 3 * * *\", timezone: Europe/Berlin }\n    - { cron: \"0 4 * * *\", name: later }\n";
    api.post("/workflows", json!({ "source": file(two) })).await.ok();
    assert_eq!(api.get("/workflows/nightly").await.ok()["applied_by"], "key test");
    let made = api.get("/schedules/nightly").await.ok();
    assert_eq!(made["created_by"], "key test", "{made}");
    let run = api.post("/schedules/nightly/trigger", json!({})).await.text("run_id");
    let run = api.get(&format!("/runs/{run}")).await.ok();
    assert_eq!(run.get("started_by"), None, "a key without an owner is no person: nobody starts its runs: {run}");
    let names = async || {
        let listed = api.get("/schedules").await.ok();
        let names = listed["schedules"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["later", "nightly"]);
    api.post("/schedules/nightly/pause", json!({})).await.ok();
    let one = "on:\n  schedule: { cron: \"30 3 * * *\" }\n";
    apply(&api.engine, api.tenant, &file(one)).await;
    assert_eq!(names().await, ["nightly"]);
    let kept = api.get("/schedules/nightly").await.ok();
    assert_eq!(
        (&kept["cron"], &kept["timezone"], &kept["paused"]),
        (&json!("30 3 * * *"), &json!("UTC"), &json!(true))
    );
    let gone = api.ask(
        axum::http::Request::delete("/api/v1/schedules/nightly")
            .header("host", "localhost")
            .header("authorization", format!("Bearer {}", api.key))
            .body(axum::body::Body::empty())
            .unwrap(),
    );
    assert_eq!(gone.await.problem(), (422, "INPUT_INVALID"), "it stands in a file");
    apply(&api.engine, api.tenant, &file("")).await;
    assert_eq!(names().await, Vec::<String>::new());
    api.end().await;
}

/// An engine on a database that others may be on too.
async fn server(database: &str, clock: &Clock, number: u64) -> Engine {
    let options = EngineOptions {
        ids: IdSource::seeded(clock.clone(), number),
        clock: clock.clone(),
        expressions_in_place: true,
        ..harness::equipped()
    };
    let mode = Mode::Inline(Arc::new(NoFaults));
    let store_options = Options { mode, ..Options::new(ServerId(Uuid::from_u128(u128::from(number)))) };
    let store = Store::open(&StoreUrl::SqliteMemory(database.to_owned()), store_options).await.unwrap();
    Engine::open(store, options).await.unwrap()
}

fn minutely(name: &str) -> ScheduleSpec {
    ScheduleSpec {
        name: name.into(),
        workflow: "quick".into(),
        origin: interlock_core::trigger::Origin::Api,
        cron: "* * * * *".into(),
        timezone: "UTC".into(),
        dst: interlock_core::trigger::schedule::DstPolicy::Once,
        overlap: interlock_core::trigger::schedule::Overlap::Allow,
        catch_up: interlock_core::time::Millis::from_mins(10),
        jitter: interlock_core::time::Millis::from_secs(20),
        inputs: interlock_core::json::Json::trusted("{}"),
        workspace: "default".into(),
        paused: false,
    }
}

async fn started(engine: &Engine, tenant: TenantId) -> usize {
    engine.store().list_runs(tenant, &RunFilter::default(), Page { limit: 500, after: None }).await.unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn two_servers_start_each_slot_once() {
    let clock = Clock::starting_at(Timestamp(1_720_000_000_000));
    let (one, two) = (server("two-schedulers", &clock, 1).await, server("two-schedulers", &clock, 2).await);
    let tenant = TenantId(Uuid::from_u128(7));
    one.tenants().put(Tenant::new(tenant, "one", one.now())).await.unwrap();
    apply(&one, tenant, QUICK).await;
    create(&one, tenant, minutely("minutely")).await;
    sleep(Duration::from_secs(20 + 29 * 60 + 30)).await;
    assert_eq!(started(&two, tenant).await, 30);
    for engine in [one, two] {
        engine.stop().await;
        engine.store().clone().close().await;
    }
    forget_memory("two-schedulers");
}

#[tokio::test(start_paused = true)]
async fn restarts_at_every_tick_lose_and_double_nothing() {
    let clock = Clock::starting_at(Timestamp(1_720_000_000_000));
    let tenant = TenantId(Uuid::from_u128(7));
    let database = "restarted-scheduler";
    let first = server(database, &clock, 1).await;
    first.tenants().put(Tenant::new(tenant, "one", first.now())).await.unwrap();
    apply(&first, tenant, QUICK).await;
    let row = create(&first, tenant, minutely("minutely")).await;
    first.store().kill();
    first.stop().await;
    for number in 2..40 {
        let engine = server(database, &clock, number).await;
        sleep(Duration::from_millis(7_000 + 613 * (number % 9))).await;
        // As a crash would: what was submitted and not committed is lost.
        engine.store().kill();
        engine.stop().await;
        sleep(Duration::from_secs(20)).await;
    }
    let last = server(database, &clock, 99).await;
    sleep(Duration::from_secs(30)).await;
    let slots = last.store().slots(tenant, row.id, 500).await.unwrap();
    let gaps = slots.windows(2).map(|pair| pair[0].slot_at.since(pair[1].slot_at).0);
    assert!(gaps.clone().all(|gap| gap == 60_000), "{:?}", gaps.collect::<Vec<_>>());
    assert!(slots.len() >= 15 && slots.iter().all(|slot| slot.run.is_some()), "{slots:?}");
    assert_eq!(started(&last, tenant).await, slots.len());

    // No server runs for an hour, or the clock jumps: old slots are missed, those of the window are made up for.
    last.stop().await;
    last.store().clone().close().await;
    sleep(Duration::from_hours(1)).await;
    let engine = server(database, &clock, 100).await;
    sleep(Duration::from_secs(40)).await;
    let after = engine.store().slots(tenant, row.id, 500).await.unwrap();
    let fresh = &after[..after.len() - slots.len()];
    let missed: Vec<_> = fresh.iter().filter(|slot| slot.run.is_none()).collect();
    assert_eq!(missed.len(), 1, "{fresh:?}");
    assert!((10..=12).contains(&(fresh.len() - 1)), "{}", fresh.len());
    engine.stop().await;
    engine.store().clone().close().await;
    forget_memory(database);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_has_only_so_many_schedules() {
    let api = Api::new().await;
    apply(&api.engine, api.tenant, QUICK).await;
    let new = |name: &str| json!({ "name": name, "workflow": "quick", "cron": "0 3 * * *", "paused": true });
    api.post("/schedules", new("s0000")).await.ok();
    let first = api.engine.schedules().get(api.tenant, "s0000").await.unwrap().spec;
    for number in 1..interlock_core::limits::SCHEDULES_MAX {
        let spec = ScheduleSpec { name: format!("s{number:04}"), ..first.clone() };
        create(&api.engine, api.tenant, spec).await;
    }
    let over = api.post("/schedules", new("over")).await;
    assert_eq!(over.problem(), (422, "INPUT_INVALID"));
    assert!(over.text("detail").contains("at most"), "{}", over.body);
    // A file that asks for one more is refused whole: no version is there whose schedule is not.
    let nightly = "name: nightly\non: { schedule: { cron: '0 3 * * *' } }\nsteps:\n  - id: a\n    transform: 1\n";
    let refused = api.post("/workflows", json!({ "source": nightly })).await;
    assert_eq!(refused.problem(), (422, "INPUT_INVALID"));
    assert_eq!(api.get("/workflows/nightly").await.status, 404);
    api.end().await;
}
