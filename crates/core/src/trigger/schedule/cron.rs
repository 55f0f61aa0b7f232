//! Cron expressions: five fields (minute, hour, day of month, month, day of week), six with seconds in front, or a
//! nickname such as `@daily`.

use std::fmt;
use std::str::FromStr;

use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::date;

use super::search::{Search, Times};

/// The longest expression.
pub const CRON_BYTES_MAX: usize = 256;

/// A checked expression. Shows as it was written.
#[derive(Clone)]
pub struct Cron {
    text: String,
    pub(super) inner: croner::Cron,
    pub(super) times: Times,
    /// It names every hour, so it means spans of time rather than times of the day.
    pub(super) every_hour: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a cron expression: {what}. Write five fields (minute, hour, day of month, month, day of week), or seconds in front of them"
)]
pub struct InvalidCron {
    pub text: String,
    pub what: String,
}

/// The fields of an expression with what they take; seconds may stand in front of them.
const FIELDS: [(&str, &str); 6] = [
    ("second", "0 to 59"),
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of month", "1 to 31, or L for the last"),
    ("month", "1 to 12, or JAN to DEC"),
    ("day of week", "0 to 7, or SUN to SAT; 0 and 7 are Sunday"),
];

const NICKNAMES: &str = "@yearly, @monthly, @weekly, @daily, @midnight and @hourly";

impl FromStr for Cron {
    type Err = InvalidCron;

    fn from_str(text: &str) -> Result<Self, InvalidCron> {
        read(text).map_err(|what| InvalidCron {
            text: text.chars().take(80).collect(),
            what: what.unwrap_or_else(|| fault(text)),
        })
    }
}

/// The expression, or what is wrong with it as a whole, or nothing where it is up to one of its fields.
fn read(text: &str) -> Result<Cron, Option<String>> {
    if text.len() > CRON_BYTES_MAX {
        return Err(Some(format!("it is longer than {CRON_BYTES_MAX} bytes")));
    }
    if text.split_whitespace().any(|field| field.split(',').any(str::is_empty)) {
        return Err(None);
    }
    let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
    // Other crons know it under both names.
    let read = if text.trim().eq_ignore_ascii_case("@midnight") { "@daily" } else { text.trim() };
    let inner = parser.parse(read).map_err(|_| None)?;
    let pattern = &inner.pattern;
    let [hours, minutes, seconds] = [&pattern.hours, &pattern.minutes, &pattern.seconds].map(values);
    if hours.is_empty() || minutes.is_empty() || seconds.is_empty() {
        return Err(None);
    }
    let every_hour = hours.len() == 24;
    let cron = Cron { text: text.trim().to_owned(), inner, times: Times { hours, minutes, seconds }, every_hour };
    // The calendar repeats itself, so where the search begins makes no difference.
    if Search::default().find(&cron, date(2000, 1, 1).at(0, 0, 0, 0), None).is_none() {
        // The only letter that means something else there than as a day of the month.
        let is_last_weekday = text.split_whitespace().last().is_some_and(|weekday| weekday.eq_ignore_ascii_case("L"));
        let hint = if is_last_weekday { ": as a day of the week `L` needs a name, as in `FRI#L`" } else { "" };
        return Err(Some(format!("it names no date that any year has{hint}")));
    }
    Ok(cron)
}

/// Which field is wrong, where it stands, and what it takes.
fn fault(text: &str) -> String {
    let given: Vec<&str> = text.split_whitespace().collect();
    match given[..] {
        [] => return "it is empty".to_owned(),
        [name] if name.starts_with('@') => return format!("`{name}` is none of {NICKNAMES}"),
        _ if !(FIELDS.len() - 1..=FIELDS.len()).contains(&given.len()) => {
            return format!("it has {} fields", given.len());
        }
        _ => {}
    }
    let fields = &FIELDS[FIELDS.len() - given.len()..];
    // Among stars a field is wrong all by itself.
    let is_wrong = |at: &usize| {
        let stars: Vec<&str> = (0..given.len()).map(|other| if other == *at { given[*at] } else { "*" }).collect();
        read(&stars.join(" ")).is_err()
    };
    let Some(at) = (0..given.len()).find(is_wrong) else { return "its fields do not go together".to_owned() };
    let ((name, takes), shown) = (fields[at], given[at].chars().take(80).collect::<String>());
    let column = text[..given[at].as_ptr().addr() - text.as_ptr().addr()].chars().count() + 1;
    format!(
        "column {column}: the field for the {name} cannot be `{shown}`: it takes {takes}, `*`, lists (1,2), ranges (1-3) and steps (*/5)"
    )
}

/// The values of a field for a time of day.
fn values(field: &croner::CronComponent) -> Vec<i8> {
    field.values().into_iter().filter_map(|value| i8::try_from(value).ok()).collect()
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cron({})", self.text)
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Cron {
    /// In words, for people.
    pub fn describe(&self) -> String {
        self.inner.describe()
    }
}
