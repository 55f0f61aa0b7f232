//! Cron expressions: five fields (minute, hour, day of month, month, day of week), six with seconds in front, or a
//! nickname such as `@daily`.

use std::fmt;
use std::str::FromStr;

use croner::parser::{CronParser, Seconds, Year};

const BYTES_MAX: usize = 256;

/// A checked expression. Shows as it was written.
#[derive(Clone)]
pub struct Cron {
    text: String,
    pub(super) inner: croner::Cron,
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
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        let inner = parser.parse(text.trim()).map_err(|error| invalid(error.to_string()))?;
        let every_hour = (0..24).all(|hour| inner.pattern.hour_match(hour).unwrap_or(false));
        Ok(Self { text: text.trim().to_owned(), inner, every_hour })
    }
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
