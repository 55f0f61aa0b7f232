//! Which run is meant: an id, the end of one as lists and timelines show it, a subject, or `latest`.

use interlock_core::ids::RunId;
use interlock_core::state::Detail;
use interlock_protocol::runs::{RunList, RunView, limits, path};

use crate::client::Client;
use crate::output::exit::{Ended, Exit};
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

/// The run that a subject means: the one that holds it, else the only one that waits for it, else the newest that has ended.
fn of_subject(subject: &str, newest_first: &[RunView]) -> anyhow::Result<Option<RunId>> {
    let live = |run: &&RunView| !run.state.is_terminal();
    let is_queued = |run: &&RunView| run.detail == Some(Detail::SubjectBusy);
    if let Some(holder) = newest_first.iter().filter(live).find(|run| !is_queued(run)) {
        return Ok(Some(holder.run_id));
    }
    let queued: Vec<_> = newest_first.iter().filter(live).collect();
    match &queued[..] {
        [] => Ok(newest_first.first().map(|run| run.run_id)),
        [one] => Ok(Some(one.run_id)),
        several => {
            let ids: Vec<String> = several.iter().map(|run| run.run_id.to_string()).collect();
            let what = format!("{} runs wait for the subject `{subject}`; name one: {}", ids.len(), ids.join(", "));
            Err(Ended::saying(Exit::NotFound, what))
        }
    }
}

fn among(newest: &[RunView], text: &str) -> anyhow::Result<RunId> {
    let missing = |what: String| Err(Ended::saying(Exit::NotFound, what));
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
