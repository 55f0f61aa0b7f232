//! Slack's interactivity payload: a form with one field, `payload`, that holds JSON. What a user has pressed on a card,
//! or has written into the dialog that a press has opened.

use serde_json::Value;

use super::{ReadError, slack, text_of};
use crate::json::NUL;

/// The action ids of a card's buttons, and the ids of the dialog for a rejection.
pub const APPROVE: &str = "interlock_approve";
pub const REJECT: &str = "interlock_reject";
pub const REJECT_DIALOG: &str = "interlock_reject_dialog";
pub const COMMENT_BLOCK: &str = "comment";
pub const COMMENT_INPUT: &str = "text";

/// A user in Slack, as the payload names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presser {
    pub enterprise: Option<String>,
    /// The workspace in which the app is.
    pub team: String,
    /// The workspace that the user belongs to: another one in a shared channel.
    pub user_team: Option<String>,
    pub user: String,
    /// How Slack calls them. Shown, never believed.
    pub name: String,
}

/// A button that was pressed, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Press {
    pub value: String,
    pub channel: String,
    /// The message that has the button.
    pub ts: String,
    pub trigger_id: String,
    pub response_url: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interaction {
    Approve {
        by: Presser,
        press: Press,
    },
    Reject {
        by: Presser,
        press: Press,
    },
    /// The dialog for a rejection was sent off.
    Rejected {
        by: Presser,
        metadata: String,
        comment: String,
    },
    /// Something that asks for nothing here.
    Other,
}

pub fn read(body: &[u8]) -> Result<Interaction, ReadError> {
    let fields = slack::form(body)?;
    let payload = fields.get("payload").ok_or(ReadError::MissingField("payload"))?;
    let payload = super::json(payload.as_bytes())?;
    match payload["type"].as_str() {
        Some("block_actions") => read_press(&payload),
        Some("view_submission") if payload["view"]["callback_id"] == REJECT_DIALOG => read_dialog(&payload),
        Some(_) => Ok(Interaction::Other),
        None => Err(ReadError::MissingField("type")),
    }
}

fn read_press(payload: &Value) -> Result<Interaction, ReadError> {
    let ours = |action: &&Value| action["action_id"] == APPROVE || action["action_id"] == REJECT;
    let Some(action) = payload["actions"].as_array().into_iter().flatten().find(ours) else {
        return Ok(Interaction::Other);
    };
    let press = Press {
        value: needed(action, &["value"], "actions.value")?,
        channel: needed(payload, &["container", "channel_id"], "container.channel_id")?,
        ts: needed(payload, &["container", "message_ts"], "container.message_ts")?,
        trigger_id: needed(payload, &["trigger_id"], "trigger_id")?,
        response_url: text_of(payload, &["response_url"]).filter(|url| !url.is_empty()),
    };
    let by = presser(payload)?;
    let approve = action["action_id"] == APPROVE;
    Ok(if approve { Interaction::Approve { by, press } } else { Interaction::Reject { by, press } })
}

fn read_dialog(payload: &Value) -> Result<Interaction, ReadError> {
    let comment = text_of(payload, &["view", "state", "values", COMMENT_BLOCK, COMMENT_INPUT, "value"]);
    Ok(Interaction::Rejected {
        by: presser(payload)?,
        metadata: needed(payload, &["view", "private_metadata"], "view.private_metadata")?,
        comment: comment.unwrap_or_default(),
    })
}

fn presser(payload: &Value) -> Result<Presser, ReadError> {
    let enterprise = match id_of(payload, &["enterprise", "id"], "enterprise.id")? {
        Some(id) => Some(id),
        None => id_of(payload, &["team", "enterprise_id"], "team.enterprise_id")?,
    };
    let name = text_of(payload, &["user", "username"]).or_else(|| text_of(payload, &["user", "name"]));
    Ok(Presser {
        enterprise,
        team: needed(payload, &["team", "id"], "team.id")?,
        user_team: id_of(payload, &["user", "team_id"], "user.team_id")?,
        user: needed(payload, &["user", "id"], "user.id")?,
        name: name.unwrap_or_default(),
    })
}

fn needed(payload: &Value, path: &[&str], name: &'static str) -> Result<String, ReadError> {
    id_of(payload, path, name)?.filter(|text| !text.is_empty()).ok_or(ReadError::MissingField(name))
}

/// A text by which something is found. One with a NUL would be stored, and looked for, as another.
fn id_of(payload: &Value, path: &[&str], name: &'static str) -> Result<Option<String>, ReadError> {
    let text = text_of(payload, path);
    if text.as_ref().is_some_and(|text| text.contains(NUL)) { Err(ReadError::Nul(name)) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form(payload: &Value) -> Vec<u8> {
        use std::fmt::Write as _;
        let mut form = String::from("payload=");
        for byte in payload.to_string().bytes() {
            write!(form, "%{byte:02X}").unwrap();
        }
        form.into_bytes()
    }

    fn press(action: &str) -> Value {
        json!({
            "type": "block_actions",
            "user": { "id": "U1", "username": "ada", "team_id": "T1" },
            "team": { "id": "T1", "domain": "example" },
            "enterprise": null,
            "container": { "type": "message", "message_ts": "1.2", "channel_id": "C1" },
            "trigger_id": "9.9.x",
            "response_url": "https://hooks.slack.com/actions/1",
            "actions": [{ "action_id": action, "type": "button", "value": "v" }],
        })
    }

    #[test]
    fn a_press_is_read_with_where_it_was_and_who_did_it() {
        let Interaction::Approve { by, press } = read(&form(&press(APPROVE))).unwrap() else { panic!() };
        assert_eq!((press.value.as_str(), press.channel.as_str(), press.ts.as_str()), ("v", "C1", "1.2"));
        assert_eq!((by.team.as_str(), by.user_team.as_deref(), by.enterprise), ("T1", Some("T1"), None));
        assert!(matches!(read(&form(&self::press(REJECT))).unwrap(), Interaction::Reject { .. }));
        assert_eq!(read(&form(&self::press("other"))).unwrap(), Interaction::Other);
    }

    #[test]
    fn an_enterprise_is_found_in_either_place() {
        let mut payload = press(APPROVE);
        payload["team"]["enterprise_id"] = json!("E1");
        let Interaction::Approve { by, .. } = read(&form(&payload)).unwrap() else { panic!() };
        assert_eq!(by.enterprise.as_deref(), Some("E1"));
        payload["enterprise"] = json!({ "id": "E2" });
        let Interaction::Approve { by, .. } = read(&form(&payload)).unwrap() else { panic!() };
        assert_eq!(by.enterprise.as_deref(), Some("E2"));
    }

    #[test]
    fn a_dialog_brings_its_comment_and_an_incomplete_payload_is_refused() {
        let payload = json!({
            "type": "view_submission",
            "user": { "id": "U1", "username": "ada", "team_id": "T1" }, "team": { "id": "T1" },
            "view": { "callback_id": REJECT_DIALOG, "private_metadata": "m",
                      "state": { "values": { "comment": { "text": { "type": "plain_text_input", "value": "no" } } } } },
        });
        let Interaction::Rejected { metadata, comment, .. } = read(&form(&payload)).unwrap() else { panic!() };
        assert_eq!((metadata.as_str(), comment.as_str()), ("m", "no"));
        for missing in ["user", "team", "trigger_id", "container"] {
            let mut payload = press(APPROVE);
            payload.as_object_mut().unwrap().remove(missing);
            assert!(matches!(read(&form(&payload)), Err(ReadError::MissingField(_))), "{missing}");
        }
        for (place, name) in [("user", "user.id"), ("team", "team.id"), ("enterprise", "enterprise.id")] {
            let mut payload = press(APPROVE);
            payload[place] = json!({ "id": "U1\0" });
            assert_eq!(read(&form(&payload)), Err(ReadError::Nul(name)));
        }
        assert_eq!(read(b"x=1"), Err(ReadError::MissingField("payload")));
        assert!(matches!(read(b"payload=%7B"), Err(ReadError::Body(_))));
    }
}
