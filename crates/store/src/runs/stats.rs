//! Runs and approvals counted over time. There is no table of counts to keep: run and approval ids begin with their
//! instant, so a range of ids is a range of time, of which at most [`STATS_ROWS_MAX`] rows are read.

use interlock_core::ids::TenantId;
use interlock_core::state::RunState;
use interlock_core::time::{Millis, Timestamp};

use super::{ATTR_FILTERS_MAX, RunFilter, sql};
use crate::error::{CorruptRow, ReadError};
use crate::sql::Stmt;
use crate::store::Store;
use crate::value::{Row, Value, args, first_id_at};

/// Rows that one statement counts, the newest first.
pub const STATS_ROWS_MAX: usize = 50_000;
/// What began this long before the first span is counted where it ended in one. What began earlier is counted only while it
/// lives.
const LOOK_BACK: Millis = Millis::from_hours(24);
/// An id is drawn a moment before the instant that its row says.
const ID_SLACK: Millis = Millis::from_mins(1);

/// Equal spans of time, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatsSpans {
    pub from: Timestamp,
    pub length: Millis,
    pub before: Timestamp,
}

/// Runs or approvals that began in one span and ended in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatsGroup {
    /// The span that they began in; `None` before the first.
    pub begun: Option<usize>,
    pub ended: StatsEnd,
    /// What runs ended as.
    pub state: Option<RunState>,
    pub number: u64,
}

/// The span in which something ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatsEnd {
    NotYet,
    /// Before the first span.
    Before,
    In(usize),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunStats {
    pub runs: Vec<StatsGroup>,
    pub approvals: Vec<StatsGroup>,
    /// Where there were too many rows: what began before this is not counted.
    pub cut_at: Option<Timestamp>,
}

struct Counted {
    groups: Vec<StatsGroup>,
    cut_at: Option<Timestamp>,
}

impl Store {
    /// How many runs and approvals that the filter matches began and ended in which spans. The filter's states and instants
    /// do not count.
    pub async fn run_stats(
        &self,
        tenant: TenantId,
        filter: &RunFilter,
        spans: StatsSpans,
    ) -> Result<RunStats, ReadError> {
        let earliest = spans.from - LOOK_BACK;
        let latest = spans.before + ID_SLACK;
        let by_range = if filter.workflow.is_some() { &sql::RUN_STATS_WORKFLOW } else { &sql::RUN_STATS };
        let count = |stmt, from, below| self.counted(tenant, filter, stmt, (spans, from, below));
        let begins = Timestamp(0);
        let recent = count(by_range, earliest - ID_SLACK, latest).await?;
        let old = count(&sql::LIVE_STATS, begins, recent.cut_at.unwrap_or(earliest) - ID_SLACK).await?;
        let asked = count(&sql::APPROVAL_STATS, earliest - ID_SLACK, latest).await?;
        let open = count(&sql::OPEN_APPROVAL_STATS, begins, asked.cut_at.unwrap_or(earliest) - ID_SLACK).await?;
        let cut_at = recent.cut_at.max(asked.cut_at).filter(|cut_at| *cut_at > spans.from);
        let both = |first: Counted, second: Counted| [first.groups, second.groups].concat();
        Ok(RunStats { runs: both(recent, old), approvals: both(asked, open), cut_at })
    }

    async fn counted(
        &self,
        tenant: TenantId,
        filter: &RunFilter,
        stmt: &'static Stmt,
        (spans, from, below): (StatsSpans, Timestamp, Timestamp),
    ) -> Result<Counted, ReadError> {
        let text = |value: &Option<String>| Value::from(value.as_deref().unwrap_or(""));
        let mut values = args![tenant];
        values.push(text(&filter.workflow));
        values.extend([first_id_at(from), first_id_at(below)]);
        values.extend(args![STATS_ROWS_MAX, spans.from, spans.length]);
        values.extend([&filter.subject, &filter.trigger, &filter.workspace].map(text));
        let mut attrs: Vec<(&str, &str)> =
            filter.attrs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        attrs.resize(ATTR_FILTERS_MAX, ("", ""));
        for (name, value) in attrs {
            values.extend(args![name, value]);
        }
        let (mut groups, mut seen, mut oldest) = (Vec::new(), 0, None::<Timestamp>);
        for row in self.rows(stmt, values).await? {
            let (group, rows, first) = group(row)?;
            groups.push(group);
            seen += rows;
            oldest = Some(oldest.map_or(first, |oldest| oldest.min(first)));
        }
        groups.retain(|group| group.number > 0);
        Ok(Counted { groups, cut_at: oldest.filter(|_| seen >= STATS_ROWS_MAX as u64) })
    }
}

fn group(mut row: Row) -> Result<(StatsGroup, u64, Timestamp), CorruptRow> {
    let begun: i64 = row.num("begun")?;
    let ended: i64 = row.num("ended")?;
    let ended = match ended {
        -2 => StatsEnd::NotYet,
        ended => usize::try_from(ended).map_or(StatsEnd::Before, StatsEnd::In),
    };
    let state = row.opt_name("state")?;
    let (seen, number, oldest) = (row.num("seen")?, row.num("runs")?, row.time("oldest")?);
    Ok((StatsGroup { begun: usize::try_from(begun).ok(), ended, state, number }, seen, oldest))
}
