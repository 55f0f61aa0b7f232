//! An address as it goes over the wire: without its secret.

use interlock_protocol::webhooks::{InboundView, path};
use interlock_store::InboundRow;

pub fn endpoint(row: InboundRow) -> InboundView {
    InboundView {
        endpoint_id: row.id,
        path: path::INBOUND_ONE.replace("{endpoint}", &row.id.to_string()),
        name: row.name,
        source: row.source,
        header: row.header,
        secondary: row.secondary,
        paused: row.paused,
        previous_secret_until: row.secrets.previous.map(|(_, until)| until),
        created_at: row.created_at,
        created_by: row.created_by,
    }
}
