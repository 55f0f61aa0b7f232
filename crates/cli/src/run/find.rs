//! Which run is meant: an id, the end of one as lists and timelines show it, a subject, or `latest`.

use interlock_core::ids::RunId;
use interlock_protocol::runs::{RunList, RunView, limits, path};

use crate::client::Client;
use crate::output::exit::{Ended, Exit};
use interlock_core::text::nearest::nearest;

const LATEST: &str = "latest";
/// The shortest end of an id that is looked for.
const SUFFIX_CHARS_MIN: usize = 4;

/// The run that the text means. An id is believed; the rest is looked up among the newest runs.
pub async fn run(client: &Client, text: &str) -> anyhow::Result<RunId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    if text != LATEST {
        let by_subject = client.get(path::RUNS).query("subject", Some(text)).query("limit", Some(1));
        if let Some(run) = by_subject.send::<RunList>().await?.runs.first() {
            return Ok(run.run_id);
        }
    }
    let newest = client.get(path::RUNS).query("limit", Some(limits::PAGE_MAX)).send::<RunList>().await?.runs;
    among(&newest, text)
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
