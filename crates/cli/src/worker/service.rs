//! `interlock worker drain` and `forget`: a worker is taken out of service, and leaves the lists once it is over.

use std::time::Duration;

use interlock_core::ids::SessionId;
use interlock_core::state::WorkerState;
use interlock_protocol::operations::{WorkerDetail, WorkerView, path};
use interlock_protocol::runs::Nothing;
use reqwest::Method;

use crate::client::{Client, fill};
use crate::output::Printer;

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
        if worker.state == WorkerState::Offline {
            return format!("`{}` is out of service.\n", worker.worker);
        }
        let plural = if worker.running == 1 { "" } else { "s" };
        format!("`{}` drains: it finishes {} step{plural}, and leaves.\n", worker.worker, worker.running)
    })
}

pub async fn forget(client: &Client, printer: Printer, session: SessionId) -> anyhow::Result<()> {
    client.call(Method::DELETE, fill(path::WORKER, &[("session", &session)])).done().await?;
    printer.note(&format!("Forgot {session}."));
    Ok(())
}
