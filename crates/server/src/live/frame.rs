//! One event, encoded once for both ways onto the wire and shared by all who watch.

use axum::body::Bytes;
use axum::extract::ws::Utf8Bytes;
use interlock_protocol::live::Control;
use serde::Serialize;

#[derive(Debug, Clone)]
pub struct Frame {
    /// The place behind this event.
    pub cursor: u64,
    /// The message of a WebSocket.
    pub message: Utf8Bytes,
    /// The same as a server-sent event, whose middle is the message.
    pub event: Bytes,
}

impl Frame {
    /// The text of the message is a slice of the event's bytes: one allocation for both.
    pub fn new(cursor: u64, name: &str, told: &impl Serialize) -> Self {
        let json = serde_json::to_string(told).unwrap_or_default();
        let head = format!("id: {cursor}\nevent: {name}\ndata: ");
        let event = Bytes::from(format!("{head}{json}\n\n"));
        let message = event.slice(head.len()..head.len() + json.len());
        // It was a string a line ago.
        let message = Utf8Bytes::try_from(message).unwrap_or_default();
        Self { cursor, message, event }
    }

    pub fn bytes(&self) -> usize {
        self.event.len()
    }
}

/// A control frame for a WebSocket.
pub fn control_message(control: &Control) -> Utf8Bytes {
    serde_json::to_string(control).unwrap_or_default().into()
}

/// A control frame as a server-sent event. It has no id, so that it does not move the reader's place.
pub fn control_event(control: &Control) -> Bytes {
    let name = match control {
        Control::Heartbeat { .. } => return Bytes::from_static(b": heartbeat\n\n"),
        Control::Subscribed { .. } => "subscribed",
        Control::Resync { .. } => "resync",
        Control::Closing { .. } => "closing",
        Control::End { .. } => "end",
        Control::Refused { .. } => "refused",
    };
    let json = serde_json::to_string(control).unwrap_or_default();
    Bytes::from(format!("event: stream.{name}\ndata: {json}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_carry_the_same_text() {
        let told = serde_json::json!({ "id": "9", "payload": { "workflow": "größe", "text": "a\nb" } });
        let frame = Frame::new(9, "session.created", &told);
        let event = std::str::from_utf8(&frame.event).unwrap();
        assert_eq!(event, format!("id: 9\nevent: session.created\ndata: {}\n\n", frame.message.as_str()));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&frame.message).unwrap(), told);
        assert!(!frame.message.contains('\n'), "a line feed would end the event");
    }

    #[test]
    fn control_frames_do_not_move_the_place() {
        let end = control_event(&Control::End { last_event_id: "3".into() });
        assert_eq!(&end[..], b"event: stream.end\ndata: {\"type\":\"end\",\"last_event_id\":\"3\"}\n\n");
    }
}
