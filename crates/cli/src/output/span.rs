//! Spans, instants and sizes in words that are short and still exact enough.

use std::time::Duration;

use interlock_core::time::{Millis, Timestamp};
use jiff::tz::TimeZone;

/// The machine's clock, for "3 min ago" and the like.
pub fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond())
}

/// `340 ms`, `2.5 s`, `4 min 10 s`, `3 h 5 min`, `2 d 4 h`.
pub fn span(millis: Millis) -> String {
    let ms = millis.0;
    let (secs, mins, hours) = (ms / 1_000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", secs, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{mins} min {} s", secs % 60),
        3_600_000..86_400_000 => format!("{hours} h {} min", mins % 60),
        _ => format!("{} d {} h", hours / 24, hours % 24),
    }
}

/// `512 bytes`, `64 KiB`, `3.2 MiB`, `1.5 GiB`.
pub fn bytes(count: u64) -> String {
    let of = |shift: u32| format!("{}.{}", count >> shift, (count >> (shift - 10)) % 1_024 * 10 / 1_024);
    match count {
        0..1_024 => format!("{count} bytes"),
        1_024..1_048_576 => format!("{} KiB", count >> 10),
        1_048_576..1_073_741_824 => format!("{} MiB", of(20)),
        _ => format!("{} GiB", of(30)),
    }
}

/// `1 run`, `2 runs`.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// `12 s ago`, `in 3 min`. What is to come is rounded, so that a day is not `in 23 h` a moment after it was set.
pub fn away(at: Timestamp, now: Timestamp) -> String {
    if at > now { format!("in {}", nearest(at.since(now))) } else { format!("{} ago", rough(now.since(at))) }
}

fn nearest(millis: Millis) -> String {
    let secs = (millis.0 + 500) / 1_000;
    let (mins, hours, days) = ((secs + 30) / 60, (secs + 1_800) / 3_600, (secs + 43_200) / 86_400);
    match () {
        () if secs < 60 => format!("{secs} s"),
        () if mins < 60 => format!("{mins} min"),
        () if hours < 24 => format!("{hours} h"),
        () => format!("{days} d"),
    }
}

fn rough(millis: Millis) -> String {
    let secs = millis.0 / 1_000;
    match secs {
        0..60 => format!("{secs} s"),
        60..3_600 => format!("{} min", secs / 60),
        3_600..86_400 => format!("{} h", secs / 3_600),
        _ => format!("{} d", secs / 86_400),
    }
}

/// The time of day where this command runs.
pub fn clock(at: Timestamp) -> String {
    local(at, "%H:%M:%S%.3f")
}

/// The same with the day in front, of what did not happen today.
pub fn clock_on_its_day(at: Timestamp, now: Timestamp) -> String {
    let day = |at| local(at, "%Y-%m-%d");
    if day(at) == day(now) { clock(at) } else { format!("{} {}", day(at), clock(at)) }
}

/// Date and time where this command runs.
pub fn instant(at: Timestamp) -> String {
    local(at, "%Y-%m-%d %H:%M:%S")
}

fn local(at: Timestamp, format: &str) -> String {
    let instant = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
    instant.to_zoned(TimeZone::system()).strftime(format).to_string()
}

/// `500ms`, `30s`, `10m`, `2h`, `1d`; a bare number means seconds.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a span; write 500ms, 30s, 10m, 2h or 1d");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let count: u64 = text[..digits].parse().map_err(|_| wrong())?;
    let unit = match text[digits..].trim() {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    count.checked_mul(unit).map(Duration::from_millis).ok_or_else(wrong)
}

/// `2026-12-01`, the beginning of that day where this command runs, or an instant like `2026-12-01T18:00:00+01:00`.
pub fn parse_instant(text: &str) -> Result<Timestamp, String> {
    let day = |text: &str| -> Option<jiff::Timestamp> {
        // A date is read from a date and a time as well, but which instant that is depends on a zone.
        let date = text.parse::<jiff::civil::Date>().ok().filter(|_| !text.contains(['T', 't', ' ']))?;
        date.to_zoned(TimeZone::system()).ok().map(|midnight| midnight.timestamp())
    };
    let instant = text.parse::<jiff::Timestamp>().ok().or_else(|| day(text));
    instant
        .map(|instant| Timestamp(instant.as_millisecond()))
        .ok_or_else(|| format!("`{text}` is no instant; write 2026-12-01 or 2026-12-01T18:00:00+01:00"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_like_speech() {
        let says = |ms| span(Millis(ms));
        assert_eq!(says(0), "0 ms");
        assert_eq!(says(999), "999 ms");
        assert_eq!(says(2_540), "2.5 s");
        assert_eq!(says(250_000), "4 min 10 s");
        assert_eq!(says(11_100_000), "3 h 5 min");
        assert_eq!(says(187_200_000), "2 d 4 h");
        assert_eq!(away(Timestamp(10_000), Timestamp(22_000)), "12 s ago");
        assert_eq!(away(Timestamp(200_000), Timestamp(10_000)), "in 3 min");
        assert_eq!(away(Timestamp(86_400_000), Timestamp(300)), "in 1 d");
        assert_eq!(away(Timestamp(7_200_000), Timestamp(300)), "in 2 h");
        assert_eq!(away(Timestamp(60_000), Timestamp(200)), "in 1 min");
        assert_eq!(away(Timestamp(0), Timestamp(86_399_000)), "23 h ago");
        assert_eq!([counted(1, "run", "runs"), counted(0, "run", "runs")], ["1 run", "0 runs"]);
    }

    #[test]
    fn instants_are_days_or_exact() {
        assert_eq!(parse_instant("1970-01-02T01:00:00+01:00"), Ok(Timestamp(86_400_000)));
        assert_eq!(parse_instant("1970-01-02T00:00:00Z"), Ok(Timestamp(86_400_000)));
        let midnight = parse_instant("2026-12-01").unwrap();
        assert_eq!(instant(midnight), "2026-12-01 00:00:00");
        for text in ["", "tomorrow", "2026-13-01", "2026-12-01T18:00:00"] {
            assert!(parse_instant(text).is_err(), "{text}");
        }
    }

    #[test]
    fn spans_are_read_with_their_unit() {
        for (text, ms) in [("500ms", 500), ("30s", 30_000), ("30", 30_000), ("10m", 600_000), ("1d", 86_400_000)] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "-1s", "1.5s", "3 weeks", "99999999999999999999d"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
