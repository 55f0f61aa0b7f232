//! GitHub's REST API for issues and pull requests: comments and labels.
//!
//! A comment ends with the mark of its effect key, which readers do not see (an HTML comment), and is found again by it.
//! Adding a label that is there, or removing one that is not, changes nothing.

use std::time::Duration;

use interlock_core::plan::retry::ErrorClass;
use interlock_core::run::card::FieldChange;
use interlock_core::state::EffectClass;
use interlock_core::time::Timestamp;
use serde_json::{Value, json};

use super::connection;
use crate::connection::Connection;
use crate::connector::{CallFacts, Connector, Inverse, Probed, change};
use crate::declaration::{Declaration, Reversal};
use crate::failure::{CallFailure, Sent, quoted};
use crate::fields::Fields;
use crate::limits;
use crate::request::{HttpCall, Request, Response, only, segment, with_query};
use crate::schema::{Field, Kind, Need};

/// `github.issue.comment`
#[derive(Debug)]
pub struct Comment;

/// `github.issue.comment.delete`
#[derive(Debug)]
pub struct CommentDelete;

/// `github.issue.labels`
#[derive(Debug)]
pub struct Labels;

const LABELS_MAX: usize = 20;
/// GitHub's own limit, less what the mark needs.
const COMMENT_BYTES: usize = 65_000;
const PAGE: usize = 100;
/// How far the clocks of GitHub and the server may be apart.
const CLOCK_SLACK_MS: i64 = 60_000;
/// The pause that GitHub asks for where it names none.
const SECONDARY_PAUSE: Duration = Duration::from_mins(1);

const OWNER: Field = Field::new("owner", Kind::Id(100), Need::Required, "The repository's owner.");
const REPO: Field = Field::new("repo", Kind::Id(100), Need::Required, "The repository's name.");
const ISSUE: Field = Field::new(
    "issue",
    Kind::Whole { min: 1, max: i64::MAX },
    Need::Required,
    "The number of the issue or pull request.",
);

static COMMENT: Declaration = Declaration {
    operation: "github.issue.comment",
    about: "Comments on an issue or a pull request.",
    fields: &[
        OWNER,
        REPO,
        ISSUE,
        Field::new("body", Kind::Text(COMMENT_BYTES), Need::Required, "The comment, in Markdown."),
        connection("\"github\""),
    ],
    effect: EffectClass::Unsafe,
    key: "github:issue:comment:{owner}/{repo}:{issue}:{body_hash}",
    reversal: Reversal::Inverse {
        by: "github.issue.comment.delete",
        about: "deletes the comment; notifications that were sent stay sent",
    },
    reads_before: false,
    probe: Some("looks for the comment's mark among the comments since the run began"),
};

static COMMENT_DELETE: Declaration = Declaration {
    operation: "github.issue.comment.delete",
    about: "Deletes a comment.",
    fields: &[
        OWNER,
        REPO,
        Field::new("comment_id", Kind::Whole { min: 1, max: i64::MAX }, Need::Required, "The comment's id."),
        connection("\"github\""),
    ],
    effect: EffectClass::Idempotent,
    key: "github:comment:delete:{owner}/{repo}:{comment_id}",
    reversal: Reversal::Irreversible("a comment that was deleted cannot be brought back"),
    reads_before: false,
    probe: None,
};

static LABELS: Declaration = Declaration {
    operation: "github.issue.labels",
    about: "Adds labels to an issue or a pull request, and removes labels from it.",
    fields: &[
        OWNER,
        REPO,
        ISSUE,
        Field::new("add", Kind::Texts { items: LABELS_MAX, bytes: 200 }, Need::Optional, "Labels to add."),
        Field::new("remove", Kind::Texts { items: LABELS_MAX, bytes: 200 }, Need::Optional, "Labels to remove."),
        connection("\"github\""),
    ],
    effect: EffectClass::Idempotent,
    key: "github:issue:labels:{owner}/{repo}:{issue}:{labels_hash}",
    reversal: Reversal::Inverse {
        by: "github.issue.labels",
        about: "removes the labels that were not there before, and adds those that were",
    },
    reads_before: true,
    probe: None,
};

fn repository(at: &Connection, fields: &Fields) -> String {
    format!("{}/repos/{}/{}", at.url, segment(fields.text("owner")), segment(fields.text("repo")))
}

fn issue(at: &Connection, fields: &Fields) -> String {
    format!("{}/issues/{}", repository(at, fields), fields.whole("issue").unwrap_or_default())
}

fn call(method: &str, url: String, at: &Connection) -> HttpCall {
    let call = HttpCall::new(method, url).header("accept", "application/vnd.github+json");
    call.header("x-github-api-version", "2022-11-28").login(at)
}

/// A success, or what went wrong.
fn answered(answer: &Response) -> Result<Value, CallFailure> {
    if let Some(failure) = limited(answer) {
        return Err(failure);
    }
    if answer.status == 204 {
        return Ok(Value::Null);
    }
    answer.json()
}

/// That there was too much at once. GitHub says it with 403, which also says that something is forbidden, or with 429; the secondary
/// limit tells it in the text alone, and wants at least a minute.
fn limited(answer: &Response) -> Option<CallFailure> {
    if !matches!(answer.status, 403 | 429) {
        return None;
    }
    let said = answer.said();
    let lower = said.to_lowercase();
    let is_secondary = lower.contains("secondary rate limit") || lower.contains("abuse detection");
    let is_used_up = answer.header("x-ratelimit-remaining") == Some("0");
    let is_told = is_secondary || is_used_up || answer.header("retry-after").is_some();
    if answer.status == 403 && !is_told {
        return None;
    }
    let named = answer.retry_after().or_else(|| reset(answer).filter(|_| is_used_up));
    let after = named.or(is_secondary.then_some(SECONDARY_PAUSE));
    let message = format!("GitHub limits this connection: {}", quoted(&said));
    let code = format!("HTTP_{}", answer.status);
    let failure = CallFailure::new(Sent::CertainlyNot, ErrorClass::RateLimited, &code, message);
    Some(CallFailure { after, ..failure })
}

/// When the connection may call again, in seconds of the epoch.
fn reset(answer: &Response) -> Option<Duration> {
    let seconds: i64 = answer.header("x-ratelimit-reset")?.trim().parse().ok()?;
    answer.until(jiff::Timestamp::from_second(seconds).ok()?)
}

fn mark(facts: &CallFacts) -> String {
    format!("<!-- interlock {} -->", facts.mark())
}

fn commented(comment: &Value) -> Option<Value> {
    let id = comment["id"].as_i64()?;
    Some(json!({ "comment_id": id, "url": comment["html_url"] }))
}

fn where_from(fields: &Fields) -> Value {
    json!({ "owner": fields.text("owner"), "repo": fields.text("repo"), "connection": fields.text("connection") })
}

impl Connector for Comment {
    fn declaration(&self) -> &'static Declaration {
        &COMMENT
    }

    fn key(&self, fields: &Fields, _: &Connection) -> String {
        let (owner, repo, issue) = (fields.text("owner"), fields.text("repo"), fields.whole("issue").unwrap_or(0));
        format!("github:issue:comment:{owner}/{repo}:{issue}:{}", fields.hash_of(&["body"]))
    }

    fn requests(&self, fields: &Fields, at: &Connection, facts: &CallFacts) -> Result<Vec<Request>, CallFailure> {
        at.secret()?;
        let body = json!({ "body": format!("{}\n\n{}", fields.text("body"), mark(facts)) });
        Ok(vec![call("POST", format!("{}/comments", issue(at, fields)), at).json(body).into_request()])
    }

    fn read(&self, _: &Fields, _: &CallFacts, answers: &[Response]) -> Result<Value, CallFailure> {
        let comment = answered(only(answers)?)?;
        commented(&comment).ok_or_else(|| CallFailure::unreadable("GitHub's answer has no `id`"))
    }

    fn probe(&self, fields: &Fields, at: &Connection, facts: &CallFacts) -> Option<Request> {
        let since = facts.since.map(|since| instant(Timestamp(since.0 - CLOCK_SLACK_MS)));
        let page = PAGE.to_string();
        let mut query = vec![("per_page", page.as_str())];
        if let Some(since) = &since {
            query.push(("since", since));
        }
        let url = with_query(format!("{}/comments", issue(at, fields)), &query);
        Some(call("GET", url, at).into_request())
    }

    fn read_probe(&self, _: &Fields, facts: &CallFacts, answer: &Response) -> Probed {
        let comments = match answered(answer) {
            Ok(Value::Array(comments)) => comments,
            Ok(_) => return Probed::CannotTell("GitHub's answer is not a list of comments".to_owned()),
            Err(failure) => return Probed::CannotTell(failure.message),
        };
        let mark = mark(facts);
        let is_ours = |comment: &&Value| comment["body"].as_str().is_some_and(|body| body.contains(&mark));
        match comments.iter().find(is_ours).and_then(commented) {
            Some(output) => Probed::Happened(output),
            None if comments.len() >= PAGE => Probed::CannotTell("there are too many comments since then".to_owned()),
            None => Probed::NoTrace,
        }
    }

    fn inverse(&self, fields: &Fields, output: &Value) -> Result<Inverse, String> {
        let id = output["comment_id"].as_i64().ok_or("which comment it was is not known")?;
        let mut inverse = where_from(fields);
        inverse["comment_id"] = id.into();
        Ok(Inverse { operation: COMMENT_DELETE.operation, fields: inverse })
    }
}

impl Connector for CommentDelete {
    fn declaration(&self) -> &'static Declaration {
        &COMMENT_DELETE
    }

    fn key(&self, fields: &Fields, _: &Connection) -> String {
        let (owner, repo) = (fields.text("owner"), fields.text("repo"));
        format!("github:comment:delete:{owner}/{repo}:{}", fields.whole("comment_id").unwrap_or_default())
    }

    fn requests(&self, fields: &Fields, at: &Connection, _: &CallFacts) -> Result<Vec<Request>, CallFailure> {
        at.secret()?;
        let id = fields.whole("comment_id").unwrap_or_default();
        let url = format!("{}/issues/comments/{id}", repository(at, fields));
        Ok(vec![call("DELETE", url, at).into_request()])
    }

    fn read(&self, _: &Fields, _: &CallFacts, answers: &[Response]) -> Result<Value, CallFailure> {
        let answer = only(answers)?;
        // Gone is what was wanted.
        if answer.status != 404 {
            answered(answer)?;
        }
        Ok(json!({ "deleted": answer.status != 404 }))
    }
}

impl Labels {
    fn names(list: &Value) -> Vec<&str> {
        list.as_array().into_iter().flatten().filter_map(|label| label["name"].as_str()).collect()
    }
}

/// GitHub's labels are the same whatever the case.
fn holds(labels: &[&str], label: &str) -> bool {
    labels.iter().any(|known| known.to_lowercase() == label.to_lowercase())
}

impl Connector for Labels {
    fn declaration(&self) -> &'static Declaration {
        &LABELS
    }

    fn check(&self, fields: &Fields) -> Result<(), String> {
        let (add, remove) = (fields.texts("add"), fields.texts("remove"));
        if fields.get("add").is_none() && fields.get("remove").is_none() {
            return Err("there is nothing to change: give `add` or `remove`".to_owned());
        }
        if let Some(label) = add.iter().find(|label| holds(&remove, label)) {
            return Err(format!("`{label}` is both added and removed"));
        }
        let unusable = |label: &&&str| label.trim().is_empty() || label.chars().all(|c| c == '.');
        match add.iter().chain(&remove).find(unusable) {
            Some(label) => Err(format!("`{label}` is not a label")),
            None => Ok(()),
        }
    }

    fn key(&self, fields: &Fields, _: &Connection) -> String {
        let (owner, repo, issue) = (fields.text("owner"), fields.text("repo"), fields.whole("issue").unwrap_or(0));
        format!("github:issue:labels:{owner}/{repo}:{issue}:{}", fields.hash_of(&["add", "remove"]))
    }

    fn before(&self, fields: &Fields, at: &Connection) -> Option<Request> {
        let url = with_query(format!("{}/labels", issue(at, fields)), &[("per_page", "100")]);
        Some(call("GET", url, at).into_request())
    }

    fn read_before(&self, _: &Fields, answer: &Response) -> Result<Value, CallFailure> {
        let labels = answered(answer)?;
        Ok(json!({ "labels": Self::names(&labels) }))
    }

    fn changes(&self, fields: &Fields, before: &Value) -> Vec<FieldChange> {
        let had = before["labels"].as_array().cloned().unwrap_or_default();
        let had: Vec<&str> = had.iter().filter_map(Value::as_str).collect();
        let (add, remove) = (fields.texts("add"), fields.texts("remove"));
        let mut after: Vec<&str> = had.iter().copied().filter(|label| !holds(&remove, label)).collect();
        after.extend(add.iter().copied().filter(|label| !holds(&had, label)));
        vec![change("labels", &json!(had), &json!(after))]
    }

    fn requests(&self, fields: &Fields, at: &Connection, _: &CallFacts) -> Result<Vec<Request>, CallFailure> {
        at.secret()?;
        let url = format!("{}/labels", issue(at, fields));
        let mut requests = Vec::new();
        let add = fields.texts("add");
        if !add.is_empty() {
            requests.push(call("POST", url.clone(), at).json(json!({ "labels": add })).into_request());
        }
        let removals = fields.texts("remove").into_iter();
        requests.extend(removals.map(|label| call("DELETE", format!("{url}/{}", segment(label)), at).into_request()));
        Ok(requests)
    }

    fn read(&self, fields: &Fields, facts: &CallFacts, answers: &[Response]) -> Result<Value, CallFailure> {
        let adds = usize::from(!fields.texts("add").is_empty());
        for (at, answer) in answers.iter().enumerate() {
            // A label that is not there need not be removed; an issue that is not there has none either, but then
            // the call that adds a label has failed before.
            let is_gone = at >= adds && answer.status == 404 && answer.said().contains("Label");
            if !is_gone {
                answered(answer)?;
            }
        }
        Ok(json!({ "before": facts.before.clone().unwrap_or(Value::Null) }))
    }

    fn inverse(&self, fields: &Fields, output: &Value) -> Result<Inverse, String> {
        let before = output["before"]["labels"].as_array().ok_or("which labels there were is not known")?;
        let before: Vec<&str> = before.iter().filter_map(Value::as_str).collect();
        let added = fields.texts("add").into_iter().filter(|label| !holds(&before, label));
        let removed = fields.texts("remove").into_iter().filter(|label| holds(&before, label));
        let mut inverse = where_from(fields);
        inverse["issue"] = fields.whole("issue").into();
        inverse["remove"] = added.collect::<Vec<_>>().into();
        inverse["add"] = removed.collect::<Vec<_>>().into();
        Ok(Inverse { operation: LABELS.operation, fields: inverse })
    }
}

/// RFC 3339, to the second.
fn instant(at: Timestamp) -> String {
    jiff::Timestamp::from_second(at.0.div_euclid(1_000)).map(|at| at.to_string()).unwrap_or_default()
}

const _: () = assert!(COMMENT_BYTES < 65_536 && COMMENT_BYTES <= limits::JSON_BYTES);
