use interlock_core::plan::retry::ErrorClass;
use interlock_core::state::{StepKind, TaskType};
use interlock_core::work::Assignment;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::*;

/// A number that no float or 64-bit integer holds: only the text can carry it.
const EXACT: &str = r#"{ "amount": 12345678901234567890123.10 }"#;

fn at() -> AttemptRef {
    AttemptRef { tenant: TenantId(Uuid::from_u128(1)), run: RunId(Uuid::from_u128(2)), position: 3, attempt: 4 }
}

fn report(outcome: ReportedOutcome) -> ReportBody {
    ReportBody(Report { at: at(), epoch: 5, outcome, claim_next: true, cost: None, credentials: Vec::new() })
}

fn through_text<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let text = serde_json::to_string(value).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn every_report_survives_the_wire_and_payloads_keep_their_text() {
    let error = StepError::new(ErrorClass::Timeout, "X", "y");
    let payload = Json::trusted(EXACT);
    let outcomes = [
        ReportedOutcome::Completed { output: payload.clone() },
        ReportedOutcome::Completed { output: Json::null() },
        ReportedOutcome::Waiting {
            signal: "go".into(),
            key: Some("k".into()),
            timeout: Some(Millis(7)),
            outbound: vec![OutboundMessage { destination: "d".into(), payload: payload.clone() }],
        },
        ReportedOutcome::Waiting { signal: "go".into(), key: None, timeout: None, outbound: vec![] },
        ReportedOutcome::Retry { error: error.clone(), backoff: Some(Millis(8)) },
        ReportedOutcome::Dead { error },
        ReportedOutcome::Released,
        ReportedOutcome::UnknownTask,
    ];
    for outcome in outcomes {
        let body = report(outcome);
        assert_eq!(through_text(&body), body);
    }
}

#[test]
fn effects_survive_the_wire() {
    let receipt = ReceiptId(Uuid::from_u128(6));
    let request = Json::trusted(EXACT);
    let intent = IntentBody(EffectIntent {
        at: at(),
        epoch: 5,
        template: "t".into(),
        number: 0,
        effect: EffectClass::Unsafe,
        request: request.clone(),
    });
    assert_eq!(through_text(&intent), intent);
    for response in [None, Some(Json::null()), Some(request.clone())] {
        let outcome = OutcomeBody(EffectOutcome { at: at(), epoch: 5, receipt, happened: true, response });
        assert_eq!(through_text(&outcome), outcome);
    }
    for answer in [
        EffectAnswer::Perform { receipt, key: "k".into() },
        EffectAnswer::Performed { receipt, response: Some(request) },
        EffectAnswer::Performed { receipt, response: None },
        EffectAnswer::Denied { reasons: vec!["not on a Friday".into()] },
        EffectAnswer::NeedsApproval { reasons: Vec::new() },
    ] {
        let body = AnswerBody(answer);
        assert_eq!(through_text(&body), body);
    }
}

#[test]
fn an_assignment_survives_the_wire_and_its_input_keeps_its_text() {
    let assignment = Assignment {
        at: at(),
        epoch: 5,
        root_run: at().run,
        workflow: "w".into(),
        step: "s".into(),
        kind: StepKind::Task,
        handler: "h".into(),
        iteration: 0,
        effect: EffectClass::Idempotent,
        input: Json::trusted(EXACT),
        task_type: TaskType::Signal,
        payload: Some(Json::trusted(EXACT)),
        signal: None,
        timeout: Some(Millis(9)),
        deadline_at: None,
        traceparent: None,
        tracestate: None,
        environment: None,
        command: None,
    };
    assert_eq!(through_text(&assignment), assignment);
}

#[test]
fn a_report_with_the_wrong_fields_is_refused_and_the_refusal_names_the_field() {
    let refusal = |outcome: &str| {
        let mut value = serde_json::to_value(report(ReportedOutcome::Released)).unwrap();
        value["outcome"] = serde_json::from_str(outcome).unwrap();
        serde_json::from_str::<ReportBody>(&value.to_string()).unwrap_err().to_string()
    };
    assert!(refusal(r#"{"status":"completed"}"#).contains("needs the field `output`"));
    assert!(refusal(r#"{"status":"waiting"}"#).contains("needs the field `signal`"));
    assert!(refusal(r#"{"status":"dead","output":1}"#).contains("does not take the field `output`"));
    assert!(refusal(r#"{"status":"released","reason":""}"#).contains("unknown field `reason`"));
    assert!(refusal(r#"{"status":"done"}"#).contains("unknown variant `done`"));
}
