//! An approval as a card of Slack's Block Kit: everything that is signed, or no buttons. Text of others stands in
//! `plain_text`, which Slack does not interpret, with what hides made visible; `mrkdwn` holds only the server's own
//! words and addresses.

use interlock_core::json::Json;
use interlock_core::plan::Work;
use interlock_core::run::approval::{FallenVote, Vote, is_person};
use interlock_core::run::card::{ActionCard, FieldChange, PresentState};
use interlock_core::run::{Phase, Run};
use interlock_core::state::ApprovalState;
use interlock_core::text::visible::visible;
use interlock_core::time::Timestamp;
use interlock_core::trigger::schedule::slot_text;
use interlock_core::trigger::webhook::slack_interaction::{
    APPROVE, COMMENT_BLOCK, COMMENT_INPUT, REJECT, REJECT_DIALOG,
};
use interlock_store::ApprovalRow;
use serde_json::{Value, json};

use super::ButtonValue;
use crate::commands::vote::ApprovalExclusions;
use crate::payloads::reference::PAYLOAD_MARK;

/// Slack's own limits.
pub const BLOCKS_MAX: usize = 50;
pub const SECTION_CHARS_MAX: usize = 3_000;
pub const VALUE_CHARS_MAX: usize = 2_000;
pub const METADATA_CHARS_MAX: usize = 3_000;
/// A comment on a rejection; as long as notes may be.
pub const COMMENT_CHARS_MAX: usize = 1_000;
/// All texts of a card together: what is longer is hard to read in a channel, and Slack refuses some of it.
const CARD_CHARS_MAX: usize = 12_000;
/// What a card has beside its texts: header, overdue, votes, buttons, link, ids.
const FIXED_BLOCKS: usize = 8;
const TEXTS_MAX: usize = BLOCKS_MAX - FIXED_BLOCKS;

/// What a card shows.
#[derive(Debug, Clone, Copy)]
pub struct CardFacts<'a> {
    pub row: &'a ApprovalRow,
    pub run: &'a Run,
    pub digest: &'a str,
    pub exclusions: &'a ApprovalExclusions,
    /// How people reach this server.
    pub public_url: Option<&'a str>,
}

/// A card, ready to be posted.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// What notifications show.
    pub text: String,
    pub blocks: Vec<Value>,
}

impl CardFacts<'_> {
    fn is_open(&self) -> bool {
        self.row.state == ApprovalState::Requested
    }

    /// The time to decide is over, and no person has decided.
    fn is_overdue(&self) -> bool {
        self.is_open() && self.row.escalate_at.is_none()
    }

    fn step(&self) -> &str {
        &self.run.spec(self.row.position).key
    }

    /// Where the approval is found, for people.
    pub fn link(&self) -> Option<String> {
        self.public_url.map(|url| format!("{url}/approvals/{}", self.row.id))
    }

    /// In one line.
    pub fn subject(&self) -> String {
        let (plan, step) = (&self.run.plan, self.step());
        format!("{} step {} of {}", visible(&plan.workflow), visible(step), self.run.id)
    }

    fn title(&self) -> &'static str {
        match self.row.state {
            ApprovalState::Requested if self.is_overdue() => "Approval overdue",
            ApprovalState::Requested => "Approval needed",
            ApprovalState::Approved => "Approved",
            ApprovalState::Rejected => "Rejected",
            ApprovalState::Expired => "Expired: nobody decided",
            ApprovalState::Canceled => "No longer needed",
        }
    }

    /// As it stands now: with buttons while it can be decided, without them afterwards.
    pub fn card(&self) -> Card {
        let mut blocks = vec![json!({ "type": "header", "text": plain(self.title()) })];
        if self.is_overdue() {
            let text = ":rotating_light: *Overdue*: the time to decide is over, and nobody has. It stays open.";
            blocks.push(section(&mrkdwn(text)));
        }
        let mut texts = self.texts();
        if let Some(state) = self.present_state() {
            // It is not signed: where it would not fit, the card says so, and the rest is still decided here.
            texts.push(state);
            if !fits(&texts) {
                texts.pop();
                texts.push("Present state: too long for Slack; the console shows it.".to_owned());
            }
        }
        // What is too long to be shown cannot be decided here.
        let fits = fits(&texts) && !self.is_kept_aside();
        let shown = if fits { texts } else { vec![self.outline()] };
        blocks.extend(shown.iter().flat_map(|text| pieces(text)).map(|piece| section(&plain(piece))));
        blocks.extend(self.votes());
        if self.is_open() {
            blocks.push(if fits { self.buttons() } else { section(&mrkdwn(&self.elsewhere())) });
        }
        if let Some(link) = self.link() {
            blocks.push(section(&mrkdwn(&format!("<{}|Open it in the console>", escaped(&link)))));
        }
        let ids = format!("{} · {} · digest {}", self.row.id, self.run.id, self.digest);
        blocks.push(json!({ "type": "context", "elements": [plain(&ids)] }));
        Card { text: escaped(&format!("{}: {}", self.title(), self.subject())), blocks }
    }

    /// Everything that is signed, and what people need beside it.
    fn texts(&self) -> Vec<String> {
        let mut texts = vec![self.outline()];
        if let Some(message) = &self.row.message {
            // Where no gate of the workflow asks, the policy does, and says why.
            let is_gate = matches!(self.run.spec(self.row.position).work, Work::Approval(_));
            let whose = if is_gate { "Message of the workflow" } else { "Why people are asked" };
            texts.push(format!("{whose}: {}", visible(message)));
        }
        match self.row.action.as_ref().map(Json::decode::<ActionCard>) {
            // And everything else that is agreed to with it.
            Some(Ok(action)) => {
                if action.is_gate() {
                    let more = action.unknown.as_ref().map_or_else(String::new, |more| format!(" ({})", visible(more)));
                    texts.push(format!("Behind this gate, in order{more}:"));
                }
                for part in action.actions() {
                    let input = match &part.unknown {
                        Some(why) => format!("Input: not known yet: {}", visible(why)),
                        None => format!("Input:\n{}", pretty(&part.input)),
                    };
                    texts.extend([action_text(part), input]);
                }
            }
            // What cannot be read is shown as it is.
            Some(Err(_)) => texts.extend(self.row.action.iter().map(|action| visible(action.as_str()).into_owned())),
            None => {}
        }
        texts.push(self.people());
        texts
    }

    /// What would change, beside what is there.
    fn present_state(&self) -> Option<String> {
        let states: Vec<PresentState> = self.row.present_state.as_ref()?.decode().ok()?;
        let mut lines = Vec::new();
        for state in &states {
            let step = visible(&state.step);
            match &state.failed {
                Some(why) => lines.push(format!("Present state, step {step}: could not be read: {}", visible(why))),
                None => lines.push(format!("Present state, step {step}, as of {}:", at(state.read_at))),
            }
            for FieldChange { field, before, after } in &state.changes {
                let [before, after] = [before, after].map(|value| visible(value.as_str()));
                lines.push(format!("{}: {before} → {after}", visible(field)));
            }
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Whether an input is so long that the card has only a note of where it is kept. What merely looks like one is decided
    /// in the console, too.
    fn is_kept_aside(&self) -> bool {
        let action = self.row.action.as_ref().and_then(|action| action.decode::<ActionCard>().ok());
        let mut parts = action.iter().flat_map(ActionCard::actions);
        parts.any(|part| part.input.as_str().contains(PAYLOAD_MARK))
    }

    fn outline(&self) -> String {
        let plan = &self.run.plan;
        let mut lines = vec![
            format!("Workflow: {} (version {})", visible(&plan.workflow), plan.version),
            format!("Step: {}", visible(self.step())),
            format!("Asked for: {}", self.row.purpose),
        ];
        if let Some(subject) = &self.run.header.subject {
            lines.push(format!("Subject: {}", visible(subject)));
        }
        if let Some(profile) = &plan.rules.profile {
            lines.push(format!("Profile: {}", visible(profile)));
        }
        lines.join("\n")
    }

    fn people(&self) -> String {
        let (row, run) = (self.row, self.run);
        let mut lines = Vec::new();
        lines.push(format!("Started by: {}", visible(&run.header.starter())));
        let groups =
            if row.approvers.is_empty() { "everybody who may approve".to_owned() } else { listed(&row.approvers) };
        lines.push(format!("Who may decide: {groups}"));
        lines.push(format!("Approvals needed: {}", row.quorum));
        if let Phase::WaitingApproval(open) = &run.current().phase
            && open.id == row.id
        {
            lines.push(format!("Tier: {}", open.tier_in(&run.plan, row.position)));
            lines.extend(self.excluded());
            let word = |pauses: bool| if pauses { "the run pauses" } else { "the run fails" };
            let pauses = |rule| rule == interlock_core::plan::OnDenial::Pause;
            lines.push(format!("If rejected: {}", word(pauses(open.on_reject))));
            lines.push(format!("If nobody decides: {}", word(pauses(open.on_expiry))));
            if let Some(reason) = &open.reason {
                lines.push(format!("Reason given: {}", visible(reason)));
            }
        }
        if let Some(due_at) = row.escalate_at.filter(|_| self.is_open()) {
            lines.push(format!("Answer due: {}", slot_text(due_at)));
        }
        lines.push(format!("Expires: {}", slot_text(row.expires_at)));
        lines.join("\n")
    }

    /// Who may not decide, and who may although they started or directed the run.
    fn excluded(&self) -> Vec<String> {
        let ApprovalExclusions { author, self_approval, .. } = self.exclusions;
        let (mut own, mut barred) = (Vec::new(), Vec::new());
        for name in self.row.excluded.iter().filter(|name| is_person(name)) {
            let may_decide = *self_approval && author.as_ref() != Some(name);
            let list = if may_decide { &mut own } else { &mut barred };
            list.push(name.clone());
        }
        barred.extend(author.clone().filter(|author| !barred.contains(author)));
        let mut lines = Vec::new();
        if !barred.is_empty() {
            lines.push(format!("May not decide: {}", listed(&barred)));
        }
        if !own.is_empty() {
            let why = "started or directed it; the tenant lets people approve their own runs";
            lines.push(format!("May decide too: {} ({why})", listed(&own)));
        }
        lines
    }

    fn votes(&self) -> Option<Value> {
        let fallen = &self.exclusions.fallen;
        if self.row.votes.is_empty() && fallen.is_empty() {
            return None;
        }
        let counts = |vote: &&Vote| !fallen.iter().any(|fell| fell.person == vote.person);
        let line = |vote: &Vote| {
            let word = if vote.approve { "Approved" } else { "Rejected" };
            let whose = vote.on_behalf_of.as_ref().map(|whose| format!(" on behalf of {}", visible(whose)));
            let notes = vote.notes.as_ref().map(|notes| format!(": {}", visible(notes)));
            let (whose, notes) = (whose.unwrap_or_default(), notes.unwrap_or_default());
            format!("{word} by {}{whose} at {}{notes}", visible(&vote.person), at(vote.at))
        };
        let mut lines: Vec<String> = self.row.votes.iter().filter(counts).map(line).collect();
        let fell =
            |fell: &FallenVote| format!("The yes of {} counts no more: {}", visible(&fell.person), visible(&fell.why));
        lines.extend(fallen.iter().map(fell));
        Some(section(&plain(&cut(&lines.join("\n")))))
    }

    fn buttons(&self) -> Value {
        let value = ButtonValue { approval: self.row.id, digest: self.digest.to_owned() }.text();
        let button = |id: &str, text: &str, style: &str| json!({ "type": "button", "action_id": id, "text": plain(text), "style": style, "value": value });
        let elements = [button(APPROVE, "Approve", "primary"), button(REJECT, "Reject", "danger")];
        json!({ "type": "actions", "block_id": "interlock_decide", "elements": elements })
    }

    /// What stands in place of the buttons where not everything that is signed can be shown.
    fn elsewhere(&self) -> String {
        let how = format!("`interlock approval show {}`", self.row.id);
        format!("*This does not fit into Slack whole, so it cannot be decided here.* Look at all of it first: {how}")
    }
}

/// The dialog that asks for a comment. The metadata comes back with it.
pub fn reject_dialog(subject: &str, metadata: &str) -> Value {
    let subject: String = subject.chars().take(SECTION_CHARS_MAX - 100).collect();
    json!({
        "type": "modal",
        "callback_id": REJECT_DIALOG,
        "private_metadata": metadata,
        "title": plain("Reject"),
        "submit": plain("Reject"),
        "close": plain("Back"),
        "blocks": [
            section(&plain(&format!("You reject: {subject}"))),
            {
                "type": "input",
                "block_id": COMMENT_BLOCK,
                "label": plain("Why?"),
                "element": {
                    "type": "plain_text_input", "action_id": COMMENT_INPUT, "multiline": true, "min_length": 1,
                    "max_length": COMMENT_CHARS_MAX,
                },
            },
        ],
    })
}

/// Text for `mrkdwn`: Slack's three control characters as it asks for them.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn plain(text: &str) -> Value {
    json!({ "type": "plain_text", "text": text, "emoji": false })
}

fn mrkdwn(text: &str) -> Value {
    json!({ "type": "mrkdwn", "text": text, "verbatim": true })
}

/// Nothing of it is folded away.
fn section(text: &Value) -> Value {
    json!({ "type": "section", "text": text, "expand": true })
}

fn action_text(action: &ActionCard) -> String {
    let undone = action.undone_by.as_ref().map_or_else(|| "nothing".into(), |by| visible(by).into_owned());
    let destructive = if action.destructive { "yes" } else { "no" };
    [
        format!("Action: {} ({})", visible(&action.operation), action.kind),
        format!("Proposed by step: {}", visible(&action.step)),
        format!("Effect: {}", action.effect),
        format!("Blast radius: {}", action.blast_radius),
        format!("Destructive: {destructive}"),
        format!("Undone by: {undone}"),
        action.only_if.as_ref().map_or_else(String::new, |only_if| format!("Only if: {}", visible(only_if))),
    ]
    .join("\n")
    .trim_end()
    .to_owned()
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| visible(name)).collect::<Vec<_>>().join(", ")
}

fn at(instant: Timestamp) -> String {
    slot_text(instant)
}

/// Comments are not signed: a long one is cut, and says so.
fn cut(text: &str) -> String {
    if length(text) <= SECTION_CHARS_MAX {
        return text.to_owned();
    }
    let mark = "… (cut; the console has all of it)";
    let mut kept = String::new();
    for c in text.chars() {
        if length(&kept) + c.len_utf16() + length(mark) > SECTION_CHARS_MAX {
            break;
        }
        kept.push(c);
    }
    kept + mark
}

/// As the strictest reader counts: in UTF-16.
fn length(text: &str) -> usize {
    text.encode_utf16().count()
}

fn fits(texts: &[String]) -> bool {
    let blocks: usize = texts.iter().map(|text| pieces(text).len()).sum();
    let chars: usize = texts.iter().map(|text| length(text)).sum();
    blocks <= TEXTS_MAX && chars <= CARD_CHARS_MAX
}

/// A text in pieces that each fit a section, at ends of lines where that is possible.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while length(rest) > SECTION_CHARS_MAX {
        let mut units = 0;
        let end = rest.char_indices().find(|(_, c)| {
            units += c.len_utf16();
            units > SECTION_CHARS_MAX
        });
        let end = end.map_or(rest.len(), |(index, _)| index);
        let line = rest[..end].rfind('\n').map(|index| index + 1).filter(|index| *index > 0);
        let (piece, behind) = rest.split_at(line.unwrap_or(end));
        pieces.push(piece);
        rest = behind;
    }
    if !rest.is_empty() {
        pieces.push(rest);
    }
    pieces
}

/// JSON on several lines, otherwise exactly as it is signed: no number and no string is read and written anew.
fn pretty(json: &Json) -> String {
    let text = visible(json.as_str());
    let mut out = String::with_capacity(text.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    let mut previous = ' ';
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    for c in text.chars() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        if matches!(previous, '{' | '[') && !matches!(c, '}' | ']') {
            line(&mut out, depth);
        }
        match c {
            '"' => {
                in_string = true;
                out.push(c);
            }
            '{' | '[' => {
                depth += 1;
                out.push(c);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if !matches!(previous, '{' | '[') {
                    line(&mut out, depth);
                }
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            other => out.push(other),
        }
        previous = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_laid_out_and_otherwise_left_alone() {
        let json =
            Json::trusted(r#"{"a":[1,2.50,{"b":"x\",{}: y"}],"c":{},"d":[],"big":12345678901234567890}"#.to_owned());
        let shown = pretty(&json);
        assert!(
            shown.contains("\n  \"a\": [\n    1,\n    2.50,\n    {\n      \"b\": \"x\\\",{}: y\"\n    }\n  ],"),
            "{shown}"
        );
        assert!(shown.contains("\"c\": {},") && shown.contains("\"d\": [],"), "{shown}");
        assert!(shown.contains("12345678901234567890"));
        let joined: String = shown.split('\n').map(str::trim_start).collect();
        assert_eq!(joined.replace("\": ", "\":"), json.as_str());
    }

    #[test]
    fn pieces_are_short_enough_and_lose_nothing() {
        let texts = ["", "short"].map(str::to_owned).into_iter();
        let long = [("line of text\n", 1_000), ("x", 10_001), ("𝒳\n", 4_000)].map(|(text, times)| text.repeat(times));
        for text in texts.chain(long) {
            let pieces = pieces(&text);
            assert_eq!(pieces.concat(), text);
            assert!(pieces.iter().all(|piece| length(piece) <= SECTION_CHARS_MAX && !piece.is_empty()));
        }
    }

    #[test]
    fn control_characters_of_slack_are_escaped() {
        assert_eq!(escaped("<!channel> & <@U1>"), "&lt;!channel&gt; &amp; &lt;@U1&gt;");
    }

    #[test]
    fn a_long_comment_is_cut_with_a_mark() {
        let cut = cut(&"𝒳".repeat(5_000));
        assert!(length(&cut) <= SECTION_CHARS_MAX && cut.ends_with("all of it)"));
    }
}
