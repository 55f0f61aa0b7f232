//! `interlock approval show`.

use std::fmt::Write as _;

use interlock_core::json::Json;
use interlock_core::plan::OnDenial;
use interlock_core::state::ApprovalState;
use interlock_core::text::article::with_article;
use interlock_core::text::visible::{visible, visible_lines};
use interlock_protocol::approvals::ApprovalView;

use super::{find, tone};
use crate::client::Client;
use crate::output::paint::{Paint, Tone};
use crate::output::tell::fallen_vote;
use crate::output::wrap::wrapped;
use crate::output::{Printer, span};

pub async fn run(client: &Client, printer: Printer, which: &str) -> anyhow::Result<()> {
    let approval = find::approval(client, which).await?;
    printer.show(&approval, |paint| card(&approval, paint, printer.prose_width()))
}

/// Columns of the names in front of what a card says.
const NAME_COLUMNS: usize = 10;

/// An input, whole and readable, without anything that hides or reorders text.
fn pretty(input: &Json) -> String {
    let shown = input.to_value().ok().and_then(|value| serde_json::to_string_pretty(&value).ok());
    let shown = shown.unwrap_or_else(|| input.as_str().to_owned());
    visible_lines(&shown).replace('\n', "\n           ")
}

/// What becomes of the run where the approval is not given.
const fn becomes(rule: OnDenial) -> &'static str {
    match rule {
        OnDenial::Fail => "the run fails",
        OnDenial::Pause => "the run pauses, and an operator says how it goes on",
    }
}

/// Everything that an approver should have seen before the decision.
pub fn card(approval: &ApprovalView, paint: Paint, width: usize) -> String {
    let now = span::now();
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let told = format!("{} {value}", paint.dim(format!("{name:<NAME_COLUMNS$}")));
        // What would be done is shown as it is. Writing to a string cannot fail.
        let told = if name == "with" { told } else { wrapped(&told, width, NAME_COLUMNS + 1) };
        let _ = writeln!(text, "{told}");
    };
    line("approval", &approval.approval.to_string());
    line("state", &paint.tone(tone(approval.state), approval.state.as_str()));
    if !approval.purpose.is_gate() {
        line("for", &format!("{} of the step", with_article(approval.purpose.as_str())));
    }
    let about = approval.subject.as_deref().map_or_else(String::new, |subject| format!(" for {}", visible(subject)));
    line("workflow", &format!("{}{about}", visible(&approval.workflow)));
    let step = match &approval.step {
        Some(step) => format!("step `{}`", visible(step)),
        None => format!("step {}", approval.position + 1),
    };
    line("run", &format!("{}, {step}", approval.run_id));
    if let Some(by) = &approval.started_by {
        line("started by", &visible(by));
    }
    line("asks", &visible_lines(approval.message.as_deref().unwrap_or("(nothing is said)")));
    if let Some(card) = &approval.action {
        if card.is_gate() {
            let more = card.unknown.as_deref().map_or_else(String::new, |more| format!(" ({})", visible(more)));
            let steps = span::counted(card.then.len() as u64, "step", "steps");
            line("guards", &format!("{steps} behind this gate{more}"));
        }
        for (index, action) in card.actions().enumerate() {
            let destructive = if action.destructive { ", destructive" } else { "" };
            let name = if index == 0 { "does" } else { "then" };
            line(name, &format!("{} {}, in step {}", action.kind, visible(&action.operation), visible(&action.step)));
            if let Some(only_if) = &action.only_if {
                line("only if", &visible(only_if));
            }
            match &action.unknown {
                Some(why) => line("with", &format!("not known yet: {}", visible(why))),
                None => line("with", &pretty(&action.input)),
            }
            line("effect", &format!("{}, blast radius {}{destructive}", action.effect, action.blast_radius));
            line("undone by", &visible(action.undone_by.as_deref().unwrap_or("nothing: it cannot be rolled back")));
        }
    }
    for state in &approval.present_state {
        let step = visible(&state.step);
        match &state.failed {
            Some(why) => line("now", &format!("step {step}: the present state could not be read: {}", visible(why))),
            None => line("now", &format!("step {step}, as it was {}:", span::away(state.read_at, now))),
        }
        for change in &state.changes {
            let [before, after] = [&change.before, &change.after].map(|value| visible(value.as_str()));
            line("", &format!("{}: {before} → {after}", visible(&change.field)));
        }
    }
    if let Some(tier) = approval.tier {
        line("tier", tier.as_str());
    }
    line(
        "needs",
        &match approval.quorum {
            1 => "one person's yes".to_owned(),
            quorum => format!("{quorum} different people's yes"),
        },
    );
    let approvers = match approval.approvers.as_slice() {
        [] => "any person with the role approver".to_owned(),
        groups => format!("members of {}", groups.join(" or ")),
    };
    line("from", &visible(&approvers));
    if approval.self_approval {
        let who = visible(&approval.excluded.join(", ")).into_owned();
        line("also from", &format!("{who} (started or directed it)"));
        line("", "the tenant lets people approve their own runs");
    } else if !approval.excluded.is_empty() {
        let who = visible(&approval.excluded.join(", ")).into_owned();
        line("not from", &format!("{who} (started or directed it, or wrote its workflow)"));
    }
    line("asked", &span::away(approval.requested_at, now));
    if approval.state == ApprovalState::Requested {
        match approval.escalate_at.filter(|due_at| *due_at >= now) {
            Some(due_at) => line("due", &span::away(due_at, now)),
            None => line("due", &paint.tone(Tone::Bad, "overdue: it was not decided in the time meant for it")),
        }
        line("expires", &span::away(approval.expires_at, now));
    }
    for (name, rule) in [("on reject", approval.on_reject), ("on expiry", approval.on_expiry)] {
        if let Some(rule) = rule {
            line(name, becomes(rule));
        }
    }
    for vote in &approval.votes {
        let (tone, word) = if vote.approve { (Tone::Good, "yes") } else { (Tone::Bad, "no") };
        let notes = vote.notes.as_deref().map_or_else(String::new, |notes| format!(": {}", visible(notes)));
        let word = paint.tone(tone, word);
        let whose = vote.on_behalf_of.as_deref().map_or_else(String::new, |whose| format!(" for {}", visible(whose)));
        line("vote", &format!("{word} from {}{whose}, {}{notes}", visible(&vote.person), span::away(vote.at, now)));
    }
    for fell in &approval.fallen {
        line("vote", &paint.tone(Tone::Careful, fallen_vote(fell)));
    }
    line("digest", &approval.digest);
    text
}
