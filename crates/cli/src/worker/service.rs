//! `interlock worker drain`, `maintenance` and `forget`: a worker is taken out of service for good or for a while, and leaves the
//! lists once it is over.

use std::time::Duration;

use interlock_core::ids::SessionId;
use interlock_core::state::WorkerState;
use interlock_core::text::visible::visible;
use interlock_protocol::operations::{BeginMaintenance, WorkerDetail, WorkerView, path};
use interlock_protocol::runs::Nothing;
use reqwest::Method;

use crate::client::{Client, fill};
use crate::identity::key::millis;
use crate::output::{Printer, span};

const LOOK_EVERY: Duration = Duration::from_millis(500);

pub async fn drain(client: &Client, printer: Printer, session: SessionId, wait: bool) -> anyhow::Result<()> {
    let call = client.post(fill(path::WORKER_DRAIN, &[("session", &session)]), &Nothing {});
    let mut worker: WorkerView = call.send().await?;
    while wait && worker.state != WorkerState::Offline {
        tokio::time::sleep(LOOK_EVERY).await;
        let detail: WorkerDetail = client.get(fill(path::WORKER, &[("session", &session)])).send().await?;
        worker = detail.worker;
    }
    printer.show(&worker, |_| {
        let name = visible(&worker.worker);
        if worker.state == WorkerState::Offline {
            return format!("`{name}` is out of service.\n");
        }
        let plural = if worker.running == 1 { "" } else { "s" };
        format!("`{name}` drains: it finishes {} step{plural}, and leaves.\n", worker.running)
    })
}

/// For so long, or until it is ended.
pub async fn begin_maintenance(
    client: &Client,
    printer: Printer,
    session: SessionId,
    (reason, lasts): (String, Option<Duration>),
) -> anyhow::Result<()> {
    let until = lasts.map(|lasts| span::now() + millis(lasts));
    let begin = BeginMaintenance { reason, until };
    let worker: WorkerView =
        client.post(fill(path::WORKER_MAINTENANCE, &[("session", &session)]), &begin).send().await?;
    printer.show(&worker, |_| {
        let name = visible(&worker.worker);
        match (worker.state, until) {
            (WorkerState::Offline, _) => format!("`{name}` is not connected; nothing was changed.\n"),
            (_, Some(until)) => format!("`{name}` is in maintenance; it ends {}.\n", span::away(until, span::now())),
            (_, None) => {
                format!("`{name}` is in maintenance until `interlock worker maintenance {session} --end`.\n")
            }
        }
    })
}

pub async fn end_maintenance(client: &Client, printer: Printer, session: SessionId) -> anyhow::Result<()> {
    let call = client.call(Method::DELETE, fill(path::WORKER_MAINTENANCE, &[("session", &session)]));
    let worker: WorkerView = call.send().await?;
    printer.show(&worker, |_| format!("`{}` is in no maintenance; it is {}.\n", visible(&worker.worker), worker.state))
}

pub async fn forget(client: &Client, printer: Printer, sessions: &[SessionId]) -> anyhow::Result<()> {
    for session in sessions {
        client.call(Method::DELETE, fill(path::WORKER, &[("session", session)])).done().await?;
        printer.note(&format!("Forgot {session}."));
    }
    Ok(())
}
