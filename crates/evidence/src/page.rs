//! A bundle as one page that a person can read: no script, nothing loaded from elsewhere, and every text escaped, with
//! characters that command, hide or reorder spelled out.

use std::fmt::Write as _;

use interlock_core::json::Hash;
use interlock_core::text::visible::{visible, visible_lines};
use interlock_core::time::Timestamp;

use crate::bundle::{
    ApprovalFacts, DecisionFacts, Predicate, ProvenEntry, ReceiptFacts, RunFacts, Statement, StepFacts,
};
use crate::costs::CostFacts;
use crate::credentials::CredentialFacts;
use crate::details::PayloadFacts;
use crate::leave::LeaveFacts;
use crate::model_attempts::ModelAttempts;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#1b1f24}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}table{border-collapse:collapse;width:100%}\
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid #d0d7de;overflow-wrap:anywhere}\
th{font-weight:600;white-space:nowrap}code,pre{font:12.5px/1.45 ui-monospace,monospace}\
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f6f8fa;padding:.6rem}.note{color:#57606a}";

/// The page of a bundle. `sha256` is the bundle's own, by which the file that can be verified is found.
pub fn page(statement: &Statement, sha256: Hash) -> String {
    let Predicate { number, previous, record, logs } = &statement.predicate;
    let run = &record.run;
    let mut body = String::new();
    let kind = if *number == 0 { "Evidence".to_owned() } else { format!("Evidence, addendum {number}") };
    add(&mut body, format_args!("<h1>{kind}: {}</h1>\n", text(&run.run.to_string())));
    add(
        &mut body,
        format_args!(
            "<p class=\"note\">This page shows what the bundle with the sha256 <code>{sha256}</code> says. It is not the \
             proof: that is the bundle itself, which <code>interlock evidence verify</code> and every tool that reads \
             in-toto statements in DSSE envelopes can verify.</p>\n"
        ),
    );
    facts(&mut body, run, previous.map(|hash| hash.0));
    steps(&mut body, &record.steps);
    decisions(&mut body, &record.decisions);
    leave(&mut body, record.leave.as_deref().unwrap_or_default());
    approvals(&mut body, &record.approvals);
    receipts(&mut body, &record.receipts);
    costs(&mut body, &record.costs, record.model_attempts);
    credentials(&mut body, &record.credentials_used);
    for log in logs {
        entries(&mut body, &log.entries);
        add(&mut body, format_args!("<h2>Signed head of the log</h2>\n<pre>{}</pre>\n", lines(&log.checkpoint)));
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>Evidence: {}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        text(&run.run.to_string())
    )
}

fn add(page: &mut String, piece: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = page.write_fmt(piece);
}

/// One line of text that came from somewhere.
fn text(from: &str) -> String {
    escape(&visible(from))
}

fn lines(from: &str) -> String {
    escape(&visible_lines(from))
}

fn escape(from: &str) -> String {
    let mut escaped = String::with_capacity(from.len());
    for c in from.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

pub(crate) fn instant(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| format!("{} ms", at.0), |at| at.to_string())
}

fn opt_instant(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "–".to_owned(), instant)
}

fn payload(facts: Option<&PayloadFacts>) -> String {
    facts.map_or_else(
        || "–".to_owned(),
        |facts| format!("{} bytes, sha256 <code>{}</code>", facts.bytes, facts.sha256.0),
    )
}

fn row(page: &mut String, name: &str, value: &str) {
    add(page, format_args!("<tr><th>{name}</th><td>{value}</td></tr>\n"));
}

fn facts(page: &mut String, run: &RunFacts, previous: Option<Hash>) {
    page.push_str("<table>\n");
    let ended = match &run.reason {
        Some(reason) => format!("{} ({})", text(&run.state), text(reason)),
        None => text(&run.state),
    };
    row(page, "Ended", &ended);
    row(page, "Workflow", &format!("{}, version {}", text(&run.workflow), run.workflow_version));
    row(page, "Tenant, workspace", &format!("{}, {}", run.tenant, text(&run.workspace)));
    if let Some(subject) = &run.subject {
        row(page, "Subject", &text(subject));
    }
    row(page, "Trigger", &text(&run.trigger));
    row(page, "Started by", &run.started_by.as_deref().map_or_else(|| "–".to_owned(), text));
    row(page, "Created", &instant(run.created_at));
    row(page, "Finished", &instant(run.finished_at));
    row(page, "Inputs", &payload(Some(&run.inputs)));
    row(page, "Output", &payload(run.output.as_ref()));
    if let Some(error) = &run.error {
        row(page, "Error", &format!("<pre>{}</pre>", lines(&error.to_string())));
    }
    if let Some(from) = run.resumed_from {
        row(page, "Continues", &text(&from.to_string()));
    }
    if let Some(previous) = previous {
        row(page, "Bundle before", &format!("sha256 <code>{previous}</code>"));
    }
    page.push_str("</table>\n");
}

fn steps(page: &mut String, steps: &[StepFacts]) {
    page.push_str("<h2>Steps</h2>\n<table>\n<tr><th>#</th><th>Step</th><th>Kind</th><th>State</th><th>Attempt</th>");
    page.push_str("<th>Started</th><th>Finished</th><th>Output</th></tr>\n");
    for step in steps {
        add(
            page,
            format_args!(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                step.position + 1,
                text(&step.key),
                text(&step.kind),
                text(&step.state),
                step.attempt,
                opt_instant(step.started_at),
                opt_instant(step.finished_at),
                payload(step.output.as_ref()),
            ),
        );
    }
    page.push_str("</table>\n");
}

fn decisions(page: &mut String, decisions: &[DecisionFacts]) {
    if decisions.is_empty() {
        return;
    }
    page.push_str("<h2>Policy decisions</h2>\n");
    page.push_str("<table>\n<tr><th>Step</th><th>Action</th><th>Verdict</th><th>Tier</th><th>Reasons</th><th>Rules</th><th>At</th></tr>\n");
    for decision in decisions {
        add(
            page,
            format_args!(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td><code>{}</code></td><td>{}</td></tr>\n",
                decision.position + 1,
                text(&decision.operation),
                text(&decision.verdict),
                text(&decision.tier),
                reasons(decision.answer.as_ref()),
                decision.bundle.0,
                instant(decision.at),
            ),
        );
    }
    page.push_str("</table>\n");
}

fn leave(page: &mut String, leave: &[LeaveFacts]) {
    if leave.is_empty() {
        return;
    }
    page.push_str("<h2>Let happen</h2>\n");
    page.push_str("<table>\n<tr><th>Step</th><th>Attempt</th><th>Receipt</th><th>Rules</th></tr>\n");
    for LeaveFacts { position, attempt, receipt, bundle } in leave {
        let receipt = receipt.map_or_else(|| "–".to_owned(), |receipt| text(&receipt.to_string()));
        let (step, rules) = (position + 1, bundle.0);
        add(
            page,
            format_args!("<tr><td>{step}</td><td>{attempt}</td><td>{receipt}</td><td><code>{rules}</code></td></tr>\n"),
        );
    }
    page.push_str("</table>\n");
}

fn reasons(answer: Option<&serde_json::Value>) -> String {
    let given = answer.and_then(|answer| answer["reasons"].as_array());
    let Some(given) = given else { return "the rules gave no answer".to_owned() };
    let said = |reason: &serde_json::Value| {
        let part = |name: &str| reason[name].as_str().unwrap_or_default();
        text(&format!("{}: {}", part("rule"), part("text")))
    };
    given.iter().map(said).collect::<Vec<_>>().join("<br>")
}

fn approvals(page: &mut String, approvals: &[ApprovalFacts]) {
    if approvals.is_empty() {
        return;
    }
    page.push_str("<h2>Approvals</h2>\n");
    for approval in approvals {
        page.push_str("<table>\n");
        row(page, "Approval", &text(&approval.approval.to_string()));
        row(page, "Step", &(approval.position + 1).to_string());
        row(page, "Asked for", &text(&approval.purpose));
        row(page, "State", &text(&approval.state));
        row(page, "People needed", &approval.quorum.to_string());
        row(page, "Groups", &text(&approval.approvers.join(", ")));
        row(page, "Excluded", &text(&approval.excluded.join(", ")));
        if let Some(message) = &approval.message {
            row(page, "Message", &lines(message));
        }
        row(page, "Requested", &instant(approval.requested_at));
        row(page, "Resolved", &opt_instant(approval.resolved_at));
        for vote in &approval.votes {
            let word = if vote.approve { "approved" } else { "rejected" };
            let behalf = vote.on_behalf_of.as_ref().map(|whose| format!(" for {}", text(whose))).unwrap_or_default();
            let notes = vote.notes.as_ref().map(|notes| format!(": {}", lines(notes))).unwrap_or_default();
            row(page, "Vote", &format!("{}{behalf} {word} at {}{notes}", text(&vote.person), instant(vote.at)));
        }
        page.push_str("</table>\n");
    }
}

fn receipts(page: &mut String, receipts: &[ReceiptFacts]) {
    if receipts.is_empty() {
        return;
    }
    page.push_str(
        "<h2>Effects</h2>\n<table>\n<tr><th>Receipt</th><th>Step</th><th>Key</th><th>Class</th><th>State</th>",
    );
    page.push_str("<th>Intent</th><th>Outcome</th><th>Request</th><th>Response</th></tr>\n");
    for receipt in receipts {
        let late = if receipt.late { " (late)" } else { "" };
        add(
            page,
            format_args!(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}{late}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                text(&receipt.receipt.to_string()),
                receipt.position + 1,
                text(&receipt.key),
                text(&receipt.effect),
                text(&receipt.state),
                instant(receipt.intent_at),
                opt_instant(receipt.outcome_at),
                payload(Some(&receipt.request)),
                payload(receipt.response.as_ref()),
            ),
        );
    }
    page.push_str("</table>\n");
}

fn costs(page: &mut String, costs: &[CostFacts], models: Option<ModelAttempts>) {
    if costs.is_empty() && models.is_none() {
        return;
    }
    page.push_str("<h2>Costs</h2>\n");
    if let Some(ModelAttempts { begun, unpriced }) = models {
        add(page, format_args!("<p>Attempts of model steps: {begun}. Without a known price: {unpriced}.</p>\n"));
    }
    if costs.is_empty() {
        return;
    }
    add(
        page,
        format_args!(
            "<table>\n<tr><th>Provider</th><th>Model</th><th>Attempts</th><th>Cost</th>\
             <th>Tokens in</th><th>Tokens out</th></tr>\n"
        ),
    );
    for cost in costs {
        let name = |name: &Option<String>| name.as_deref().map(text).unwrap_or_default();
        let unit = cost.unit.as_deref().map_or_else(String::new, |unit| format!(" of {}", text(unit)));
        let more = if cost.unpriced { ", and what has no price" } else { "" };
        add(
            page,
            format_args!(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{} millionths{unit}{more}</td><td>{}</td><td>{}</td></tr>\n",
                name(&cost.provider),
                name(&cost.model),
                cost.attempts,
                cost.micros,
                cost.input_tokens,
                cost.output_tokens
            ),
        );
    }
    page.push_str("</table>\n");
}

fn credentials(page: &mut String, credentials: &[CredentialFacts]) {
    if credentials.is_empty() {
        return;
    }
    add(
        page,
        format_args!(
            "<h2>Credentials</h2>\n<table>\n<tr><th>Step</th><th>Attempt</th><th>Credential</th><th>Request</th>\
             <th>Lease</th><th>Fetched</th><th>Revoked</th></tr>\n"
        ),
    );
    for used in credentials {
        let id = |id: &Option<String>| id.as_deref().map(text).unwrap_or_default();
        let (fetched, revoked) = (instant(used.fetched_at), opt_instant(used.revoked_at));
        add(
            page,
            format_args!(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{fetched}</td><td>{revoked}</td></tr>\n",
                used.position + 1,
                used.attempt,
                text(&used.credential_id),
                id(&used.vault_request_id),
                id(&used.lease_id)
            ),
        );
    }
    page.push_str("</table>\n");
}

fn entries(page: &mut String, entries: &[ProvenEntry]) {
    page.push_str(
        "<h2>Entries of the audit log</h2>\n<table>\n<tr><th>Entry</th><th>At</th><th>Events</th><th>By</th>",
    );
    page.push_str("<th>Details</th></tr>\n");
    for ProvenEntry { logged, .. } in entries {
        let body = &logged.entry.body;
        let opened = logged.opened.as_ref();
        let actor = opened.and_then(|opened| opened.actor.as_deref());
        let by =
            actor.map_or_else(|| text(&body.initiator), |actor| format!("{} ({})", text(actor), text(&body.initiator)));
        let details = opened.and_then(|opened| opened.details.as_deref());
        let details =
            details.map_or_else(|| "not there (erased)".to_owned(), |shown| format!("<code>{}</code>", text(shown)));
        add(
            page,
            format_args!(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{by}</td><td>{details}</td></tr>\n",
                logged.entry.index,
                instant(body.at),
                text(&body.types.join(", ")),
            ),
        );
    }
    page.push_str("</table>\n");
}
