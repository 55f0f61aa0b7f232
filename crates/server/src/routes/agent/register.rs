//! `POST /agent/register`: a worker process begins a session.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use interlock_core::json::canonical_hash;
use interlock_core::limits::NAME_BYTES_MAX;
use interlock_core::plan::command::{commanded_profile, reserved_capability};
use interlock_core::rejection::Rejection;
use interlock_core::work::{WorkerHello, WorkerTerms};
use interlock_engine::sessions::EnrolledWorker;
use interlock_protocol::agent::{Registered, further_fields, limits, path};
use interlock_protocol::body::HelloBody;

use crate::api_error::ApiError;
use crate::identity::{Caller, Via};
use crate::repeated_calls::{KeptRegistration, NamedCall, name_of};
use crate::request::Body;
use crate::state::AppState;

/// Queues of this kind belong to the servers themselves.
const OWN_QUEUES: &str = "interlock.";

/// Begin a worker session
#[utoipa::path(
    post,
    path = path::REGISTER,
    tag = "agent",
    request_body = WorkerHello,
    responses((status = 200, description = "The session, and how to keep it.", body = Registered)),
)]
pub async fn register(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    Body(HelloBody(mut hello)): Body<HelloBody>,
) -> Result<Json<Registered>, ApiError> {
    check(&hello)?;
    if let Some(tenant) = hello.tenant.filter(|tenant| *tenant != caller.tenant) {
        return Err(Rejection::UnknownTenant { tenant }.into());
    }
    hello.tenant = Some(caller.tenant);
    let worker = match &caller.via {
        Via::Worker(worker) => {
            check_terms(&hello, &worker.terms)?;
            Some(EnrolledWorker::clone(worker))
        }
        _ => None,
    };
    let call = name_of(&headers).map(|key| NamedCall::Register {
        tenant: caller.tenant,
        client: Arc::clone(&caller.client),
        worker: hello.worker.clone(),
        key,
    });
    let Some(call) = call else { return begin(&state, hello, worker).await.map(Json) };
    let said = canonical_hash(&hello).map_err(|error| ApiError::malformed(error.to_string()))?;
    let _turn = state.repeated_calls().registering(&call).await;
    if let Some(before) = state.repeated_calls().registered(&call, said, state.now())? {
        return Ok(Json(before));
    }
    let answer = begin(&state, hello, worker).await?;
    state.repeated_calls().keep(call, KeptRegistration { hello: said, answer: answer.clone() }, state.now());
    Ok(Json(answer))
}

async fn begin(state: &AppState, hello: WorkerHello, worker: Option<EnrolledWorker>) -> Result<Registered, ApiError> {
    let registered = state.workers().register_as(hello, worker).await?;
    Ok(Registered {
        session: registered.session,
        lease_ms: registered.lease,
        renew_every_ms: registered.renew_every,
        epoch: registered.epoch,
        takes: further_fields(),
    })
}

/// What a worker says of itself may only narrow what its certificate says.
fn check_terms(hello: &WorkerHello, terms: &WorkerTerms) -> Result<(), ApiError> {
    let profiles = hello.capabilities.iter().flatten().filter_map(|name| commanded_profile(name));
    for profile in profiles {
        if !terms.allows_profile(profile) {
            let detail = format!(
                "this worker's certificate does not let it run commands under the profile `{profile}`; start it with \
                 others, or enrol it anew with a token that names it"
            );
            return Err(ApiError::new(StatusCode::FORBIDDEN, "BEYOND_CERTIFICATE", detail));
        }
    }
    let mut environments = hello.environments.iter().flatten();
    if let Some(environment) = environments.find(|name| !terms.allows_environment(name)) {
        let detail = format!(
            "this worker's certificate does not let it take runs of the environment `{environment}`; start it with others, \
             or enrol it anew with a token that names it"
        );
        return Err(ApiError::new(StatusCode::FORBIDDEN, "BEYOND_CERTIFICATE", detail));
    }
    Ok(())
}

fn check(hello: &WorkerHello) -> Result<(), ApiError> {
    if hello.slots > limits::SLOTS_MAX {
        return Err(ApiError::invalid(format!("a worker has at most {} slots", limits::SLOTS_MAX)));
    }
    if hello.queues.len() > limits::QUEUES_MAX {
        return Err(ApiError::invalid(format!("a worker serves at most {} queues", limits::QUEUES_MAX)));
    }
    if let Some(queue) = hello.queues.iter().find(|queue| queue.starts_with(OWN_QUEUES)) {
        return Err(ApiError::invalid(format!("queue `{queue}` is the servers' own; workers cannot serve it")));
    }
    let (tasks, capabilities) = (hello.tasks.iter().flatten(), hello.capabilities.iter().flatten());
    if tasks.clone().count() > limits::TASKS_MAX {
        return Err(ApiError::invalid(format!("a worker names at most {} tasks", limits::TASKS_MAX)));
    }
    if capabilities.clone().count() > limits::CAPABILITIES_MAX {
        return Err(ApiError::invalid(format!("a worker names at most {} capabilities", limits::CAPABILITIES_MAX)));
    }
    let reserved = capabilities.clone().find_map(|name| Some((name, reserved_capability(name)?)));
    if let Some((name, (prefix, field))) = reserved {
        return Err(ApiError::invalid(format!(
            "`{}` cannot be a capability: what begins with `{prefix}` stands for a step's `requires.{field}`, and no worker says \
             it as a capability",
            name.escape_debug()
        )));
    }
    if let Some(named) = &hello.environments {
        let terms = WorkerTerms { environments: named.clone(), ..WorkerTerms::default() };
        terms.check().map_err(ApiError::invalid)?;
    }
    if hello.labels.len() > limits::LABELS_MAX {
        return Err(ApiError::invalid(format!("a worker has at most {} labels", limits::LABELS_MAX)));
    }
    let mut labels = hello.labels.iter().flat_map(|(name, value)| [name, value]);
    if labels.any(|text| text.is_empty() || text.len() > NAME_BYTES_MAX) {
        return Err(ApiError::invalid(format!("labels of workers and their values have 1 to {NAME_BYTES_MAX} bytes")));
    }
    let names = hello.queues.iter().chain([&hello.worker]).chain(&hello.build_id).chain(tasks).chain(capabilities);
    if names.into_iter().any(|name| name.is_empty() || name.len() > NAME_BYTES_MAX) {
        return Err(ApiError::invalid(format!(
            "names of workers, queues, tasks and capabilities have 1 to {NAME_BYTES_MAX} bytes"
        )));
    }
    Ok(())
}
