//! An endpoint and its messages as they go over the wire: without the secret.

use interlock_engine::message::Message;
use interlock_protocol::webhooks::{MessageState, OutboundAttempt, OutboundDelivery, OutboundView};
use interlock_store::{AttemptRow, MessageRow, OutboundRow};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::identity::key_names::name_keys;
use crate::state::AppState;

/// An endpoint for a caller, with the name of the key that made it.
pub async fn endpoint(state: &AppState, caller: &Caller, row: OutboundRow) -> Result<OutboundView, ApiError> {
    let mut endpoint = outbound(row);
    name_keys(state, caller, endpoint.created_by.iter_mut().collect()).await?;
    Ok(endpoint)
}

/// The same for all of them.
pub async fn endpoints(
    state: &AppState,
    caller: &Caller,
    rows: Vec<OutboundRow>,
) -> Result<Vec<OutboundView>, ApiError> {
    let mut endpoints: Vec<OutboundView> = rows.into_iter().map(outbound).collect();
    name_keys(state, caller, endpoints.iter_mut().filter_map(|row| row.created_by.as_mut()).collect()).await?;
    Ok(endpoints)
}

fn outbound(row: OutboundRow) -> OutboundView {
    OutboundView {
        endpoint_id: row.id,
        name: row.name,
        url: row.url,
        description: row.description,
        events: row.events,
        workflows: row.workflows,
        state: row.state,
        note: row.note,
        failing_since: row.failing_since,
        previous_secret_until: row.secrets.previous.map(|(_, until)| until),
        created_at: row.created_at,
        created_by: row.created_by,
    }
}

pub fn delivery(row: MessageRow, attempts: Vec<AttemptRow>) -> OutboundDelivery {
    let message = row.payload.decode::<Message>().ok();
    let (message_id, event) = message.map(|message| (message.id, message.event)).unwrap_or_default();
    let state = match (row.delivered_at, row.dead_at) {
        (Some(_), _) => MessageState::Delivered,
        (None, Some(_)) => MessageState::Dead,
        (None, None) => MessageState::Pending,
    };
    OutboundDelivery {
        delivery_id: row.id,
        message_id,
        event,
        run_id: row.run,
        state,
        created_at: row.created_at,
        next_at: (state == MessageState::Pending).then_some(row.next_at),
        attempts: attempts.into_iter().map(attempt).collect(),
    }
}

fn attempt(row: AttemptRow) -> OutboundAttempt {
    OutboundAttempt {
        attempt: row.attempt,
        at: row.at,
        duration_ms: row.duration,
        status: row.status,
        error: row.error,
        excerpt: row.excerpt,
    }
}
