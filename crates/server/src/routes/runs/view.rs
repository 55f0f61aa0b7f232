//! Rows of the store as answers.

use std::collections::BTreeMap;

use interlock_core::ids::RunId;
use interlock_core::json::Json;
use interlock_core::limits::{INPUT_LABELS, TRACEPARENT, TRACESTATE};
use interlock_core::run::Trigger;
use interlock_engine::payloads::Reference;
use interlock_protocol::runs::{PayloadAt, PayloadView, RunView, StepView, path};
use interlock_store::{RunSummary, StepRow};

use crate::state::AppState;

/// A payload as the API shows it: a long one by its length and hash, and where to get it.
pub fn payload(state: &AppState, run: RunId, json: Json) -> Json {
    let Some(payloads) = state.payloads() else { return json };
    payloads.shown(json, |Reference { sha256, bytes }| {
        let url = path::PAYLOAD.replace("{run}", &run.to_string()).replace("{sha256}", &sha256.to_string());
        let shown = PayloadView { payload: PayloadAt { sha256: sha256.to_string(), bytes, url } };
        Json::of(&shown).unwrap_or_else(|_| Json::null())
    })
}

pub fn run(state: &AppState, mut row: RunSummary) -> RunView {
    let (traceparent, tracestate) = (row.labels.remove(TRACEPARENT), row.labels.remove(TRACESTATE));
    let (mut labels, mut searchable) = (BTreeMap::new(), BTreeMap::new());
    for (name, value) in row.labels {
        match name.strip_prefix(INPUT_LABELS) {
            Some(input) => searchable.insert(input.to_owned(), value),
            None => labels.insert(name, value),
        };
    }
    let trigger = Trigger { kind: row.trigger_type, reference: row.trigger_ref };
    RunView {
        run_id: row.run,
        tenant: row.tenant,
        workspace: row.workspace,
        workflow: row.workflow,
        workflow_version: row.workflow_version,
        state: row.state,
        detail: row.detail,
        reason: row.reason,
        control: row.control,
        position: row.position,
        version: row.version,
        subject: row.subject,
        labels,
        searchable,
        traceparent,
        tracestate,
        started_by: trigger.starter(row.started_by.as_deref()),
        trigger,
        priority: row.priority,
        root_run_id: row.root_run_id,
        resumed_from: row.resumed_from,
        continued_by: row.continued_by,
        resume_count: row.resume_count,
        created_at: row.created_at,
        deadline_at: row.deadline_at,
        finished_at: row.finished_at,
        last_heartbeat_at: None,
        spent_micros: None,
        spent_unit: None,
        metrics: None,
        input_tokens: None,
        output_tokens: None,
        assignment: None,
        cancellation: None,
        pause: None,
        undone: Vec::new(),
        duration_ms: row.duration_ms,
        inputs: payload(state, row.run, row.inputs),
        output: row.output.map(|output| payload(state, row.run, output)),
        error: row.error,
    }
}

pub fn step(state: &AppState, run: RunId, row: StepRow) -> StepView {
    StepView {
        position: row.position,
        key: row.key,
        kind: row.kind,
        state: row.state,
        attempt: row.attempt,
        failures: row.failures,
        iteration: row.iteration,
        started_at: row.started_at,
        finished_at: row.finished_at,
        input: None,
        output: row.output.map(|output| payload(state, run, output)),
        error: row.error,
        no_retry: None,
        phase: None,
    }
}
