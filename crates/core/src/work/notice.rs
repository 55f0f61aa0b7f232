//! How people are told of an approval: a card when it is asked for, and the rungs of a ladder when no approver decides.

use std::fmt;
use std::str::FromStr;

use crate::state::{UnknownName, names};

names!(
    /// One message about an approval.
    Notice, "notice", {
        /// Shows what is asked, with buttons; it is brought up to date with every vote.
        Card = "card",
        /// Reminds those who have the card, when the time to decide is over.
        Reminder = "reminder",
        /// Tells a second channel.
        Escalation = "escalation",
        /// Pages the person on call.
        Page = "page",
    }
);

/// What happens, one after the other, when the time to decide is over. No rung decides anything.
pub const LADDER: [Notice; 3] = [Notice::Reminder, Notice::Escalation, Notice::Page];

const DESTINATION: &str = "notice:";

impl Notice {
    /// Where the outbox keeps messages of this kind. Each kind waits for itself alone, so that one system that is down does
    /// not hold up the others.
    pub fn destination(self) -> String {
        format!("{DESTINATION}{self}")
    }

    pub fn of_destination(text: &str) -> Option<Self> {
        text.strip_prefix(DESTINATION)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::destination::Destination;

    #[test]
    fn a_notice_is_found_by_its_destination_and_no_task_can_send_one() {
        for notice in Notice::ALL {
            let destination = notice.destination();
            assert_eq!(Notice::of_destination(&destination), Some(*notice));
            assert!(destination.parse::<Destination>().is_err());
        }
        assert_eq!(Notice::of_destination("notice:"), None);
        assert_eq!(Notice::of_destination("card"), None);
    }
}
