//! Effects that canceled runs have left in doubt: whether they took place is not known, and a person has to say so.

use std::fmt::Write as _;

use futures::future::try_join_all;
use interlock_core::ids::{ReceiptId, RunId};
use interlock_core::run::why::Cause;
use interlock_core::state::{Reason, RunState};
use interlock_protocol::runs::{RunList, limits, path};
use serde::Serialize;

use crate::client::{Client, ClientError};
use crate::output::span::counted;
use crate::run::why;

/// Runs that are asked about at the same time.
const AT_ONCE: usize = 16;
/// Pages of canceled runs that are read.
const PAGES_MAX: usize = 200;
/// Effects that are listed; the others are counted.
const LISTED_MAX: usize = 20;

/// What runs that were canceled for one reason have left in doubt.
#[derive(Debug, Default, Serialize)]
pub struct DoubtsLeft {
    pub count: u64,
    listed: Vec<RunDoubt>,
    /// There are more canceled runs than were looked at, and these are older.
    pub has_more_runs: bool,
}

#[derive(Debug, Serialize)]
struct RunDoubt {
    run_id: RunId,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    receipt: ReceiptId,
}

impl DoubtsLeft {
    /// Of the runs that were canceled for this reason, now or earlier.
    pub async fn of_canceled(client: &Client, reason: Reason) -> Result<Self, ClientError> {
        let mut left = Self::default();
        let mut after: Option<RunId> = None;
        for _ in 0..PAGES_MAX {
            let page = client.get(path::RUNS).query("state", Some(RunState::Canceled));
            let page = page.query("limit", Some(limits::PAGE_MAX)).query("after", after);
            let RunList { runs, next_after } = page.send().await?;
            let canceled = runs.iter().filter(|run| run.reason == Some(reason)).map(|run| run.run_id);
            let canceled: Vec<RunId> = canceled.collect();
            for some in canceled.chunks(AT_ONCE) {
                let doubts = try_join_all(some.iter().map(|run| doubts_of(client, *run))).await?;
                doubts.into_iter().flatten().for_each(|doubt| left.add(doubt));
            }
            after = next_after;
            if after.is_none() {
                break;
            }
        }
        left.has_more_runs = after.is_some();
        Ok(left)
    }

    fn add(&mut self, doubt: RunDoubt) {
        self.count += 1;
        if self.listed.len() < LISTED_MAX {
            self.listed.push(doubt);
        }
    }

    /// The command for each of them, as far as they are listed. Nothing where nothing is in doubt.
    pub fn words(&self) -> String {
        if self.count == 0 {
            return String::new();
        }
        let effects = counted(self.count, "effect", "effects");
        let mut text = format!(
            "in doubt: {effects} of canceled runs. Look in the systems that they were sent to, and say of each what became of it:\n"
        );
        for RunDoubt { run_id, step, .. } in &self.listed {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  interlock {}", why::resolve_command(*run_id, step.as_deref()));
        }
        let more = self.count - self.listed.len() as u64;
        if more > 0 {
            let _ = writeln!(text, "  … and {more} more; repeat the command when these are settled");
        }
        text
    }
}

async fn doubts_of(client: &Client, run: RunId) -> Result<Vec<RunDoubt>, ClientError> {
    let explanation = match why::ask(client, run).await {
        Ok(explanation) => explanation,
        // It has gone with its history meanwhile.
        Err(ClientError::Refused { problem, .. }) if problem.code == "RUN_NOT_FOUND" => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let doubts = explanation.because.into_iter().filter_map(|cause| match cause {
        Cause::Doubt { receipt, step } => Some(RunDoubt { run_id: run, step, receipt }),
        _ => None,
    });
    Ok(doubts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_listed_with_their_command_and_the_others_are_counted() {
        let mut left = DoubtsLeft::default();
        assert_eq!(left.words(), "");
        let run_id = RunId::from_bytes([1; 16]);
        for number in 0..LISTED_MAX + 2 {
            let step = Some(format!("s{number}"));
            left.add(RunDoubt { run_id, step, receipt: ReceiptId::from_bytes([2; 16]) });
        }
        let text = left.words();
        assert!(text.starts_with("in doubt: 22 effects of canceled runs."), "{text}");
        assert!(text.contains(&format!("\n  interlock run resolve {run_id} --step s19 --outcome happened")), "{text}");
        assert!(!text.contains("--step s20") && text.contains("… and 2 more"), "{text}");
    }
}
