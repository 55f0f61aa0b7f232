use std::sync::{Arc, Mutex};

use interlock_connectors::{Connection, Connections, Fields, Probed, Sent, find};
use interlock_core::state::EffectClass;
use serde_json::{Map, Value, json};

use crate::harness::{ReceivedRequest, Reply, StandIn, checked, facts, perform, probe, undo, with_connections};

const SYS_ID: &str = "9c573169c611228700193229fff72400";

#[derive(Default)]
struct Instance {
    record: Map<String, Value>,
    notes: Vec<String>,
}

/// An instance with one incident, as the Table API describes it.
async fn instance(loses_answers: bool) -> (StandIn, Arc<Mutex<Instance>>) {
    let record = json!({ "number": "INC1", "sys_mod_count": "4", "assignment_group": "old", "state": "2" });
    let notes = vec!["an earlier note".to_owned()];
    let instance = Arc::new(Mutex::new(Instance { record: record.as_object().unwrap().clone(), notes }));
    let inside = Arc::clone(&instance);
    let server = StandIn::start(move |seen: &ReceivedRequest| {
        assert_eq!(seen.headers["authorization"], "Basic aW50ZXJsb2NrOnRvay0wMTIzNDU2Nzg5");
        assert_eq!(seen.headers["accept"], "application/json");
        let mut instance = inside.lock().unwrap();
        let path = format!("/api/now/table/incident/{SYS_ID}");
        match (seen.method.as_str(), seen.path.as_str()) {
            ("GET", at) if at == path => {
                assert!(seen.query.contains("sysparm_exclude_reference_link=true"), "{}", seen.query);
                Reply::Json(200, json!({ "result": instance.record }))
            }
            ("PATCH", at) if at == path => {
                for (name, value) in seen.body.as_object().unwrap() {
                    if name == "work_notes" {
                        instance.notes.push(value.as_str().unwrap().to_owned());
                    } else {
                        instance.record.insert(name.clone(), value.clone());
                    }
                }
                if loses_answers { Reply::Lost } else { Reply::Json(200, json!({ "result": instance.record })) }
            }
            ("GET", "/api/now/table/sys_journal_field") => {
                let entries: Vec<_> = instance.notes.iter().map(|note| json!({ "value": note })).collect();
                Reply::Json(200, json!({ "result": entries }))
            }
            other => panic!("no such call: {other:?}"),
        }
    })
    .await;
    (server, instance)
}

fn caller(url: &str) -> interlock_connectors::send::Caller {
    let connection = Connection::new("servicenow", url).with_user("interlock").with_secret("TOKEN");
    with_connections(Connections::default().with(connection))
}

fn update() -> Value {
    json!({ "sys_id": SYS_ID, "fields": { "assignment_group": "new", "state": "6", "work_notes": "Restarted" } })
}

#[tokio::test]
async fn an_update_sets_the_fields_and_its_inverse_sets_them_back() {
    let (server, instance) = instance(false).await;
    let caller = caller(&server.url);
    let output = perform(&caller, "servicenow.incident.update", update()).await.unwrap();
    assert_eq!(output["before"]["assignment_group"], "old");
    assert_eq!(output["number"], "INC1");
    let sent = &server.seen()[1];
    assert_eq!((&sent.body["assignment_group"], &sent.body["state"]), (&json!("new"), &json!("6")));
    let note = sent.body["work_notes"].as_str().unwrap();
    assert_eq!(note, format!("Restarted\n\n[interlock {}]", facts().mark()));
    assert_eq!(instance.lock().unwrap().record["assignment_group"], "new");

    undo(&caller, "servicenow.incident.update", update(), &output).await.unwrap();
    let instance = instance.lock().unwrap();
    assert_eq!((&instance.record["assignment_group"], &instance.record["state"]), (&json!("old"), &json!("2")));
    assert!(instance.notes.last().unwrap().contains("no longer holds"));
}

/// An incident whose `state` nobody may set. The answer to an update tells each field as it is stored and as people see it.
async fn guarded() -> StandIn {
    StandIn::start(|seen: &ReceivedRequest| {
        let plain = json!({ "number": "INC1", "sys_mod_count": "4", "assignment_group": "a1", "state": "2" });
        if seen.method == "GET" {
            return Reply::Json(200, json!({ "result": plain }));
        }
        assert!(seen.query.contains("sysparm_display_value=all"), "{}", seen.query);
        let both = |shown: &str, stored: &str| json!({ "display_value": shown, "value": stored });
        let group = if seen.body["assignment_group"] == "SRE" { both("SRE", "b2") } else { both("Ops", "a1") };
        let (number, count, state) = (both("INC1", "INC1"), both("5", "5"), both("In Progress", "2"));
        let result = json!({ "number": number, "sys_mod_count": count, "assignment_group": group, "state": state });
        Reply::Json(200, json!({ "result": result }))
    })
    .await
}

#[tokio::test]
async fn a_success_that_has_set_nothing_is_a_failure() {
    let server = guarded().await;
    let caller = caller(&server.url);
    let update = |fields: Value| json!({ "sys_id": SYS_ID, "fields": fields });
    let asked = update(json!({ "state": "6" }));
    let failure = perform(&caller, "servicenow.incident.update", asked).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.sent), ("FIELDS_NOT_SET", Sent::CertainlyNot), "{failure}");
    assert!(failure.message.contains("state") && !failure.class.is_retryable(), "{failure}");

    let asked = update(json!({ "state": "6", "assignment_group": "SRE" }));
    let output = perform(&caller, "servicenow.incident.update", asked).await.unwrap();
    assert_eq!((&output["not_set"], &output["sys_mod_count"]), (&json!(["state"]), &json!("5")), "{output}");
    // What it is asked to be, as stored or as people see it, it is.
    for fields in [json!({ "state": 2 }), json!({ "state": "In Progress" }), json!({ "assignment_group": "SRE" })] {
        let output = perform(&caller, "servicenow.incident.update", update(fields.clone())).await.unwrap();
        assert_eq!(output["not_set"], json!([]), "{fields}");
    }
}

#[tokio::test]
async fn an_incident_that_is_not_as_it_was_read_is_left_alone() {
    let (server, instance) = instance(false).await;
    let caller = caller(&server.url);
    for (fields, count, code) in [
        (json!({ "asignment_group": "new" }), json!(null), "FIELD_UNKNOWN"),
        (json!({ "assignment_group": "new" }), json!("3"), "RECORD_CHANGED"),
    ] {
        let given = json!({ "sys_id": SYS_ID, "fields": fields, "sys_mod_count": count });
        let failure = perform(&caller, "servicenow.incident.update", given).await.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.sent), (code, Sent::CertainlyNot), "{failure}");
    }
    assert!(server.seen().iter().all(|seen| seen.method == "GET"), "nothing was sent");
    let given = json!({ "sys_id": SYS_ID, "fields": { "assignment_group": "new" }, "sys_mod_count": "4" });
    perform(&caller, "servicenow.incident.update", given).await.unwrap();
    assert_eq!(instance.lock().unwrap().record["assignment_group"], "new");
}

#[tokio::test]
async fn a_lost_answer_is_found_by_the_notes_mark() {
    let (server, _) = instance(true).await;
    let caller = caller(&server.url);
    assert_eq!(probe(&caller, "servicenow.incident.update", update()).await, Probed::NoTrace);
    let failure = perform(&caller, "servicenow.incident.update", update()).await.unwrap_err();
    assert_eq!(failure.sent, Sent::Unknown);
    assert!(matches!(probe(&caller, "servicenow.incident.update", update()).await, Probed::Happened(_)));
}

#[tokio::test]
async fn notes_that_may_not_be_read_prove_nothing() {
    let server = StandIn::start(|_: &ReceivedRequest| Reply::Json(200, json!({ "result": [] }))).await;
    let probed = probe(&caller(&server.url), "servicenow.incident.update", update()).await;
    assert!(matches!(probed, Probed::CannotTell(_)), "{probed:?}");
}

#[tokio::test]
async fn an_incident_is_read_with_the_fields_that_were_asked_for() {
    let (server, _) = instance(false).await;
    let caller = caller(&server.url);
    let fields = json!({ "sys_id": SYS_ID, "fields": ["number", "state"] });
    let output = perform(&caller, "servicenow.incident.get", fields).await.unwrap();
    assert_eq!(output["number"], "INC1");
    assert!(server.seen()[0].query.ends_with("sysparm_fields=number%2Cstate"), "{}", server.seen()[0].query);
}

#[test]
fn only_a_note_makes_a_repeat_unsafe() {
    let update = find("servicenow.incident.update").unwrap();
    let class = |fields: Value| {
        let given = json!({ "sys_id": SYS_ID, "fields": fields });
        update.effect(&Fields::written(update.declaration(), given))
    };
    assert_eq!(class(json!({ "state": "6" })), EffectClass::Idempotent);
    assert_eq!(class(json!({ "state": "6", "comments": "x" })), EffectClass::Unsafe);
    assert_eq!(class(json!("${{ inputs.fields }}")), EffectClass::Unsafe, "what is not known is the worst");
}

#[test]
fn what_cannot_be_undone_exactly_is_not_undone() {
    let fields = json!({ "sys_id": SYS_ID, "fields": { "state": "6" } });
    let (update, state) = checked("servicenow.incident.update", fields);
    let says = update.inverse(&state, &json!({ "before": null })).unwrap_err();
    assert!(says.contains("`state`"), "{says}");
    let fields = json!({ "sys_id": SYS_ID, "fields": { "comments": "hello" } });
    let (update, comment) = checked("servicenow.incident.update", fields);
    assert!(update.inverse(&comment, &json!({ "before": {} })).unwrap_err().contains("customer"));
}

#[test]
fn the_key_is_made_of_instance_incident_and_fields() {
    let (update, fields) = checked("servicenow.incident.update", update());
    let at = Connection::new("servicenow", "https://dev1.service-now.com");
    let key = update.key(&fields, &at);
    let hash = fields.hash_of(&["fields"]);
    assert_eq!(key, format!("sn:incident:update:dev1.service-now.com:{SYS_ID}:{hash}"));
}

#[test]
fn fields_of_servicenows_own_are_refused() {
    let update = find("servicenow.incident.update").unwrap();
    for (fields, says) in
        [(json!({}), "empty"), (json!({ "sys_id": "x" }), "sys_id"), (json!({ "number": "1" }), "number")]
    {
        let given = json!({ "sys_id": SYS_ID, "fields": fields });
        let fields = Fields::check(update.declaration(), given).unwrap();
        let refusal = update.check(&fields).unwrap_err();
        assert!(refusal.contains(says), "{refusal}");
    }
}
