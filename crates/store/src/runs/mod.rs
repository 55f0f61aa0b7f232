//! Runs as they stand: loaded for `decide`, listed for people, due for the timers.

mod load;
mod reads;
mod rows;
pub(crate) mod sql;
mod stats;
mod writes;

pub(crate) use load::PlanCache;
pub use rows::{ATTR_FILTERS_MAX, AttemptOutput, LiveCount, Page, RunFilter, RunSummary, StepRow};
pub use stats::{RunStats, STATS_ROWS_MAX, StatsEnd, StatsGroup, StatsSpans};
pub use writes::ChangeLabels;
