//! Who has changed what an account may do, or how its person gets in, within the last day ([`fresh`](super::fresh) says
//! what follows from it).
//!
//! Every person who changed it that day is kept, each with the time of their newest change. To keep only the newest
//! would let any person, the account itself included, hide the change before; to keep only the first would let an
//! excluded person come second, after a harmless change, and stay unseen. One time for all of them would be no better:
//! a key that set the account up before a run began would seem to have changed it after.
//!
//! They stand in the one column `access_changed_by`: a single name as it is, as rows always had it, several as
//! `name:time` with blanks between. Neither names of people nor ids of keys have colons or blanks. The address of an
//! identity provider has colons, and so always its time.

use interlock_core::run::approval::is_person;
use interlock_core::time::{Millis, Timestamp};
use interlock_store::UserRow;

use super::Caller;

/// How long a change of access keeps an account from deciding.
pub const FRESH: Millis = Millis::from_hours(24);

/// How many changes of access, one made by the next, are followed. An account with a longer chain does not decide.
pub const HANDS_MAX: usize = 16;

/// Changes that are kept: with more people than that an account does not decide while any of them counts, so that it does
/// not matter who the oldest was. One of them may be the account's own person, who is no further hand.
const KEPT_MAX: usize = HANDS_MAX + 1;

/// A change of what an account may do, or of how its person gets in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessChange {
    pub at: Timestamp,
    /// A person, a key that has no owner, or the identity provider.
    pub by: String,
}

/// The account's changes of the last day, and how it came to be if that was within it.
pub fn changed_lately(user: &UserRow, now: Timestamp) -> Vec<AccessChange> {
    let made = user.created_by.clone().map(|by| AccessChange { at: user.created_at, by });
    made.into_iter().filter(|change| is_fresh(change, now)).chain(kept(user, now)).collect()
}

/// Adds a change to those of the last day.
pub fn record(user: &mut UserRow, by: String, now: Timestamp) {
    let mut changes = kept(user, now);
    changes.retain(|change| change.by != by);
    changes.push(AccessChange { at: now, by });
    changes.drain(..changes.len().saturating_sub(KEPT_MAX));
    user.access_changed_at = Some(now);
    user.access_changed_by = Some(match changes.as_slice() {
        [one] if !one.by.contains(':') => one.by.clone(),
        several => {
            let written: Vec<_> = several.iter().map(|AccessChange { at, by }| format!("{by}:{}", at.0)).collect();
            written.join(" ")
        }
    });
}

/// Adds a change that a caller makes. A person who has made a key for another has had it in hand, and so in the change.
pub fn record_by(user: &mut UserRow, caller: &Caller, now: Timestamp) {
    let makers = caller.makers().into_iter().filter(|maker| is_person(maker));
    for by in makers.chain([caller.name()]) {
        record(user, by, now);
    }
}

/// A link by which the person gets in is used. Its maker could have used it themselves: the people who had a hand in the
/// account when it was made have it now. When a key made it stays as it was: what it set up before a run began is not
/// taken for a change after it.
pub fn record_entry(user: &mut UserRow, now: Timestamp) {
    for change in kept(user, now).into_iter().filter(|change| is_person(&change.by)) {
        record(user, change.by, now);
    }
    let own = user.name.clone();
    record(user, own, now);
}

/// Those of the last day, oldest first.
fn kept(user: &UserRow, now: Timestamp) -> Vec<AccessChange> {
    let Some((newest, written)) = user.access_changed_at.zip(user.access_changed_by.as_deref()) else {
        return Vec::new();
    };
    let read = |text: &str| {
        let timed = text.rsplit_once(':').and_then(|(by, at)| Some((by, Timestamp(at.parse().ok()?))));
        let (by, at) = timed.unwrap_or((text, newest));
        AccessChange { at, by: by.to_owned() }
    };
    written.split(' ').map(read).filter(|change| is_fresh(change, now)).collect()
}

fn is_fresh(change: &AccessChange, now: Timestamp) -> bool {
    now.since(change.at) < FRESH
}

#[cfg(test)]
mod tests {
    use interlock_core::ids::{TenantId, UserId};
    use interlock_core::tenant::identity::Roles;

    use super::*;

    const HOUR: i64 = 3_600_000;

    fn pat() -> UserRow {
        UserRow {
            tenant: TenantId::from_bytes([1; 16]),
            id: UserId::from_bytes([2; 16]),
            name: "pat".into(),
            display_name: None,
            email: None,
            roles: Roles::NONE,
            groups: Vec::new(),
            installation: false,
            password: None,
            issuer: None,
            subject: None,
            created_at: Timestamp(0),
            created_by: None,
            disabled_at: None,
            last_login_at: None,
            access_changed_at: None,
            access_changed_by: None,
        }
    }

    fn seen(user: &UserRow, hours: i64) -> Vec<(String, i64)> {
        let changes = changed_lately(user, Timestamp(hours * HOUR)).into_iter();
        changes.map(|change| (change.by, change.at.0 / HOUR)).collect()
    }

    #[test]
    fn nobody_washes_away_the_change_of_another_and_each_lasts_a_day() {
        let mut user = pat();
        for (by, hours) in [("ada", 1), ("pat", 2), ("bob", 3), ("ada", 4)] {
            record(&mut user, by.to_owned(), Timestamp(hours * HOUR));
        }
        let all = [("pat", 2), ("bob", 3), ("ada", 4)].map(|(by, at)| (by.to_owned(), at));
        assert_eq!(seen(&user, 5), all);
        assert_eq!(seen(&user, 26), all[1..], "hers is a day old");
        assert_eq!(seen(&user, 28), []);
        record(&mut user, "cyd".to_owned(), Timestamp(30 * HOUR));
        assert_eq!(user.access_changed_by.as_deref(), Some("cyd"), "what is over is not carried along");
    }

    #[test]
    fn a_row_with_a_single_name_is_read_as_it_always_was() {
        let mut user = pat();
        (user.access_changed_at, user.access_changed_by) = (Some(Timestamp(HOUR)), Some("ada@example.org".into()));
        assert_eq!(seen(&user, 2), [("ada@example.org".to_owned(), 1)]);
        record(&mut user, "bob".to_owned(), Timestamp(2 * HOUR));
        assert_eq!(seen(&user, 3), [("ada@example.org".to_owned(), 1), ("bob".to_owned(), 2)]);
    }

    #[test]
    fn the_address_of_a_provider_is_no_time() {
        let mut user = pat();
        record(&mut user, "https://idp.example:8443".to_owned(), Timestamp(HOUR));
        assert_eq!(seen(&user, 2), [("https://idp.example:8443".to_owned(), 1)]);
        record(&mut user, "bob".to_owned(), Timestamp(2 * HOUR));
        assert_eq!(seen(&user, 3), [("https://idp.example:8443".to_owned(), 1), ("bob".to_owned(), 2)]);
    }

    /// Otherwise the maker of a link would wait with it until their own change is forgotten.
    #[test]
    fn who_uses_a_link_may_be_its_maker() {
        let (mut user, key) = (pat(), interlock_core::ids::KeyId::from_bytes([7; 16]).to_string());
        record(&mut user, key.clone(), Timestamp(HOUR));
        record(&mut user, "ada".to_owned(), Timestamp(2 * HOUR));
        record_entry(&mut user, Timestamp(20 * HOUR));
        let all = [(key, 1), ("ada".to_owned(), 20), ("pat".to_owned(), 20)];
        assert_eq!(seen(&user, 21), all);
        assert_eq!(seen(&user, 40), all[1..], "a day from the use, not from the making");
    }

    /// Otherwise seventeen harmless changes would push a harmful one out.
    #[test]
    fn where_more_changed_it_than_are_kept_there_are_too_many_to_be_believed() {
        let mut user = pat();
        record(&mut user, "ada".to_owned(), Timestamp(0));
        for number in 0..40 {
            record(&mut user, format!("person-{number}"), Timestamp(HOUR));
            record(&mut user, "pat".to_owned(), Timestamp(HOUR));
        }
        let others = seen(&user, 2).into_iter().filter(|(by, _)| by != "pat").count();
        assert_eq!(others, HANDS_MAX, "and with the account itself more than can be followed");
    }
}
