//! The connector that `docs/guide/connectors.md` adds: it compiles, and does what the guide says.

// guide: begin
use interlock_connectors::connector::change;
use interlock_connectors::request::{HttpCall, only, segment};
use interlock_connectors::schema::{Field, Kind, Need};
use interlock_connectors::{
    CallFacts, CallFailure, Connection, Connector, Declaration, Fields, Inverse, Request, Response, Reversal,
};
use interlock_core::run::card::FieldChange;
use interlock_core::state::EffectClass;
use serde_json::{Value, json};

/// `statuspage.component`
#[derive(Debug)]
pub struct Component;

const STATUSES: &[&str] = &["operational", "degraded_performance", "partial_outage", "major_outage"];
const CONNECTION: &str = "The connection that the worker is configured with.";

static DECLARATION: Declaration = Declaration {
    operation: "statuspage.component",
    about: "Sets the status of a component of a status page.",
    fields: &[
        Field::new("page", Kind::Id(40), Need::Required, "The page's id."),
        Field::new("component", Kind::Id(40), Need::Required, "The component's id."),
        Field::new("status", Kind::OneOf(STATUSES), Need::Required, "What visitors see."),
        Field::new("connection", Kind::Id(256), Need::Default("\"statuspage\""), CONNECTION),
    ],
    effect: EffectClass::Idempotent,
    key: "statuspage:component:{page}:{component}:{status}",
    reversal: Reversal::Inverse { by: "statuspage.component", about: "sets the status that it had before" },
    reads_before: true,
    probe: None,
};

fn call(method: &str, at: &Connection, fields: &Fields) -> HttpCall {
    let (page, component) = (segment(fields.text("page")), segment(fields.text("component")));
    HttpCall::new(method, format!("{}/v1/pages/{page}/components/{component}", at.url)).login(at)
}

impl Connector for Component {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn key(&self, fields: &Fields, _: &Connection) -> String {
        let (page, component, status) = (fields.text("page"), fields.text("component"), fields.text("status"));
        format!("statuspage:component:{page}:{component}:{status}")
    }

    fn before(&self, fields: &Fields, at: &Connection) -> Option<Request> {
        Some(call("GET", at, fields).into_request())
    }

    fn read_before(&self, _: &Fields, answer: &Response) -> Result<Value, CallFailure> {
        Ok(json!({ "status": answer.json()?["status"] }))
    }

    fn changes(&self, fields: &Fields, before: &Value) -> Vec<FieldChange> {
        vec![change("status", &before["status"], &json!(fields.text("status")))]
    }

    fn requests(&self, fields: &Fields, at: &Connection, _: &CallFacts) -> Result<Vec<Request>, CallFailure> {
        at.secret()?;
        let body = json!({ "component": { "status": fields.text("status") } });
        Ok(vec![call("PATCH", at, fields).json(body).into_request()])
    }

    fn read(&self, _: &Fields, facts: &CallFacts, answers: &[Response]) -> Result<Value, CallFailure> {
        let component = only(answers)?.json()?;
        Ok(json!({ "status": component["status"], "before": facts.before }))
    }

    fn inverse(&self, fields: &Fields, output: &Value) -> Result<Inverse, String> {
        let status = output["before"]["status"].as_str().ok_or("which status it had is not known")?;
        let mut inverse = fields.to_value();
        inverse["status"] = status.into();
        Ok(Inverse { operation: DECLARATION.operation, fields: inverse })
    }
}
// guide: end

mod checks {
    use std::sync::{Arc, Mutex};

    use interlock_connectors::bound;
    use interlock_connectors::send::{Caller, Operation};

    use super::*;
    use crate::harness::{ReceivedRequest, Reply, StandIn, caller, facts, secrets};

    static COMPONENT: Component = Component;

    async fn perform(caller: &Caller, fields: &Fields) -> Result<Value, CallFailure> {
        let secrets = secrets(caller);
        let operation = Operation { connector: &COMPONENT, fields, secrets: &secrets };
        let before = caller.before(operation).await?;
        caller.perform(operation, &CallFacts { before, ..facts() }, &|| true).await
    }

    #[tokio::test]
    async fn the_connector_of_the_guide_works_and_its_inverse_leaves_what_was_there() {
        let status = Arc::new(Mutex::new("operational".to_owned()));
        let inside = Arc::clone(&status);
        let server = StandIn::start(move |seen: &ReceivedRequest| {
            assert_eq!(seen.path, "/v1/pages/p1/components/c1");
            let mut status = inside.lock().unwrap();
            if seen.method == "PATCH" {
                seen.body["component"]["status"].as_str().unwrap().clone_into(&mut status);
            }
            Reply::Json(200, json!({ "status": *status }))
        })
        .await;
        let caller = caller("statuspage", &server.url);
        let given = json!({ "page": "p1", "component": "c1", "status": "major_outage" });
        let fields = bound(&COMPONENT, given).unwrap();
        let output = perform(&caller, &fields).await.unwrap();
        assert_eq!(output, json!({ "status": "major_outage", "before": { "status": "operational" } }));
        let changes = COMPONENT.changes(&fields, &output["before"]);
        assert_eq!((changes[0].before.as_str(), changes[0].after.as_str()), (r#""operational""#, r#""major_outage""#));
        let inverse = COMPONENT.inverse(&fields, &output).unwrap();
        perform(&caller, &bound(&COMPONENT, inverse.fields).unwrap()).await.unwrap();
        assert_eq!(*status.lock().unwrap(), "operational");
        assert!(bound(&COMPONENT, json!({ "page": "p1", "component": "c1", "status": "fine" })).is_err());
    }

    #[test]
    fn the_guide_shows_this_very_connector() {
        let own = include_str!("example.rs");
        let shown = own.split("// guide: begin\n").nth(1).and_then(|rest| rest.split("// guide: end").next());
        let guide = include_str!("../../../../docs/guide/connectors.md");
        assert!(guide.contains(shown.unwrap().trim()), "copy what stands between the marks into the guide");
    }
}
