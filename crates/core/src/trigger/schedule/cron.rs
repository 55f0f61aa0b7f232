//! Cron expressions: five fields (minute, hour, day of month, month, day of week), six with seconds in front, or a
//! nickname such as `@daily`.

use std::fmt;
use std::str::FromStr;

use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::date;

use super::search::{Search, Times};

const BYTES_MAX: usize = 256;

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

impl FromStr for Cron {
    type Err = InvalidCron;

    fn from_str(text: &str) -> Result<Self, InvalidCron> {
        let invalid = |what: String| InvalidCron { text: text.chars().take(80).collect(), what };
        if text.len() > BYTES_MAX {
            return Err(invalid(format!("it is longer than {BYTES_MAX} bytes")));
        }
        if text.split_whitespace().any(|field| field.split(',').any(str::is_empty)) {
            return Err(invalid("a list has an empty item".to_owned()));
        }
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        // Other crons know it under both names.
        let read = if text.trim().eq_ignore_ascii_case("@midnight") { "@daily" } else { text.trim() };
        let inner = parser.parse(read).map_err(|error| invalid(error.to_string()))?;
        let pattern = &inner.pattern;
        let [hours, minutes, seconds] = [&pattern.hours, &pattern.minutes, &pattern.seconds].map(values);
        if hours.is_empty() || minutes.is_empty() || seconds.is_empty() {
            return Err(invalid("it names no time of day".to_owned()));
        }
        let every_hour = hours.len() == 24;
        let cron = Self { text: text.trim().to_owned(), inner, times: Times { hours, minutes, seconds }, every_hour };
        // The calendar repeats itself, so where the search begins makes no difference.
        if Search::default().find(&cron, date(2000, 1, 1).at(0, 0, 0, 0), None).is_none() {
            return Err(invalid("it names no date that any year has".to_owned()));
        }
        Ok(cron)
    }
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
