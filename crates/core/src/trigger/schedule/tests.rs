//! Years of virtual time around clock changes, against a slow and obvious reading of the clock.

use std::collections::BTreeSet;

use jiff::tz::TimeZoneDatabase;
use proptest::prelude::*;

use super::*;

fn zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).unwrap()
}

fn cadence(cron: &str, name: &str, dst: DstPolicy) -> Cadence {
    Cadence {
        cron: cron.parse().unwrap(),
        zone: zone(name),
        dst,
        jitter: Millis::ZERO,
        catch_up: CATCH_UP_DEFAULT,
        seed: [7; 16],
    }
}

fn at(text: &str) -> Timestamp {
    Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
}

fn slots(cadence: &Cadence, from: &str, to: &str) -> Vec<String> {
    let (mut after, end) = (at(from), at(to));
    let mut found = Vec::new();
    while let Some(slot) = cadence.next(after).filter(|slot| slot.at < end) {
        found.push(slot_text(slot.at));
        after = slot.at;
    }
    found
}

/// The clocks of Berlin left out 02:00 to 03:00 on 29 March 2026 and showed it twice on 25 October.
#[test]
fn a_time_that_is_left_out() {
    let day = |dst| slots(&cadence("30 2 * * *", "Europe/Berlin", dst), "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z");
    assert_eq!(day(DstPolicy::Once), ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
    assert_eq!(day(DstPolicy::Skip), ["2026-03-30T00:30:00Z"]);
    assert_eq!(day(DstPolicy::Twice), day(DstPolicy::Once));
}

#[test]
fn a_time_that_comes_twice() {
    let day = |dst| slots(&cadence("30 2 * * *", "Europe/Berlin", dst), "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z");
    assert_eq!(day(DstPolicy::Once), ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
    assert_eq!(day(DstPolicy::Skip), day(DstPolicy::Once));
    assert_eq!(day(DstPolicy::Twice), ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"]);
}

#[test]
fn slots_that_meet_at_the_change_are_one() {
    let cadence = cadence("0,30 2,3 * * *", "Europe/Berlin", DstPolicy::Once);
    let day = slots(&cadence, "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z");
    assert_eq!(day, ["2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"]);
}

#[test]
fn every_hour_means_every_hour_that_passes() {
    for dst in DstPolicy::ALL {
        let cadence = cadence("*/30 * * * *", "Europe/Berlin", *dst);
        for (from, to) in
            [("2026-03-28T22:59:00Z", "2026-03-29T04:59:00Z"), ("2026-10-24T22:59:00Z", "2026-10-25T04:59:00Z")]
        {
            assert_eq!(slots(&cadence, from, to).len(), 12, "{dst}");
        }
    }
}

/// Lord Howe Island moves its clocks by half an hour; at 02:00 on 4 October 2026 they showed 02:30.
#[test]
fn half_an_hour_of_lord_howe() {
    let name = "Australia/Lord_Howe";
    let spring = |dst| slots(&cadence("15 2 * * *", name, dst), "2026-10-03T12:00:00Z", "2026-10-04T12:00:00Z");
    assert_eq!(spring(DstPolicy::Once), ["2026-10-03T15:30:00Z"]);
    assert_eq!(spring(DstPolicy::Skip), Vec::<String>::new());
    let autumn = |dst| slots(&cadence("45 1 * * *", name, dst), "2026-04-04T12:00:00Z", "2026-04-05T12:00:00Z");
    assert_eq!(autumn(DstPolicy::Once), ["2026-04-04T14:45:00Z"]);
    assert_eq!(autumn(DstPolicy::Twice), ["2026-04-04T14:45:00Z", "2026-04-04T15:15:00Z"]);
}

/// Samoa had no 30 December 2011 at all.
#[test]
fn a_day_that_is_left_out() {
    let cadence = cadence("0 9 * * *", "Pacific/Apia", DstPolicy::Once);
    let found = slots(&cadence, "2011-12-29T12:00:00Z", "2012-01-01T00:00:00Z");
    assert_eq!(found, ["2011-12-29T19:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T19:00:00Z", "2011-12-31T19:00:00Z"]);
}

#[test]
fn what_never_comes_has_no_slot_and_what_comes_rarely_has() {
    for never in ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *"] {
        let error = never.parse::<Cron>().unwrap_err();
        assert!(error.what.contains("no date"), "{error}");
    }
    // The last Sunday of March at half past two is what the clocks of Berlin leave out, every year.
    let left_out = cadence("30 2 * 3 SUN#L", "Europe/Berlin", DstPolicy::Skip);
    assert_eq!((left_out.next(at("2026-01-01T00:00:00Z")), left_out.ever_comes()), (None, false));
    assert!(cadence("30 2 * 3 SUN#L", "Europe/Berlin", DstPolicy::Once).ever_comes());
    let monday = cadence("0 0 29 2 +MON", "Europe/Berlin", DstPolicy::Once).next(at("2072-03-01T00:00:00Z")).unwrap();
    assert_eq!(slot_text(monday.at), "2112-02-28T23:00:00Z", "forty years later");
    let leap = cadence("0 0 29 2 *", "Europe/Berlin", DstPolicy::Once).next(at("2096-03-01T00:00:00Z")).unwrap();
    assert_eq!(slot_text(leap.at), "2104-02-28T23:00:00Z");
}

/// What the guide says of the dialect.
#[test]
fn the_dialect_is_what_is_documented() {
    let days = |cron: &str| {
        let found = slots(&cadence(cron, "UTC", DstPolicy::Once), "2026-02-28T23:59:59Z", "2026-03-08T00:00:00Z");
        found.iter().map(|slot| slot[8..10].parse::<u32>().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(days("0 0 1,3 * MON"), [1, 2, 3], "either names the day; 2 March 2026 is a Monday");
    assert_eq!(days("0 0 */5 * */3"), [1, 4, 6, 7], "days 1 and 6, and Sunday 1, Wednesday 4, Saturday 7");
    assert_eq!(days("0 0 1-3 * +MON"), [2], "both name it");
    assert_eq!(days("0 0 * * MON#1"), [2]);
    assert_eq!(days("@midnight"), days("@daily"));
    assert!("5/20 * * * *".parse::<Cron>().is_err());
    assert_eq!("5-59/20 * * * *".parse::<Cron>().unwrap().times.minutes, [5, 25, 45]);
}

/// An expression that never comes is found out by looking at as many days as there are, and no more.
#[test]
fn a_search_looks_at_a_bounded_number_of_days() {
    for (cron, zone, dst) in [
        ("30 2 * 3 SUN#L", "Europe/Berlin", DstPolicy::Skip),
        ("15 2 * 10 SUN#1", "Australia/Lord_Howe", DstPolicy::Skip),
        ("0 0 29 2 +MON", "America/New_York", DstPolicy::Twice),
        ("* * 2 * * *", "Africa/Casablanca", DstPolicy::Once),
    ] {
        let cadence = cadence(cron, zone, dst);
        let mut search = Search::default();
        cadence.slot_after(at("2026-01-01T00:00:00Z"), &mut search);
        assert!(search.looked <= search::DAYS_MAX + 1, "{cron}: {} days", search.looked);
    }
}

#[test]
fn what_is_no_expression_is_refused() {
    for text in [
        ", * * * *",
        "1,,2 * * * *",
        "* * * * 1,",
        "L * * * *",
        "",
        "* * * *",
        "60 * * * *",
        "* 24 * * *",
        "0 0 0 1 1 * *",
        "a b c d e",
        "@sometimes",
        "0 0 32 * *",
    ] {
        let error = text.parse::<Cron>().unwrap_err();
        assert!(error.to_string().contains("five fields"), "{error}");
    }
    for (text, says) in [
        ("61 * * * *", "column 1: the field for the minute cannot be `61`: it takes 0 to 59"),
        ("0  3 * * FUN", "column 10: the field for the day of week cannot be `FUN`"),
        ("1,,2 * * * *", "column 1: the field for the minute cannot be `1,,2`"),
        ("@sometimes", "`@sometimes` is none of @yearly"),
        ("* * * *", "it has 4 fields"),
        ("", "it is empty"),
    ] {
        let error = text.parse::<Cron>().unwrap_err();
        assert!(error.what.starts_with(says), "{error}");
    }
    for text in ["@daily", "@hourly", "0 9 * * MON-FRI", "30 0 3 * * 1", "0 0 L * *", "0 0 * * 5#3", " 0 3 * * 1 "] {
        assert!(text.parse::<Cron>().is_ok(), "{text}");
    }
}

#[test]
fn jitter_is_the_slots_own_and_ends_before_the_next() {
    let mut cadence = cadence("* * * * *", "UTC", DstPolicy::Once);
    cadence.jitter = Millis::from_mins(30);
    let mut after = at("2026-01-01T00:00:00Z");
    let mut spread = BTreeSet::new();
    for _ in 0..200 {
        let slot = cadence.next(after).unwrap();
        assert_eq!(cadence.next(after).unwrap(), slot);
        let jitter = slot.starts_at.since(slot.at);
        assert!(jitter < Millis::from_mins(1), "{jitter:?}");
        spread.insert(jitter.0 / 1_000);
        after = slot.at;
    }
    assert!(spread.len() > 30, "{spread:?}");
    let mut elsewhere = cadence.clone();
    elsewhere.seed = [8; 16];
    assert_ne!(cadence.next(after), elsewhere.next(after));
}

#[test]
fn what_came_while_nobody_was_there() {
    let cadence = cadence("*/10 * * * *", "UTC", DstPolicy::Once);
    let due = cadence.due(at("2026-01-01T00:00:00Z"), at("2026-01-01T02:05:00Z"));
    let run: Vec<_> = due.run.iter().map(|slot| slot_text(slot.at)).collect();
    assert_eq!((run.len(), run[0].as_str()), (6, "2026-01-01T01:10:00Z"));
    let missed = due.missed.unwrap();
    assert_eq!((slot_text(missed.first).as_str(), missed.count), ("2026-01-01T00:10:00Z", 6));
    assert_eq!(slot_text(missed.last), "2026-01-01T01:00:00Z");
    assert_eq!(slot_text(due.next.unwrap().at), "2026-01-01T02:10:00Z");
}

#[test]
fn years_without_a_server_cost_nothing_and_lose_no_slot_of_the_window() {
    let cadence = cadence("* * * * *", "Europe/Berlin", DstPolicy::Once);
    let due = cadence.due(at("2016-01-01T00:00:00Z"), at("2026-01-01T00:00:30Z"));
    assert_eq!(due.missed.unwrap().count, 1_000);
    assert_eq!(due.run.len(), 60);
    assert_eq!(slot_text(due.run[0].at), "2025-12-31T23:01:00Z");
    assert_eq!(slot_text(due.next.unwrap().at), "2026-01-01T00:01:00Z");
}

/// What a person with a wall clock would note down, minute by minute.
fn by_the_clock(cron: &Cron, zone: &TimeZone, dst: DstPolicy, from: Timestamp, minutes: i64) -> Vec<Timestamp> {
    let matches =
        |civil: jiff::civil::DateTime| cron.inner.is_time_matching(&civil.to_zoned(TimeZone::UTC).unwrap()).unwrap();
    let civil = |at: i64| {
        let at = jiff::Timestamp::from_millisecond(at).unwrap();
        zone.to_offset(at).to_datetime(at)
    };
    let mut shown = BTreeSet::new();
    let mut slots = BTreeSet::new();
    let start = from.0 - 36 * 3_600_000;
    for minute in 0..=minutes + 36 * 60 {
        let at = start + minute * 60_000;
        let (before, now) = (civil(at - 60_000), civil(at));
        let first_time = shown.insert(now);
        if matches(now) && (first_time || dst == DstPolicy::Twice || cron.every_hour) {
            slots.insert(Timestamp(at));
        }
        let mut left_out = before.checked_add(jiff::Span::new().minutes(1)).unwrap();
        while left_out < now {
            if dst != DstPolicy::Skip && !cron.every_hour && matches(left_out) {
                slots.insert(Timestamp(at));
            }
            left_out = left_out.checked_add(jiff::Span::new().minutes(1)).unwrap();
        }
    }
    slots.into_iter().filter(|at| *at > from && at.0 <= from.0 + minutes * 60_000).collect()
}

const ZONES: &[&str] = &[
    "Europe/Berlin",
    "America/New_York",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Australia/Adelaide",
    "Asia/Kolkata",
    "Africa/Casablanca",
    "America/Havana",
    "Asia/Beirut",
    "Pacific/Chatham",
    "Antarctica/Troll",
    "UTC",
];
const CRONS: &[&str] = &[
    "*/15 * * * *",
    "30 2 * * *",
    "0 0 * * *",
    "15 1,2,3 * * *",
    "0 */2 * * *",
    "45 2 * * SUN",
    "0,30 0-4 * * *",
    "5 3 L * *",
    "0 12 15 * 1",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Three days around some change of a clock, in any zone, for any expression and policy.
    #[test]
    fn as_a_wall_clock_would(
        name in proptest::sample::select(ZONES),
        text in proptest::sample::select(CRONS),
        dst in proptest::sample::select(DstPolicy::ALL),
        year in 2007i64..2040,
        change in 0usize..2,
        ahead_min in 0i64..2_880,
    ) {
        let zone = zone(name);
        let start = jiff::Timestamp::from_second((year - 1970) * 31_556_952).unwrap();
        let around = zone.following(start).nth(change).map_or(start, |change| change.timestamp());
        let from = Timestamp((around.as_millisecond() / 60_000 - ahead_min) * 60_000);
        let cadence = cadence(text, name, dst);
        let minutes = 3 * 24 * 60;
        let mut found = Vec::new();
        let mut after = from;
        while let Some(slot) = cadence.next(after).filter(|slot| slot.at.0 <= from.0 + minutes * 60_000) {
            prop_assert!(slot.at > after);
            found.push(slot.at);
            after = slot.at;
        }
        prop_assert_eq!(found, by_the_clock(&cadence.cron, &zone, dst, from, minutes));
    }

    /// However often a server looks, stops and starts again: every slot once, in order.
    #[test]
    fn looks_at_random_instants_find_every_slot_once(
        name in proptest::sample::select(ZONES),
        text in proptest::sample::select(CRONS),
        jitter_min in 0u64..20,
        gaps in proptest::collection::vec(1i64..50, 50..120),
    ) {
        let mut cadence = cadence(text, name, DstPolicy::Once);
        cadence.jitter = Millis::from_mins(jitter_min);
        let start = at("2026-03-28T12:00:00Z");
        let (mut done, mut now) = (start, start);
        let mut run = Vec::new();
        for gap in gaps {
            now = Timestamp(now.0 + gap * 60_000);
            let due = cadence.due(done, now);
            prop_assert_eq!(due.missed, None);
            for slot in due.run {
                prop_assert!(slot.starts_at <= now && slot.at > done);
                done = slot.at;
                run.push(slot.at);
            }
        }
        let mut expected = Vec::new();
        let mut after = start;
        while let Some(slot) = cadence.next(after).filter(|slot| slot.starts_at <= now) {
            expected.push(slot.at);
            after = slot.at;
        }
        prop_assert_eq!(run, expected);
    }
}
