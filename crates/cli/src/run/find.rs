//! Which run is meant: an id, the end of one as lists and timelines show it, a subject, or `latest`.

use std::collections::BTreeMap;

use interlock_core::ids::RunId;
use interlock_core::state::Detail;
use interlock_core::text::visible::visible;
use interlock_protocol::runs::{RunList, RunView, limits, path};

use crate::client::Client;
use crate::output::exit::{Exit, ExitError};
use interlock_core::text::nearest::nearest;

const LATEST: &str = "latest";
/// The newest runs of a subject, among which the one is that holds it.
const SUBJECT_RUNS_MAX: usize = 100;
/// The shortest end of an id that is looked for.
const SUFFIX_CHARS_MIN: usize = 4;

/// The run that the text means. An id is believed; the rest is looked up among the newest runs.
pub async fn run(client: &Client, text: &str) -> anyhow::Result<RunId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    if text != LATEST {
        let by_subject = client.get(path::RUNS).query("subject", Some(text)).query("limit", Some(SUBJECT_RUNS_MAX));
        if let Some(run) = of_subject(text, &by_subject.send::<RunList>().await?.runs)? {
            return Ok(run);
        }
    }
    let newest = client.get(path::RUNS).query("limit", Some(limits::PAGE_MAX)).send::<RunList>().await?.runs;
    among(&newest, text)
}

/// The run that a subject means: the one that holds it, else the only one that waits for it, else the newest that has ended, if
/// all of them are runs of one workflow.
fn of_subject(subject: &str, newest_first: &[RunView]) -> anyhow::Result<Option<RunId>> {
    let live = |run: &&RunView| !run.state.is_terminal();
    let is_queued = |run: &&RunView| run.detail == Some(Detail::SubjectBusy);
    if let Some(holder) = newest_first.iter().filter(live).find(|run| !is_queued(run)) {
        return Ok(Some(holder.run_id));
    }
    let queued: Vec<_> = newest_first.iter().filter(live).collect();
    match &queued[..] {
        [] => of_ended(subject, newest_first),
        [one] => Ok(Some(one.run_id)),
        several => {
            let ids: Vec<String> = several.iter().map(|run| run.run_id.to_string()).collect();
            let what = format!("{} runs wait for the subject `{subject}`; name one: {}", ids.len(), ids.join(", "));
            Err(ExitError::saying(Exit::NotFound, what))
        }
    }
}

/// The newest of the ended runs of a subject. Where they are of several workflows, the newest one of each is named instead: what
/// is done to the wrong one may be hard to undo.
fn of_ended(subject: &str, newest_first: &[RunView]) -> anyhow::Result<Option<RunId>> {
    let Some(newest) = newest_first.first() else { return Ok(None) };
    if newest_first.iter().all(|run| run.workflow == newest.workflow) {
        return Ok(Some(newest.run_id));
    }
    let mut of_each: BTreeMap<&str, RunId> = BTreeMap::new();
    for run in newest_first {
        of_each.entry(&run.workflow).or_insert(run.run_id);
    }
    let named: Vec<String> = of_each.iter().map(|(workflow, run)| format!("{run} of {}", visible(workflow))).collect();
    let what = format!(
        "runs of {} workflows had the subject `{subject}`; name one, such as the newest of each: {}",
        of_each.len(),
        named.join(", ")
    );
    Err(ExitError::saying(Exit::NotFound, what))
}

fn among(newest: &[RunView], text: &str) -> anyhow::Result<RunId> {
    let missing = |what: String| Err(ExitError::saying(Exit::NotFound, what));
    if text == LATEST {
        return match newest.first() {
            Some(run) => Ok(run.run_id),
            None => missing("there are no runs yet; `interlock run start` makes one".into()),
        };
    }
    let suffix = text.trim_start_matches('…');
    let ends = |run: &&RunView| suffix.len() >= SUFFIX_CHARS_MIN && run.run_id.to_string().ends_with(suffix);
    let mut found = newest.iter().filter(ends);
    match (found.next(), found.next()) {
        (Some(run), None) => return Ok(run.run_id),
        (Some(one), Some(two)) => {
            return missing(format!("`{text}` could be {} or {}; write more of it", one.run_id, two.run_id));
        }
        _ => {}
    }
    let ids: Vec<String> = newest.iter().map(|run| run.run_id.to_string()).collect();
    let subjects = newest.iter().filter_map(|run| run.subject.as_deref());
    let near = nearest(text, subjects.chain(ids.iter().map(String::as_str)));
    let hint = near.map_or("`interlock run list` lists them".to_owned(), |near| format!("did you mean `{near}`?"));
    missing(format!("there is no run `{text}`; {hint}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(number: u8, workflow: &str, state: &str, detail: Option<&str>) -> RunView {
        let id = RunId::from_bytes([number; 16]);
        let view = json!({
            "run_id": id, "tenant": interlock_core::ids::TenantId::from_bytes([1; 16]), "workspace": "default",
            "workflow": workflow, "workflow_version": 1, "state": state, "detail": detail, "position": 0, "version": 1,
            "trigger": { "type": "api" }, "priority": 0, "resume_count": 0, "created_at": 1_000, "inputs": {},
        });
        serde_json::from_value(view).unwrap()
    }

    #[test]
    fn the_newest_ended_run_is_meant_where_all_are_of_one_workflow() {
        let runs = [run(3, "deploy", "failed", None), run(2, "deploy", "succeeded", None)];
        assert_eq!(of_subject("T-1", &runs).unwrap(), Some(RunId::from_bytes([3; 16])));
        assert_eq!(of_subject("T-1", &[]).unwrap(), None);
    }

    #[test]
    fn ended_runs_of_several_workflows_are_named() {
        let runs =
            [run(3, "deploy", "failed", None), run(2, "check", "failed", None), run(1, "deploy", "succeeded", None)];
        let refused = of_subject("T-1", &runs).unwrap_err().to_string();
        let named = |number: u8| refused.contains(&RunId::from_bytes([number; 16]).to_string());
        assert!(refused.contains("2 workflows") && named(3) && named(2) && !named(1), "{refused}");
        let held = [run(4, "check", "running", None), run(3, "deploy", "failed", None)];
        assert_eq!(of_subject("T-1", &held).unwrap(), Some(RunId::from_bytes([4; 16])), "who holds it is meant");
    }

    #[test]
    fn several_runs_that_wait_for_a_subject_are_named() {
        let busy = Some("subject_busy");
        let runs = [run(3, "deploy", "pending", busy), run(2, "deploy", "pending", busy)];
        let refused = of_subject("T-1", &runs).unwrap_err().to_string();
        assert!(refused.starts_with("2 runs wait for the subject `T-1`"), "{refused}");
        assert_eq!(of_subject("T-1", &runs[..1]).unwrap(), Some(RunId::from_bytes([3; 16])));
    }
}
