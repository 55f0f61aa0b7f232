//! Which approval is meant: an id, the end of one, or the run that waits for it.

use interlock_core::ids::ApprovalId;
use interlock_core::state::ApprovalState;
use interlock_protocol::approvals::{ApprovalList, ApprovalView, path};
use interlock_protocol::identity::limits;

use crate::client::{Client, fill};
use crate::output::exit::{Exit, ExitError};
use crate::run::find;

/// The shortest end of an id that is looked for.
const SUFFIX_CHARS_MIN: usize = 4;

pub async fn approval(client: &Client, text: &str) -> anyhow::Result<ApprovalView> {
    if let Ok(id) = text.parse::<ApprovalId>() {
        return Ok(client.get(fill(path::APPROVAL, &[("approval", &id)])).send().await?);
    }
    let call = client.get(path::APPROVALS).query("limit", Some(limits::PAGE_MAX));
    let mut open = call.send::<ApprovalList>().await?.approvals;
    let suffix = text.trim_start_matches('…');
    if suffix.len() >= SUFFIX_CHARS_MIN {
        let ends = |view: &ApprovalView| view.approval.to_string().ends_with(suffix);
        if let Some(found) = open.iter().position(ends).filter(|_| open.iter().filter(|view| ends(view)).count() == 1) {
            return Ok(open.swap_remove(found));
        }
    }
    let run = find::run(client, text).await.map_err(|error| match error.downcast::<ExitError>() {
        Ok(ExitError { exit, message: Some(why) }) => {
            let what =
                format!("`{text}` is no open approval (`interlock approval list` lists them), and as a run: {why}");
            ExitError::saying(exit, what)
        }
        Ok(silent) => silent.into(),
        Err(error) => error,
    })?;
    let mut of_run = client.get(path::APPROVALS).query("run", Some(run)).send::<ApprovalList>().await?.approvals;
    if let Some(open) = of_run.iter().position(|view| view.state == ApprovalState::Requested) {
        return Ok(of_run.swap_remove(open));
    }
    // Where none is open, the one that was decided last is meant. By itself it says more than in a list.
    let last = of_run.pop();
    let last = last.ok_or_else(|| ExitError::saying(Exit::NotFound, format!("{run} has asked for no approval")))?;
    Ok(client.get(fill(path::APPROVAL, &[("approval", &last.approval)])).send().await?)
}
