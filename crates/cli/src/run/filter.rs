//! Which runs are meant, by what they have in common: for lists, and for jobs on many runs.

use std::collections::BTreeMap;

use clap::Args;
use interlock_core::state::RunState;
use interlock_core::time::Timestamp;
use interlock_protocol::runs::{RunQuery, States};

use super::start::{INPUT_EXAMPLE, LABEL_EXAMPLE, pairs};
use crate::client::{Call, workspace};
use crate::identity::key::millis;
use crate::output::span;

#[derive(Debug, Args)]
pub struct FilterArgs {
    /// Only runs in this state, or in one of several: pending, running, waiting_approval, waiting_signal, paused,
    /// rolling_back, succeeded, failed, canceled.
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<RunState>,
    /// Only runs of this workflow.
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
    /// Only runs about this subject.
    #[arg(long)]
    subject: Option<String>,
    /// Only runs with this kind of trigger: `api`, `schedule`, `webhook` and the like.
    #[arg(long, value_name = "KIND")]
    trigger: Option<String>,
    /// Only runs of this workspace: a name, as runs are started with.
    #[arg(long, value_name = "NAME", value_parser = workspace::name)]
    workspace: Option<String>,
    /// Only runs with this label; may be given several times.
    #[arg(long = "label", short = 'l', value_name = "NAME=VALUE")]
    labels: Vec<String>,
    /// Only runs with this input, which the workflow declares searchable; may be given several times.
    #[arg(long = "input", short = 'i', value_name = "NAME=VALUE")]
    inputs: Vec<String>,
    /// Only runs started since then: a span back from now, as in `2h`, a day, as in `2026-12-01`, or an instant.
    #[arg(long, value_name = "WHEN", value_parser = when)]
    since: Option<Timestamp>,
    /// Only runs started before then, as --since is written.
    #[arg(long, value_name = "WHEN", value_parser = when)]
    before: Option<Timestamp>,
}

/// How many of a list, at most: one or more.
pub fn limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("0 would show nothing; ask for at least 1".to_owned()),
        Ok(limit) => Ok(limit),
        Err(_) => Err(format!("`{text}` is not a number from 1 on")),
    }
}

/// A span back from now, or what [`span::parse_instant`] takes.
pub fn when(text: &str) -> Result<Timestamp, String> {
    if let Ok(span) = span::parse(text) {
        return Ok(span::now() - millis(span));
    }
    span::parse_instant(text).map_err(|_| {
        format!(
            "`{text}` is no time; write a span back from now (30m, 2h, 7d), 2026-12-01 or 2026-12-01T18:00:00+01:00"
        )
    })
}

impl FilterArgs {
    pub fn query(self) -> anyhow::Result<RunQuery> {
        Ok(RunQuery {
            state: States(self.state),
            workflow: self.workflow,
            subject: self.subject,
            trigger: self.trigger,
            workspace: self.workspace,
            labels: pairs(&self.labels, LABEL_EXAMPLE)?.into_iter().collect::<BTreeMap<_, _>>(),
            inputs: pairs(&self.inputs, INPUT_EXAMPLE)?.into_iter().collect::<BTreeMap<_, _>>(),
            created_from: self.since,
            created_before: self.before,
        })
    }
}

/// The filter as the address of a list has it.
pub fn ask<'a>(mut call: Call<'a>, query: &RunQuery) -> Call<'a> {
    for (name, value) in &query.labels {
        call = call.query("label", Some(format!("{name}:{value}")));
    }
    for (name, value) in &query.inputs {
        call = call.query("input", Some(format!("{name}:{value}")));
    }
    for state in &query.state.0 {
        call = call.query("state", Some(state));
    }
    call.query("workflow", query.workflow.as_ref())
        .query("subject", query.subject.as_ref())
        .query("trigger", query.trigger.as_ref())
        .query("workspace", query.workspace.as_ref())
        .query("created_from", query.created_from.map(|at| at.0))
        .query("created_before", query.created_before.map(|at| at.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_span_back_or_an_instant() {
        let hour_ago = when("1h").unwrap();
        assert!(span::now().since(hour_ago).0.abs_diff(3_600_000) < 60_000);
        assert_eq!(when("1970-01-02T00:00:00Z"), Ok(Timestamp(86_400_000)));
        assert!(when("yesterday").unwrap_err().contains("2h"));
    }

    #[test]
    fn a_list_shows_at_least_one() {
        assert_eq!(limit("7"), Ok(7));
        assert!(limit("0").unwrap_err().contains("at least 1"));
        assert!(limit("-1").unwrap_err().contains("not a number"));
    }
}
