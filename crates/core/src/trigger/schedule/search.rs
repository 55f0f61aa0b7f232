//! The next time of day and date that an expression names, on a calendar without a zone. The search goes day by day
//! and is bounded by the days it looks at, so an expression that names no date that comes costs no more than any other.

use croner::Weekday;
use jiff::civil::{Date, DateTime, Time};

use super::Cron;

/// Days that one search looks at. The longest pause between two dates that do come is forty years: a 29 February on a
/// given day of the week, around a century that is no leap year.
pub(super) const DAYS_MAX: u32 = 41 * 366;

/// How far one search has come. It may go on over several stretches of the calendar.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// Days that were looked at so far.
    pub(super) looked: u32,
    last: Option<Date>,
}

impl Search {
    /// Counts a day; false where there have been enough.
    fn looks_at(&mut self, date: Date) -> bool {
        if self.last != Some(date) {
            self.looked += 1;
            self.last = Some(date);
        }
        self.looked <= DAYS_MAX
    }

    pub(super) const fn is_over(&self) -> bool {
        self.looked > DAYS_MAX
    }

    /// The first moment from `from` on, and before `until`, that the expression names.
    pub(super) fn find(&mut self, cron: &Cron, from: DateTime, until: Option<DateTime>) -> Option<DateTime> {
        let (mut date, mut earliest) = (from.date(), from.time());
        loop {
            if until.is_some_and(|until| date > until.date()) || !self.looks_at(date) {
                return None;
            }
            if !cron.names_month(date) {
                (date, earliest) = (date.last_of_month().tomorrow().ok()?, Time::midnight());
                continue;
            }
            if cron.names_day(date)
                && let Some(time) = cron.times.from(earliest)
            {
                let found = date.to_datetime(time);
                return Some(found).filter(|found| until.is_none_or(|until| *found < until));
            }
            (date, earliest) = (date.tomorrow().ok()?, Time::midnight());
        }
    }
}

/// The times of day that an expression names, each list in rising order and none of them empty.
#[derive(Debug, Clone)]
pub(super) struct Times {
    pub(super) hours: Vec<i8>,
    pub(super) minutes: Vec<i8>,
    pub(super) seconds: Vec<i8>,
}

impl Times {
    /// The first one from a time of day on.
    fn from(&self, earliest: Time) -> Option<Time> {
        let (first_minute, first_second) = (*self.minutes.first()?, *self.seconds.first()?);
        for hour in self.hours.iter().filter(|hour| **hour >= earliest.hour()) {
            if *hour > earliest.hour() {
                return Time::new(*hour, first_minute, first_second, 0).ok();
            }
            for minute in self.minutes.iter().filter(|minute| **minute >= earliest.minute()) {
                if *minute > earliest.minute() {
                    return Time::new(*hour, *minute, first_second, 0).ok();
                }
                if let Some(second) = self.seconds.iter().find(|second| **second >= earliest.second()) {
                    return Time::new(*hour, *minute, *second, 0).ok();
                }
            }
        }
        None
    }
}

impl Cron {
    fn names_month(&self, date: Date) -> bool {
        self.inner.pattern.month_match(date.month().unsigned_abs().into()).unwrap_or(false)
    }

    fn names_day(&self, date: Date) -> bool {
        let weekday = Weekday::from_days_from_sunday(date.weekday().to_sunday_zero_offset().unsigned_abs().into());
        let (month, day) = (date.month().unsigned_abs().into(), date.day().unsigned_abs().into());
        self.inner.pattern.day_match(date.year().into(), month, day, weekday).unwrap_or(false)
    }
}
